package billing

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/stripe/stripe-go/v76"

	"palimpsest/tenants"
)

// Store stores the workspaces' billing data.
type Store interface {
	// Account returns a workspace's account, by default one with the plan Free.
	Account(ctx context.Context, tenant tenants.Tenant) (Account, error)

	// KeepCustomer stores Stripe's customer of a workspace, and returns the one that was stored first.
	KeepCustomer(ctx context.Context, workspace tenants.WorkspaceID, customer string) (string, error)

	// WorkspaceOf returns a customer's workspace, or tenants.ErrNotFound.
	WorkspaceOf(ctx context.Context, customer string) (tenants.WorkspaceID, error)

	// Members returns a workspace's number of members.
	Members(ctx context.Context, workspace tenants.WorkspaceID) (int64, error)

	// Note adds a change to a workspace's audit log.
	Note(ctx context.Context, workspace tenants.WorkspaceID, change tenants.Change) error

	// Restrain stores a workspace's restraint and notifies every proxy.
	Restrain(ctx context.Context, workspace tenants.WorkspaceID, restraint tenants.Restraint) error

	// Tell calls send with the addresses of the people who pay, once for each trouble, in the transaction
	// that records it as told.
	Tell(ctx context.Context, workspace tenants.WorkspaceID, trouble string, send func(tenant tenants.Tenant, to []string) error) error

	// Due returns workspaces whose usage has changed or whose next look is due.
	Due(ctx context.Context, now time.Time, limit int) ([]tenants.WorkspaceID, error)

	// LookAt marks a workspace's usage as looked at, and makes the workspace due at once until LookAgain sets
	// another time.
	LookAt(ctx context.Context, workspace tenants.WorkspaceID) error
	LookAgain(ctx context.Context, workspace tenants.WorkspaceID, at time.Time) error

	// KeepNotice stores a notice and, if it is new, runs then in the same transaction.
	KeepNotice(ctx context.Context, workspace tenants.WorkspaceID, notice Notice, then func(tenant tenants.Tenant) error) error

	// IsDone reports whether a reading began after a notice came.
	IsDone(ctx context.Context, workspace tenants.WorkspaceID, notice uuid.UUID) (bool, error)

	// BeginReading returns the number of a reading that begins now.
	BeginReading(ctx context.Context, workspace tenants.WorkspaceID) (int64, error)

	// KeepReading stores a reading's result, unless one that began later has been stored, and records the
	// change. It also marks the notices that came before began as done.
	KeepReading(ctx context.Context, workspace tenants.WorkspaceID, reading int64, began time.Time, state State) error

	// Used returns the counted exchanges of the hours that began in a span of time.
	Used(ctx context.Context, workspace tenants.WorkspaceID, from, to time.Time) (int64, error)

	// CutEvents makes meter events of all usage that must be reported to Stripe and is not in an event yet.
	CutEvents(ctx context.Context, workspace tenants.WorkspaceID) error

	// Unsent returns the meter events that Stripe may not have, oldest first.
	Unsent(ctx context.Context, workspace tenants.WorkspaceID) ([]MeterEvent, error)

	// Trying stores an event's timestamp and the time of its first attempt.
	Trying(ctx context.Context, workspace tenants.WorkspaceID, event MeterEvent) error

	// Sent marks an event as received by Stripe.
	Sent(ctx context.Context, workspace tenants.WorkspaceID, event uuid.UUID, at time.Time) error

	// SentAt returns the exchanges of all events with a time that Stripe has.
	SentAt(ctx context.Context, workspace tenants.WorkspaceID, customer string, at time.Time) (int64, error)

	// AskEnd records that a customer's subscriptions must end, until Stripe has ended them.
	AskEnd(ctx context.Context, tenant tenants.Tenant, end End) error

	// DueEnds returns the ends due at a time, the oldest first.
	DueEnds(ctx context.Context, now time.Time, limit int) ([]End, error)

	// DelayEnd schedules an end's next try, not before a time.
	DelayEnd(ctx context.Context, id uuid.UUID, until time.Time) error

	// CloseEnd removes an end and tells the operators its outcome and the reason.
	CloseEnd(ctx context.Context, end End, ended bool, why string) error
}

