package billing

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stripe/stripe-go/v76"

	"palimpsest/tenants"
)

// Checkout returns the address where a person pays for a workspace's plan. It returns tenants.ErrBillingOff,
// tenants.Invalid for a plan that is not sold, and tenants.ErrConflict if a subscription is already running,
// because that is changed in the portal.
func (s *Service) Checkout(ctx context.Context, workspace tenants.Workspace, email, plan string) (string, error) {
	if !s.IsOn() {
		return "", tenants.ErrBillingOff
	}
	wanted, err := s.config.Catalog.offered(plan)
	if err != nil {
		return "", err
	}
	account, err := s.customer(ctx, workspace, email)
	if err != nil {
		return "", err
	}
	// Read the state again: the stored one may be old, and no one may pay for two subscriptions.
	state, err := s.read(ctx, account)
	if err != nil {
		return "", err
	}
	if state.Status.IsLive() {
		return "", fmt.Errorf("checkout: subscription %s runs: %w", state.Subscription, tenants.ErrConflict)
	}
	order := order{workspace: workspace.ID, customer: account.Customer, plan: wanted, seats: 1}
	if wanted == Team {
		if order.seats, err = s.deps.Store.Members(ctx, workspace.ID); err != nil {
			return "", err
		}
	}
	if state.Subscription == "" {
		order.trialDays = s.config.TrialDays
	}
	address, err := s.stripe.checkout(ctx, order)
	if err != nil {
		return "", err
	}
	fields := tenants.Fields{"plan": string(wanted), "seats": strconv.FormatInt(order.seats, 10)}
	return address, s.deps.Store.Note(ctx, workspace.ID, tenants.Change{Action: tenants.CheckoutOpened, Target: account.Customer, After: fields})
}

// customer returns a workspace's account and creates its customer at Stripe if needed.
func (s *Service) customer(ctx context.Context, workspace tenants.Workspace, email string) (Account, error) {
	account, err := s.deps.Store.Account(ctx, workspace.ID)
	if err != nil || account.Customer != "" {
		return account, err
	}
	made, err := s.stripe.customer(ctx, workspace.ID, workspace.Name, email)
	if err != nil {
		return Account{}, err
	}
	account.Customer, err = s.deps.Store.KeepCustomer(ctx, workspace.ID, made)
	return account, err
}

// Portal returns the address where a person changes a workspace's subscription and payment method. It returns
// tenants.ErrBillingOff, and tenants.ErrNotFound before the first checkout.
func (s *Service) Portal(ctx context.Context, workspace tenants.WorkspaceID) (string, error) {
	if !s.IsOn() {
		return "", tenants.ErrBillingOff
	}
	account, err := s.deps.Store.Account(ctx, workspace)
	if err != nil {
		return "", err
	}
	if account.Customer == "" {
		return "", fmt.Errorf("portal: no customer: %w", tenants.ErrNotFound)
	}
	address, err := s.stripe.portal(ctx, account.Customer)
	if err != nil {
		return "", err
	}
	return address, s.deps.Store.Note(ctx, workspace, tenants.Change{Action: tenants.PortalOpened, Target: account.Customer})
}

// Origins returns the origins to which Checkout and Portal redirect.
func (s *Service) Origins() []string {
	if s.config.APIBase == "" {
		return []string{"https://checkout.stripe.com", "https://billing.stripe.com"}
	}
	base, err := url.Parse(s.config.APIBase)
	if err != nil {
		return nil
	}
	return []string{base.Scheme + "://" + base.Host}
}

// Returned reads a workspace's state again when a person returns from Stripe, because Stripe's notice may not
// have arrived yet.
func (s *Service) Returned(ctx context.Context, workspace tenants.WorkspaceID) error {
	if !s.IsOn() {
		return nil
	}
	return s.Read(ctx, workspace)
}

// unix returns a time of Stripe; zero if absent.
func unix(seconds int64) time.Time {
	if seconds == 0 {
		return time.Time{}
	}
	return time.Unix(seconds, 0).UTC()
}

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
