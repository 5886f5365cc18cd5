package stripetest

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// customer is a customer of the double.
type customer struct {
	id, name, email string
	metadata        map[string]string
	created         time.Time
	declines        bool // payments by its card fail
}

func (c *customer) json() object {
	return object{
		"id": c.id, "object": "customer", "name": c.name, "email": c.email, "metadata": c.metadata, "created": c.created.Unix(),
		"livemode": false, "delinquent": c.declines,
	}
}

func (e endpoints) newCustomer(r *http.Request) (any, *failure) {
	made := &customer{
		id: e.id("cus"), name: r.Form.Get("name"), email: r.Form.Get("email"), metadata: metadata(r.Form, "metadata"), created: e.now,
	}
	e.customers[made.id] = made
	e.happened("customer.created", made.json())
	return made.json(), nil
}

func (e endpoints) getCustomer(r *http.Request) (any, *failure) {
	found, is := e.customers[r.PathValue("id")]
	if !is {
		return nil, missing("customer", r.PathValue("id"))
	}
	return found.json(), nil
}

// SetCard makes a customer's payments fail, or succeed, from now on.
func (s *Server) SetCard(customer string, declines bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.customers[customer].declines = declines
}

// price is a price in the double.
type price struct {
	id       string
	amount   int64 // cents for each unit beyond included
	metered  bool
	included int64
}

// prices returns the double's prices.
func prices() map[string]price {
	all := map[string]price{}
	for _, one := range []price{
		{id: ProPrice, amount: 2000}, {id: TeamPrice, amount: 3000},
		{id: ProUsagePrice, amount: 1, metered: true, included: ProIncluded},
		{id: TeamUsagePrice, amount: 1, metered: true, included: TeamIncluded},
	} {
		all[one.id] = one
	}
	return all
}

func (p price) json(withTiers bool) object {
	recurring := object{"interval": "month", "interval_count": 1, "usage_type": "licensed", "aggregate_usage": nil, "meter": nil, "trial_period_days": nil}
	made := object{
		"id": p.id, "object": "price", "active": true, "currency": "usd", "type": "recurring", "product": "prod_" + strings.TrimPrefix(p.id, "price_"),
		"billing_scheme": "per_unit", "unit_amount": p.amount, "unit_amount_decimal": strconv.FormatInt(p.amount, 10),
		"recurring": recurring, "metadata": object{}, "livemode": false,
	}
	if p.metered {
		recurring["usage_type"], recurring["meter"] = "metered", Meter
		made["billing_scheme"], made["tiers_mode"], made["unit_amount"], made["unit_amount_decimal"] = "tiered", "graduated", nil, nil
		if withTiers {
			made["tiers"] = []object{
				{"up_to": p.included, "unit_amount": 0, "unit_amount_decimal": "0", "flat_amount": nil, "flat_amount_decimal": nil},
				{"up_to": nil, "unit_amount": p.amount, "unit_amount_decimal": strconv.FormatInt(p.amount, 10), "flat_amount": nil, "flat_amount_decimal": nil},
			}
		}
	}
	return made
}

// cost returns the cost of so many units.
func (p price) cost(units int64) int64 {
	if p.metered {
		return max(0, units-p.included) * p.amount
	}
	return units * p.amount
}

func (e endpoints) getPrice(r *http.Request) (any, *failure) {
	found, is := prices()[r.PathValue("id")]
	if !is {
		return nil, missing("price", r.PathValue("id"))
	}
	return found.json(r.Form.Get("expand[0]") == "tiers"), nil
}
