package billing

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/stripe/stripe-go/v76"

	"palimpsest/tenants"
)

const (
	stripeTimeout = 20 * time.Second // for one call
	stripeRetries = 2                // after a broken call, by Stripe's library
	stripeAPI     = "https://api.stripe.com"
)

// gateway is Stripe as this package uses it.
type gateway struct {
	api    stripeClients
	config Config
}

func newGateway(config Config) *gateway {
	base := config.APIBase
	if base == "" {
		base = stripeAPI
	}
	backend := stripe.GetBackendWithConfig(stripe.APIBackend, &stripe.BackendConfig{
		URL: new(base), HTTPClient: &http.Client{Timeout: stripeTimeout},
		MaxNetworkRetries: new(int64(stripeRetries)), EnableTelemetry: new(false),
		LeveledLogger: &stripe.LeveledLogger{Level: stripe.LevelNull}, // its lines contain customers
	})
	return &gateway{api: newStripeClients(backend, config.APIKey), config: config}
}

// customer creates a workspace's customer. A repetition soon afterwards returns the same one.
func (g *gateway) customer(ctx context.Context, workspace tenants.WorkspaceID, name, email string) (string, error) {
	params := &stripe.CustomerParams{Name: new(name), Email: new(email)}
	params.Context = ctx
	params.AddMetadata("workspace", workspace.String())
	params.SetIdempotencyKey("customer/" + uuid.NewSHA1(uuid.UUID(workspace), []byte(name+"\x00"+email)).String())
	made, err := g.api.Customers.New(params)
	if err != nil {
		return "", fmt.Errorf("make customer: %w", err)
	}
	return made.ID, nil
}

// order is a purchase to open a checkout for.
type order struct {
	workspace tenants.WorkspaceID
	customer  string
	plan      Plan
	seats     int64
	trialDays int
}

// checkout returns the address to pay for an order.
func (g *gateway) checkout(ctx context.Context, order order) (string, error) {
	prices := g.config.Catalog.prices(order.plan)
	params := &stripe.CheckoutSessionParams{
		Mode: new(string(stripe.CheckoutSessionModeSubscription)), Customer: new(order.customer),
		ClientReferenceID: new(order.workspace.String()),
		LineItems:         []*stripe.CheckoutSessionLineItemParams{{Price: new(prices.Plan[0]), Quantity: new(order.seats)}},
		SuccessURL:        new(g.config.PublicURL + "/billing?checkout=done"),
		CancelURL:         new(g.config.PublicURL + "/billing"),
		SubscriptionData: &stripe.CheckoutSessionSubscriptionDataParams{
			Metadata: map[string]string{"workspace": order.workspace.String(), "plan": string(order.plan)},
		},
	}
	params.Context = ctx
	if prices.Usage != "" {
		params.LineItems = append(params.LineItems, &stripe.CheckoutSessionLineItemParams{Price: new(prices.Usage)})
	}
	if order.trialDays > 0 {
		params.SubscriptionData.TrialPeriodDays = new(int64(order.trialDays))
	}
	if g.config.Tax {
		params.AutomaticTax = &stripe.CheckoutSessionAutomaticTaxParams{Enabled: new(true)}
		params.TaxIDCollection = &stripe.CheckoutSessionTaxIDCollectionParams{Enabled: new(true)}
		// The customer's address and name are kept because they decide the tax.
		params.CustomerUpdate = &stripe.CheckoutSessionCustomerUpdateParams{Address: new("auto"), Name: new("auto")}
	}
	session, err := g.api.CheckoutSessions.New(params)
	if err != nil {
		return "", fmt.Errorf("open checkout: %w", err)
	}
	return session.URL, nil
}

// portal returns the address where a customer changes their subscription.
func (g *gateway) portal(ctx context.Context, customer string) (string, error) {
	params := &stripe.BillingPortalSessionParams{Customer: new(customer), ReturnURL: new(g.config.PublicURL + "/billing")}
	params.Context = ctx
	session, err := g.api.BillingPortalSessions.New(params)
	if err != nil {
		return "", fmt.Errorf("open portal: %w", err)
	}
	return session.URL, nil
}

// subscription returns the customer's subscription that counts: the newest that gives a plan, or else the
// newest that ever did. It returns nil without one.
func (g *gateway) subscription(ctx context.Context, customer string) (*stripe.Subscription, error) {
	params := &stripe.SubscriptionListParams{Customer: new(customer), Status: new("all")}
	params.Context = ctx
	params.Limit = new(int64(100))
	var all []*stripe.Subscription
	found := g.api.Subscriptions.List(params)
	for found.Next() {
		all = append(all, found.Subscription())
	}
	if err := found.Err(); err != nil {
		return nil, fmt.Errorf("read subscriptions: %w", err)
	}
	// These subscriptions never began, so nothing was paid or tried in them.
	all = slices.DeleteFunc(all, func(one *stripe.Subscription) bool {
		return one.Status == stripe.SubscriptionStatusIncomplete || one.Status == stripe.SubscriptionStatusIncompleteExpired
	})
	if len(all) == 0 {
		return nil, nil //nolint:nilnil // no customer is not a failure
	}
	return slices.MaxFunc(all, compareSubscriptions), nil
}

