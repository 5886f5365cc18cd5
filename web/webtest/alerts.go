package webtest

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"palimpsest/api/alerts"
	"palimpsest/pipeline/jobs"
	"palimpsest/pipeline/jobs/jobsdb"
	"palimpsest/tenants"
	"palimpsest/tenants/guard"
	"palimpsest/tenants/tenantsdb"
)

// useAlerts creates the alerting service. Its jobs wait until Deliver is called.
func (p *Product) useAlerts(t testing.TB) {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	queue := jobsdb.New(jobsdb.Config{Pool: p.DB.WorkPool(), Joined: p.DB.Joined, Metrics: jobsdb.NewMetrics(prometheus.NewRegistry()), Log: log, Now: time.Now, Idle: true})
	p.Alerting = alerts.New(alerts.Config{
		Store: alerts.Store{Alerts: p.DB.Alerts, Keys: p.DB.APIKeys, Budgets: p.DB.Data.Budgets, Spend: p.DB.Data.Spend, UsageReader: p.DB.Usage, Workspaces: p.DB.Workspaces, Transactor: p.DB}, Sealer: p.vault, Queue: queue, Mailer: keptMails{p.DB}, Guard: guard.New(true), PublicURL: PublicURL, Log: log, Now: time.Now,
	})
	queue.Handle(alerts.JobDeliver, jobs.Limits{Timeout: alerts.DeliverTimeout, Attempts: alerts.DeliverAttempts}, p.Alerting.Deliver)
	if err := queue.Open(); err != nil {
		t.Fatal(err)
	}
}

// keptMails keeps alerts with the other mails.
type keptMails struct{ db *tenantsdb.DB }

// Send implements alerts.Mailer.
func (k keptMails) Send(ctx context.Context, _ uuid.UUID, mail tenants.Mail) error {
	return k.db.Mail.QueueMail(ctx, nil, mail)
}

// KeepAlerts gives a person's workspace an alert channel with a failed delivery, and returns both ids.
func KeepAlerts(t testing.TB, of *Person) (channel, delivery string) {
	t.Helper()
	kept := tenants.AlertChannel{
		ID: uuid.Must(uuid.NewV7()), Kind: tenants.AlertEmail, Name: "mails", User: of.User.ID, Rules: []tenants.AlertRule{tenants.AlertBudget}, CreatedAt: time.Now(),
	}
	failed := tenants.AlertDelivery{
		Alert: tenants.Alert{Rule: tenants.AlertBudget, Title: "API key laptop has used 80 % of its daily budget", Path: "/keys"},
		ID:    uuid.Must(uuid.NewV7()), Channel: kept.ID, CreatedAt: time.Now(), State: tenants.DeliveryFailed, Attempts: 17, Status: 503, Answer: "later",
	}
	if err := errors.Join(of.DB.Alerts.AddAlertChannel(t.Context(), of.Workspace.ID, kept), of.DB.Alerts.AddAlertDelivery(t.Context(), of.Workspace.ID, failed)); err != nil {
		t.Fatal(err)
	}
	return kept.ID.String(), failed.ID.String()
}
