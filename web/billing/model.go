package billing

import (
	"time"

	"palimpsest/billing"
	"palimpsest/web/components"
)

// model is the page's data.
type model struct {
	billing.Overview

	Now        time.Time
	PlanFailed string // reference in the log; "" if the plan and its usage are known

	Returned bool   // from checkout, just now
	Problem  string // why nothing was changed; "" if it was
	State    string // of the plan, in a word
	Tag      string // its color
	Says     string // the state in a sentence
	Bar      int64  // percent used of the included exchanges
	Included int64  // exchanges of the period; 0 if unknown or unlimited
	Beyond   string // price of each further one
	Forecast string // "" if it would be a guess

	Offers         []billing.Offer // the plans for sale
	OffersFailed   string          // reference
	Invoices       []billing.Invoice
	InvoicesFailed string
}

func newModel(overview billing.Overview, now time.Time, zone *time.Location) model {
	m := model{Overview: overview, Now: now, Included: overview.Quota}
	m.State, m.Tag, m.Says = stateOf(overview, zone)
	if expected, ok := overview.Forecast(now); ok {
		m.Forecast = components.Count(expected) + " by " + components.DayIn(overview.To, zone) + " at the current rate"
	}
	m.fill()
	return m
}

// offer shows the plans for sale. A workspace with a running subscription sees only its own price.
func (m *model) offer(offers []billing.Offer) {
	for _, offer := range offers {
		if offer.Plan == m.Plan {
			m.Included, m.Beyond = offer.Included, offer.Beyond
		}
		if !m.Status.IsLive() {
			m.Offers = append(m.Offers, offer)
		}
	}
	m.fill()
}

func (m *model) fill() {
	if m.Included > 0 {
		m.Bar = min(100, m.Used*100/m.Included)
	}
}

// stateOf describes a plan's state.
func stateOf(overview billing.Overview, zone *time.Location) (state, tag, says string) {
	end := components.DayIn(overview.EndsAt, zone)
	switch {
	case overview.Plan == billing.Local:
		return "Unlimited", "ok", "Billing is off here. Every workspace has all features, without limits and without a bill."
	case overview.Status == billing.Canceled:
		return "Free", "", "The subscription ended on " + end + "."
	case overview.Plan == billing.Free:
		return "Free", "", components.Count(billing.FreeExchanges) + " exchanges each month are free. " +
			"Above them requests pass uncompressed; they are never blocked."
	case overview.Status.Owes():
		return "Past due", "bad", "A payment failed on " + components.DayIn(overview.PastDueSince, zone) + ". Stripe tries again; you can pay with another card at Stripe."
	case !overview.EndsAt.IsZero():
		return "Ends " + end, "warn", "It is canceled. Everything works until " + end + ". Then the workspace is on the Free plan."
	case overview.Status == billing.Trialing:
		return "Trial", "ok", "The trial ends on " + components.DayIn(overview.TrialEnd, zone) + ". You pay from then on."
	case overview.Status == billing.Paused:
		return "Paused", "warn", "The subscription is paused at Stripe."
	}
	return "Active", "ok", "It renews on " + components.DayIn(overview.PeriodEnd, zone) + "."
}

// extent returns an offer's included exchanges and the price of further ones.
func extent(offer billing.Offer) string {
	switch {
	case offer.Beyond == "":
		return "Exchanges without a limit"
	case offer.Included == 0:
		return "Each exchange " + offer.Beyond
	}
	return components.Count(offer.Included) + " exchanges included, each further one " + offer.Beyond
}