// Deps are a Service's dependencies.
type Deps struct {
	Store Store

	// Enqueue schedules Read for a notice, if and only if the tenant's transaction is committed.
	Enqueue func(ctx context.Context, tenant tenants.Tenant, notice uuid.UUID) error

	// Mail queues a mail in the tenant's transaction; nil disables mails.
	Mail func(ctx context.Context, tenant tenants.Tenant, mail tenants.Mail) error

	Log *slog.Logger
	Now func() time.Time
}

// Service is billing. If it is off, nothing is sold and no traffic is restrained.
type Service struct {
	config Config
	deps   Deps
	stripe *gateway

	mu       sync.Mutex
	offers   []Offer
	offersAt time.Time
}

// New returns the service of a valid Config.
func New(config Config, deps Deps) *Service {
	service := &Service{config: config, deps: deps}
	if config.IsOn() {
		service.stripe = newGateway(config)
	}
	return service
}

// IsOn reports whether billing is on.
func (s *Service) IsOn() bool { return s.config.IsOn() }

// Errors for callers.
var (
	// ErrSignature is the error for a notice that is not Stripe's, or too old, or from the future.
	ErrSignature = errors.New("notice is not signed by Stripe")

	// errVersion is the error for a notice of another API version.
	errVersion = errors.New("notice is of another API version")
)

// asStripe returns the Stripe error in an error.
func asStripe(err error) (*stripe.Error, bool) {
	failure, is := errors.AsType[*stripe.Error](err)
	return failure, is
}

const (
	// shownInvoices limits the invoices shown.
	shownInvoices = 12
)

// Overview is a workspace's plan as people see it, from stored data only.
type Overview struct {
	Account

	Used     int64 // counted exchanges since From
	Quota    int64 // on the plan Free; 0 if unlimited
	From, To time.Time
	Deadline time.Time // when a failed payment restrains traffic; zero without a failed payment
}

// Overview returns a workspace's plan and its usage. If billing is off the plan is Local.
func (s *Service) Overview(ctx context.Context, workspace tenants.WorkspaceID) (Overview, error) {
	if !s.IsOn() {
		return Overview{Account: Account{Workspace: workspace, State: State{Plan: Local}}}, nil
	}
	account, err := s.deps.Store.Account(ctx, workspace)
	if err != nil {
		return Overview{}, err
	}
	overview := Overview{Account: account, Deadline: account.Deadline(s.config.Grace)}
	overview.From, overview.To = account.span(s.deps.Now())
	if account.Plan == Free {
		overview.Quota = FreeExchanges
	}
	overview.Used, err = s.deps.Store.Used(ctx, workspace, overview.From, overview.To)
	return overview, err
}

// Forecast returns the expected usage at the end of the period at the current rate. There is no forecast in
// the first quarter of the period.
func (o Overview) Forecast(now time.Time) (exchanges int64, ok bool) {
	return tenants.Forecast(o.Used, o.From, o.To, now)
}

// Invoice is an invoice of Stripe.
type Invoice struct {
	Number   string
	At       time.Time
	Total    int64  // in the smallest unit of its currency, as for Amount
	Currency string // ISO 4217, in lower case
	Status   string // Stripe's status: open, paid, uncollectible, void
	Link     string // the page at Stripe to see and pay it; "" if absent
}

// Invoices returns a workspace's newest invoices from Stripe.
func (s *Service) Invoices(ctx context.Context, account Account) ([]Invoice, error) {
	if !s.IsOn() || account.Customer == "" {
		return nil, nil
	}
	return s.stripe.invoices(ctx, account.Customer)
}

