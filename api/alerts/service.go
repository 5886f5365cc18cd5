package alerts

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/google/uuid"

	"palimpsest/api/upstream"
	"palimpsest/pipeline/jobs"
	"palimpsest/tenants"
	"palimpsest/tenants/guard"
)

// JobDeliver is the kind of the jobs that deliver alerts. The lane of such a job is the id of
// the delivery.
const JobDeliver jobs.Kind = "alert_delivery"

const (
	// Every is the interval of the passes.
	Every = 30 * time.Second
	// Timeout bounds one pass.
	Timeout = 5 * time.Minute

	// DeliverTimeout bounds a job of JobDeliver.
	DeliverTimeout = time.Minute
	// DeliverAttempts are retries for a database that is away, because a receiver's failure doesn't fail the
	// job.
	DeliverAttempts = 50

	defaultPatience = 10 * time.Second
	keepLog         = 40 * 24 * time.Hour // longer than any period of a budget
	logLength       = 50                  // deliveries on display
)

// Alerts stores alert channels and the state of their deliveries.
type Alerts interface {
	// Channels and settings
	AlertChannels(ctx context.Context, workspace tenants.WorkspaceID) ([]tenants.AlertChannel, error)
	AddAlertChannel(ctx context.Context, workspace tenants.WorkspaceID, channel tenants.AlertChannel) error
	ChangeAlertChannel(ctx context.Context, workspace tenants.WorkspaceID, id uuid.UUID, change func(tenants.AlertChannel) (tenants.AlertChannel, error)) error
	RemoveAlertChannel(ctx context.Context, workspace tenants.WorkspaceID, id uuid.UUID) error
	AlertSettings(ctx context.Context, workspace tenants.WorkspaceID) (tenants.AlertSettings, error)
	SaveAlertSettings(ctx context.Context, workspace tenants.WorkspaceID, settings tenants.AlertSettings) error
	AlertedWorkspaces(ctx context.Context) ([]tenants.WorkspaceID, error)

	// Raised alerts and their deliveries
	MarkAlert(ctx context.Context, tenant tenants.Tenant, alert tenants.Alert, at time.Time) (bool, error)
	ClearAlertMarks(ctx context.Context, workspace tenants.WorkspaceID, rule tenants.AlertRule, still []string, before time.Time) error
	ForgetAlerts(ctx context.Context, workspace tenants.WorkspaceID, before time.Time) error
	AddAlertDelivery(ctx context.Context, tenant tenants.Tenant, delivery tenants.AlertDelivery) error
	AlertDelivery(ctx context.Context, workspace tenants.WorkspaceID, id uuid.UUID) (tenants.AlertDelivery, tenants.AlertChannel, error)
	AlertDeliveries(ctx context.Context, workspace tenants.WorkspaceID, limit int) ([]tenants.AlertDelivery, error)
	OverdueAlertDeliveries(ctx context.Context, workspace tenants.WorkspaceID, before time.Time, limit int) ([]tenants.AlertDelivery, error)
	NoteAlertAttempt(ctx context.Context, workspace tenants.WorkspaceID, id uuid.UUID, attempt tenants.AlertAttempt) error
	RetryAlertDelivery(ctx context.Context, tenant tenants.Tenant, id uuid.UUID, at, until time.Time) error

	// Sources of the rules, beside keys and usage
	RecentFailures(ctx context.Context, workspace tenants.WorkspaceID, since time.Time) (exchanges, failures int64, err error)
	HeldUp(ctx context.Context, workspace tenants.WorkspaceID, since time.Time) (tenants.HeldUp, error)
	UntoldEntries(ctx context.Context, workspace tenants.WorkspaceID, since time.Time, actions []tenants.Action) ([]tenants.AuditEntry, error)
	IsOperator(ctx context.Context, user uuid.UUID) (bool, error)
}

// Keys are the API keys of a workspace.
type Keys interface {
	APIKeys(ctx context.Context, workspace tenants.WorkspaceID) ([]tenants.APIKey, error)
}

// Workspaces returns a workspace's name and members.
type Workspaces interface {
	Members(ctx context.Context, workspace tenants.WorkspaceID) ([]tenants.Member, error)
	WorkspaceName(ctx context.Context, workspace tenants.WorkspaceID) (string, error)
}

// Store holds all persistent data. Every field must be set.
type Store struct {
	Alerts
	Keys
	tenants.UsageReader
	Workspaces
	tenants.Transactor

	// Budgets returns the budgets of a workspace beside those of its keys, and Spend the spend against both.
	Budgets func(ctx context.Context, workspace tenants.WorkspaceID) ([]tenants.Budget, error)
	Spend   func(ctx context.Context, workspace tenants.WorkspaceID, who tenants.Spender, day, month time.Time) (inDay, inMonth int64, err error)
}

// Config holds a Service's dependencies. All but Health must be set.
type Config struct {
	Store  Store
	Sealer tenants.Sealer
	Queue  jobs.Queue
	Mailer tenants.MailSender

	// HasMail says that the Mailer has a mail server.
	HasMail bool

	// Health returns the newest health checks of the installation; no checks if nil.
	Health func(ctx context.Context) []tenants.Check

	// Guard decides which hosts webhooks may reach; if it allows private addresses, also without TLS.
	Guard *guard.Guard

	PublicURL string        // base URL of the pages, without a slash at its end
	Patience  time.Duration // for a receiver's answer; 0 means 10 seconds
	Log       *slog.Logger
	Now       func() time.Time
}

// Service manages channels and sends alerts to them.
type Service struct {
	config Config
	client *http.Client
}

// New returns a Service.
func New(config Config) *Service {
	config.Patience = cmp.Or(config.Patience, defaultPatience)
	return &Service{config: config, client: upstream.NewGuardedClient(config.Guard, config.Patience)}
}

// Find returns a workspace's alert settings, and its newest deliveries.
func (s *Service) Find(ctx context.Context, workspace tenants.WorkspaceID) (tenants.Alerting, error) {
	found := tenants.Alerting{HasMail: s.config.HasMail}
	var err error
	if found.Settings, err = s.config.Store.AlertSettings(ctx, workspace); err != nil {
		return tenants.Alerting{}, err
	}
	if found.Channels, err = s.config.Store.AlertChannels(ctx, workspace); err != nil {
		return tenants.Alerting{}, err
	}
	if found.Deliveries, err = s.config.Store.AlertDeliveries(ctx, workspace, logLength); err != nil {
		return tenants.Alerting{}, err
	}
	found.Members, err = s.config.Store.Members(ctx, workspace)
	return found, err
}

// Deliveries returns up to limit deliveries, the newest first.
func (s *Service) Deliveries(ctx context.Context, workspace tenants.WorkspaceID, limit int) ([]tenants.AlertDelivery, error) {
	return s.config.Store.AlertDeliveries(ctx, workspace, limit)
}

// Interface guard.
var _ tenants.Alerts = (*Service)(nil)
