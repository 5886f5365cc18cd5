package billing

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/stripe/stripe-go/v76"

	"palimpsest/tenants"
)

// offersFor is how long prices are cached.
const offersFor = 10 * time.Minute

// Offer is a plan for sale, with its prices at Stripe.
type Offer struct {
	Plan     Plan
	Price    string // "20.00 USD each month", for each member on Team
	Included int64  // exchanges of a period that are included in the price; 0 if none, or all
	Beyond   string // price of each further exchange, "0.002 USD"; "" if they are free
}

// Offers returns the plans for sale.
func (s *Service) Offers(ctx context.Context) ([]Offer, error) {
	if !s.IsOn() {
		return nil, tenants.ErrBillingOff
	}
	s.mu.Lock()
	offers, at := s.offers, s.offersAt
	s.mu.Unlock()
	now := s.deps.Now()
	if offers != nil && now.Sub(at) < offersFor {
		return offers, nil
	}
	offers = nil
	for _, plan := range s.config.Catalog.sold() {
		offer, err := s.stripe.offer(ctx, plan)
		if err != nil {
			return nil, fmt.Errorf("offer %s: %w", plan, err)
		}
		offers = append(offers, offer)
	}
	s.mu.Lock()
	s.offers, s.offersAt = offers, now
	s.mu.Unlock()
	return offers, nil
}

// offer reads a plan's prices.
func (g *gateway) offer(ctx context.Context, plan Plan) (Offer, error) {
	prices := g.config.Catalog.prices(plan)
	price, err := g.price(ctx, prices.Plan[0])
	if err != nil {
		return Offer{}, err
	}
	offer := Offer{Plan: plan, Price: Amount(price.UnitAmount, string(price.Currency))}
	if recurring := price.Recurring; recurring != nil {
		offer.Price += " each " + interval(recurring)
	}
	if prices.Usage == "" {
		return offer, nil
	}
	usage, err := g.price(ctx, prices.Usage)
	if err != nil {
		return Offer{}, err
	}
	unit := usage.UnitAmountDecimal
	for _, tier := range usage.Tiers {
		unit = tier.UnitAmountDecimal
		if unit == 0 && tier.FlatAmount == 0 && tier.UpTo > 0 {
			offer.Included = tier.UpTo
			continue
		}
		break
	}
	if unit > 0 {
		offer.Beyond = fraction(unit, string(usage.Currency))
	}
	return offer, nil
}

// price reads a price with its tiers.
func (g *gateway) price(ctx context.Context, id string) (*stripe.Price, error) {
	params := &stripe.PriceParams{}
	params.Context = ctx
	params.AddExpand("tiers")
	price, err := g.api.Prices.Get(id, params)
	if err != nil {
		return nil, fmt.Errorf("read price %s: %w", id, err)
	}
	return price, nil
}

// interval returns "month", "3 months" and so on.
func interval(recurring *stripe.PriceRecurring) string {
	if recurring.IntervalCount <= 1 {
		return string(recurring.Interval)
	}
	return fmt.Sprintf("%d %ss", recurring.IntervalCount, recurring.Interval)
}

// decimals returns a currency's number of decimal places (docs.stripe.com/currencies).
func decimals(currency string) int {
	switch strings.ToLower(currency) {
	case "bif", "clp", "djf", "gnf", "jpy", "kmf", "krw", "mga", "pyg", "rwf", "vnd", "vuv", "xaf", "xof", "xpf":
		return 0
	case "bhd", "jod", "kwd", "omr", "tnd":
		return 3
	}
	return 2
}

// Amount formats an amount in a currency's smallest unit.
func Amount(smallest int64, currency string) string {
	sign := ""
	if smallest < 0 {
		sign, smallest = "−", -smallest
	}
	digits := decimals(currency)
	text := fmt.Sprintf("%0*d", digits+1, smallest)
	if digits > 0 {
		text = text[:len(text)-digits] + "." + text[len(text)-digits:]
	}
	return sign + text + " " + strings.ToUpper(currency)
}

// fraction formats an amount that may be less than the smallest unit.
func fraction(smallest float64, currency string) string {
	for range decimals(currency) {
		smallest /= 10
	}
	return strconv.FormatFloat(smallest, 'f', -1, 64) + " " + strings.ToUpper(currency)
}
