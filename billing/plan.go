package billing

import (
	"slices"

	"palimpsest/tenants"
)

// Plan is what a workspace has bought.
type Plan string

// The plans. Local is that of every workspace where billing is off.
const (
	Local Plan = "local"
	Free  Plan = "free"
	Pro   Plan = "pro"
	Team  Plan = "team"
)

// FreeExchanges is how many exchanges a workspace has in a calendar month, in UTC, on
// the plan Free.
const FreeExchanges = 5_000

// Title returns the plan's name as people read it.
func (p Plan) Title() string {
	switch p {
	case Local:
		return "Local"
	case Pro:
		return "Pro"
	case Team:
		return "Team"
	case Free:
	}
	return "Free"
}

// IsSold reports whether the plan can be bought.
func (p Plan) IsSold() bool { return p == Pro || p == Team }

// Prices are Stripe's ids of what a plan costs.
type Prices struct {
	Plan  []string // the first is sold, all are known as this plan's
	Usage string   // of exchanges, by the meter; empty: they cost nothing
}

// Catalog is what is sold.
type Catalog struct {
	Pro, Team Prices
}

// prices returns those of a plan.
func (c Catalog) prices(plan Plan) Prices {
	if plan == Team {
		return c.Team
	}
	return c.Pro
}

// sold returns the plans that have a price.
func (c Catalog) sold() []Plan {
	return slices.DeleteFunc([]Plan{Pro, Team}, func(plan Plan) bool { return len(c.prices(plan).Plan) == 0 })
}

// planOf returns the plan that a price belongs to.
func (c Catalog) planOf(price string) (Plan, bool) {
	for _, plan := range []Plan{Pro, Team} {
		if slices.Contains(c.prices(plan).Plan, price) {
			return plan, true
		}
	}
	return "", false
}

// offered returns the plan that someone asks for, or tenants.Invalid.
func (c Catalog) offered(name string) (Plan, error) {
	plan := Plan(name)
	if !slices.Contains(c.sold(), plan) {
		return "", tenants.Invalid{Field: "plan", Message: "must be a plan that is sold here: pro or team"}
	}
	return plan, nil
}
