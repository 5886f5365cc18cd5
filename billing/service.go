package billing

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"

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
