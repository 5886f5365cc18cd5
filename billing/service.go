package billing

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"

	"palimpsest/tenants"
)

// Store keeps what is known of workspaces.
type Store interface {
	// Account returns a workspace's account: that of the plan Free where nothing is
	// known of it.
	Account(ctx context.Context, tenant tenants.Tenant) (Account, error)

	// KeepCustomer keeps Stripe's customer of a workspace, and returns the one that was
	// kept first.
	KeepCustomer(ctx context.Context, workspace tenants.WorkspaceID, customer string) (string, error)

	// WorkspaceOf returns whose customer someone is, or tenants.ErrNotFound.
	WorkspaceOf(ctx context.Context, customer string) (tenants.WorkspaceID, error)

	// Members returns how many members a workspace has.
	Members(ctx context.Context, workspace tenants.WorkspaceID) (int64, error)

	// Note notes in a workspace's audit log what someone has done.
	Note(ctx context.Context, workspace tenants.WorkspaceID, change tenants.Change) error

	// Restrain keeps what holds back a workspace's traffic and tells every proxy.
	Restrain(ctx context.Context, workspace tenants.WorkspaceID, restraint tenants.Restraint) error

	// Tell has send called with the addresses of those who pay, once for each trouble,
	// in the transaction that notes that they were told.
	Tell(ctx context.Context, workspace tenants.WorkspaceID, trouble string, send func(tenant tenants.Tenant, to []string) error) error

	// Due returns workspaces that are to be looked at: what they use has changed, or
	// their time has come.
	Due(ctx context.Context, now time.Time, limit int) ([]tenants.WorkspaceID, error)

	// LookAt notes what a workspace has used as looked at, and has it due again at once
	// until LookAgain sets another time.
	LookAt(ctx context.Context, workspace tenants.WorkspaceID) error
	LookAgain(ctx context.Context, workspace tenants.WorkspaceID, at time.Time) error

	// KeepNotice keeps a notice, and runs then in the same transaction if it is new.
	KeepNotice(ctx context.Context, workspace tenants.WorkspaceID, notice Notice, then func(tenant tenants.Tenant) error) error

	// IsDone reports whether Stripe has been read since a notice came.
	IsDone(ctx context.Context, workspace tenants.WorkspaceID, notice uuid.UUID) (bool, error)

	// BeginReading returns the number of a reading that begins now.
	BeginReading(ctx context.Context, workspace tenants.WorkspaceID) (int64, error)

	// KeepReading keeps what a reading has found, unless one that began later has been
	// kept, and notes the change. Notices that came before began are done then.
	KeepReading(ctx context.Context, workspace tenants.WorkspaceID, reading int64, began time.Time, state State) error

	// Used returns the exchanges that count of the hours that began in a span of time.
	Used(ctx context.Context, workspace tenants.WorkspaceID, from, to time.Time) (int64, error)

	// CutEvents makes meter events of all that is to be told to Stripe and is in none.
	CutEvents(ctx context.Context, workspace tenants.WorkspaceID) error

	// Unsent returns the meter events that Stripe may not have, the oldest first.
	Unsent(ctx context.Context, workspace tenants.WorkspaceID) ([]MeterEvent, error)

	// Trying notes the time that an event is sent with and when it was first tried.
	Trying(ctx context.Context, workspace tenants.WorkspaceID, event MeterEvent) error

	// Sent notes that Stripe has an event.
	Sent(ctx context.Context, workspace tenants.WorkspaceID, event uuid.UUID, at time.Time) error

	// SentAt returns the exchanges of all events that Stripe has for a time.
	SentAt(ctx context.Context, workspace tenants.WorkspaceID, customer string, at time.Time) (int64, error)

	// end, until Stripe has ended them.
	// AskEnd keeps that a customer's subscriptions are to end.
	AskEnd(ctx context.Context, tenant tenants.Tenant, end End) error

	// DueEnds returns those that are to be tried at a time, the oldest first.
	DueEnds(ctx context.Context, now time.Time, limit int) ([]End, error)

	// DelayEnd has one tried again, not before a time.
	DelayEnd(ctx context.Context, id uuid.UUID, until time.Time) error

	// CloseEnd takes one out and tells the operators what became of it, and why.
	CloseEnd(ctx context.Context, end End, ended bool, why string) error
}

// Deps are what a Service works with.
type Deps struct {
	Store Store

	// Enqueue has Read called for a notice, if and only if the tenant's transaction is
	// committed.
	Enqueue func(ctx context.Context, tenant tenants.Tenant, notice uuid.UUID) error

	// Mail queues a mail in the tenant's transaction; nil: no one is written to.
	Mail func(ctx context.Context, tenant tenants.Tenant, mail tenants.Mail) error

	Log *slog.Logger
	Now func() time.Time
}

// Service is billing. Where it is off, everything is allowed and nothing is sold.
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

// IsOn reports whether there is billing.
func (s *Service) IsOn() bool { return s.config.IsOn() }
