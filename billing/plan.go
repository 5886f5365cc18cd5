package billing

import (
	"slices"

	"palimpsest/tenants"
)

// Plan is a workspace's plan.
type Plan string

// The plans. Local is the plan of every workspace if billing is off.
const (
	Local Plan = "local"
	Free  Plan = "free"
	Pro   Plan = "pro"
	Team  Plan = "team"
)

// FreeExchanges is the number of exchanges in a calendar month, in UTC, on the plan Free.
const FreeExchanges = 5_000

// Title returns the plan's display name.
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

// IsSold reports whether the plan is sold at all.
func (p Plan) IsSold() bool { return p == Pro || p == Team }

// Prices are the Stripe ids of a plan's prices.
type Prices struct {
	Plan  []string // the first is sold; older ones still identify the plan
	Usage string   // of exchanges, by the meter; "" if they are free
}

// Catalog is the plans for sale.
type Catalog struct {
	Pro, Team Prices
}

// prices returns a plan's prices.
func (c Catalog) prices(plan Plan) Prices {
	if plan == Team {
		return c.Team
	}
	return c.Pro
}

// sold returns the plans with a price.
func (c Catalog) sold() []Plan {
	return slices.DeleteFunc([]Plan{Pro, Team}, func(plan Plan) bool { return len(c.prices(plan).Plan) == 0 })
}

// planOf returns a price's plan.
func (c Catalog) planOf(price string) (Plan, bool) {
	for _, plan := range []Plan{Pro, Team} {
		if slices.Contains(c.prices(plan).Plan, price) {
			return plan, true
		}
	}
	return "", false
}

// offered returns the requested plan, or tenants.Invalid.
func (c Catalog) offered(name string) (Plan, error) {
	plan := Plan(name)
	if !slices.Contains(c.sold(), plan) {
		return "", tenants.Invalid{Field: "plan", Message: "must be a plan that is sold here: pro or team"}
	}
	return plan, nil
}