func compareSubscriptions(a, b *stripe.Subscription) int {
	aLive, bLive := Status(a.Status).IsLive(), Status(b.Status).IsLive()
	switch {
	case aLive != bLive && aLive:
		return 1
	case aLive != bLive:
		return -1
	case a.Created != b.Created:
		return int(a.Created - b.Created)
	}
	return strings.Compare(a.ID, b.ID)
}

// end ends all subscriptions of a customer at once, with an invoice of the usage, and every open checkout. It
// returns how many subscriptions it ended. It may be repeated at any point, because it skips ended
// subscriptions.
func (g *gateway) end(ctx context.Context, customer string) (ended int, err error) {
	open := &stripe.CheckoutSessionListParams{Customer: new(customer), Status: new(string(stripe.CheckoutSessionStatusOpen))}
	open.Context = ctx
	sessions := g.api.CheckoutSessions.List(open)
	expire := &stripe.CheckoutSessionExpireParams{}
	expire.Context = ctx
	for sessions.Next() {
		if _, err := g.api.CheckoutSessions.Expire(sessions.CheckoutSession().ID, expire); err != nil {
			return ended, fmt.Errorf("expire checkout: %w", err)
		}
	}
	if err := sessions.Err(); err != nil && !isGone(err) {
		return ended, fmt.Errorf("read checkouts: %w", err)
	}
	params := &stripe.SubscriptionListParams{Customer: new(customer)} // Stripe leaves out ended ones
	params.Context = ctx
	cancel := &stripe.SubscriptionCancelParams{InvoiceNow: new(true)}
	cancel.Context = ctx
	running := g.api.Subscriptions.List(params)
	for running.Next() {
		if _, err := g.api.Subscriptions.Cancel(running.Subscription().ID, cancel); err != nil && !isGone(err) {
			return ended, fmt.Errorf("end subscription: %w", err)
		}
		ended++
	}
	if err := running.Err(); err != nil && !isGone(err) {
		return ended, fmt.Errorf("read subscriptions: %w", err)
	}
	return ended, nil
}

// isGone reports whether an object does not exist at Stripe, or no longer.
func isGone(err error) bool {
	failure, is := asStripe(err)
	return is && failure.Code == stripe.ErrorCodeResourceMissing
}

// owedSince returns since when a subscription's oldest invoice is owed after an attempted payment; zero
// without such an invoice.
func (g *gateway) owedSince(ctx context.Context, subscription string) (time.Time, error) {
	params := &stripe.InvoiceListParams{Subscription: new(subscription), Status: new("open")}
	params.Context = ctx
	params.Limit = new(int64(100))
	var oldest time.Time
	found := g.api.Invoices.List(params)
	for found.Next() {
		invoice := found.Invoice()
		since := time.Unix(invoice.Created, 0).UTC()
		if invoice.StatusTransitions != nil && invoice.StatusTransitions.FinalizedAt > 0 {
			since = time.Unix(invoice.StatusTransitions.FinalizedAt, 0).UTC()
		}
		if invoice.Attempted && !invoice.Paid && (oldest.IsZero() || since.Before(oldest)) {
			oldest = since
		}
	}
	if err := found.Err(); err != nil {
		return time.Time{}, fmt.Errorf("read invoices: %w", err)
	}
	return oldest, nil
}

// setSeats sets the number of seats of a subscription's item; Stripe prorates the current period.
func (g *gateway) setSeats(ctx context.Context, item string, seats int64) error {
	params := &stripe.SubscriptionItemParams{Quantity: new(seats), ProrationBehavior: new("create_prorations")}
	params.Context = ctx
	if _, err := g.api.SubscriptionItems.Update(item, params); err != nil {
		return fmt.Errorf("set seats to %d: %w", seats, err)
	}
	return nil
}

// report reports usage to Stripe. It succeeds if Stripe already has the event.
func (g *gateway) report(ctx context.Context, event MeterEvent) error {
	params := &stripe.BillingMeterEventParams{
		EventName: new(g.config.MeterEvent), Identifier: new(event.ID.String()), Timestamp: new(event.At.Unix()),
		Payload: map[string]string{"stripe_customer_id": event.Customer, "value": strconv.FormatInt(event.Exchanges, 10)},
	}
	params.Context = ctx
	if _, err := g.api.BillingMeterEvents.New(params); err != nil && !isKnownEvent(err) {
		return fmt.Errorf("report %d exchanges: %w", event.Exchanges, err)
	}
	return nil
}

// isKnownEvent reports whether Stripe refused an event because it already has it. It compares the message,
// because there is no error code.
func isKnownEvent(err error) bool {
	failure, is := asStripe(err)
	return is && failure.HTTPStatusCode == http.StatusBadRequest && strings.Contains(failure.Msg, "already exists with identifier")
}

// reported returns Stripe's count for a customer in the hour that begins at a time.
func (g *gateway) reported(ctx context.Context, customer string, hour time.Time) (int64, error) {
	params := &stripe.BillingMeterEventSummaryListParams{
		ID: new(g.config.Meter), Customer: new(customer),
		StartTime: new(hour.Unix()), EndTime: new(hour.Add(time.Hour).Unix()),
	}
	params.Context = ctx
	var sum float64
	found := g.api.BillingMeterEventSummaries.List(params)
	for found.Next() {
		sum += found.BillingMeterEventSummary().AggregatedValue
	}
	if err := found.Err(); err != nil {
		return 0, fmt.Errorf("read what was reported: %w", err)
	}
	return int64(sum), nil
}