func (g *gateway) invoices(ctx context.Context, customer string) ([]Invoice, error) {
	params := &stripe.InvoiceListParams{Customer: new(customer)}
	params.Context = ctx
	params.Limit, params.Single = new(int64(shownInvoices)), true
	var invoices []Invoice
	found := g.api.Invoices.List(params)
	for found.Next() {
		one := found.Invoice()
		if one.Status == stripe.InvoiceStatusDraft {
			continue
		}
		invoices = append(invoices, Invoice{
			Number: one.Number, At: unix(one.Created), Total: one.Total, Currency: string(one.Currency), Status: string(one.Status),
			Link: one.HostedInvoiceURL,
		})
	}
	if err := found.Err(); err != nil {
		return nil, fmt.Errorf("read invoices: %w", err)
	}
	return invoices, nil
}

// Warning is the warning at the top of every page.
type Warning struct {
	Reason tenants.Reason
	On     time.Time // payment: when traffic is restrained, or was; quota: when the new month begins
	Now    bool      // traffic is restrained
}

// Warning returns the warning about the plan, or false.
func (o Overview) Warning() (Warning, bool) {
	restrained := o.Restraint.Reason != tenants.Unrestrained
	switch {
	case !o.Deadline.IsZero():
		return Warning{Reason: tenants.PaymentFailed, On: o.Deadline, Now: restrained}, true
	case o.Restraint.Reason == tenants.QuotaUsed:
		return Warning{Reason: tenants.QuotaUsed, On: o.To, Now: true}, true
	}
	return Warning{}, false
}

// Config configures billing.
type Config struct {
	APIKey        string // Stripe's secret or restricted key; "" turns billing off
	WebhookSecret string // of the webhook endpoint: whsec_…; of several endpoints, separated by commas
	APIBase       string // base URL of Stripe's API; "" means Stripe's own
	Catalog       Catalog

	Meter      string        // Stripe's id of the meter
	MeterEvent string        // its event_name
	TrialDays  int           // of a workspace's first subscription; 0 disables trials
	Tax        bool          // Stripe computes and collects taxes
	Grace      time.Duration // from a failed payment until traffic is restrained

	// PublicURL is the product's address for people, without a trailing slash.
	PublicURL string
}

// DefaultConfig returns the settings with billing off.
func DefaultConfig() Config {
	return Config{MeterEvent: "palimpsest_exchanges", Tax: true, Grace: 14 * 24 * time.Hour}
}

// Upper limits of settings.
const (
	maxTrialDays = 730 // Stripe's own limit
	maxGrace     = 90 * 24 * time.Hour
)

// IsOn reports whether billing is on.
func (c Config) IsOn() bool { return c.APIKey != "" }

// Validate returns an error with the environment name of a wrong or missing setting if billing is on. The
// message never contains a secret.
func (c Config) Validate() error {
	if !c.IsOn() {
		return nil
	}
	switch {
	case len(c.webhookSecrets()) == 0:
		return errors.New("STRIPE_WEBHOOK_SECRET: is empty; name the signing secret of the webhook endpoint, whsec_…")
	case len(c.Catalog.sold()) == 0:
		return errors.New("STRIPE_PRO_PRICE: is empty, and STRIPE_TEAM_PRICE too; name a price of Stripe, price_…")
	case c.isMetered() && c.Meter == "":
		return errors.New("STRIPE_METER: is empty; a usage price needs the id of its meter, mtr_…")
	case c.isMetered() && c.MeterEvent == "":
		return errors.New("STRIPE_METER_EVENT: is empty; name the event_name of the meter")
	case c.TrialDays < 0 || c.TrialDays > maxTrialDays:
		return fmt.Errorf("STRIPE_TRIAL_DAYS: %d is not between 0 and %d", c.TrialDays, maxTrialDays)
	case c.Grace < 0 || c.Grace > maxGrace:
		return fmt.Errorf("PALIMPSEST_BILLING_GRACE: %s is not between 0s and %s", c.Grace, maxGrace)
	}
	return nil
}

// webhookSecrets returns the secrets of the webhook endpoints, without empty ones because anyone could sign
// with those.
func (c Config) webhookSecrets() []string {
	return strings.FieldsFunc(c.WebhookSecret, func(r rune) bool { return r == ',' || r == ' ' })
}

// isMetered reports whether usage is reported to Stripe.
func (c Config) isMetered() bool { return c.Catalog.Pro.Usage != "" || c.Catalog.Team.Usage != "" }
