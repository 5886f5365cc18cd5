package alerts_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"palimpsest/api/alerts"
	"palimpsest/pipeline/jobs"
	"palimpsest/pipeline/jobs/jobsdb"
	"palimpsest/tenants"
)

// replica returns another process that can run the jobs.
func (b *bundle) replica(t *testing.T) *jobsdb.Runner {
	t.Helper()
	runner := jobsdb.New(jobsdb.Config{
		Pool: b.database.DB.WorkPool(), Joined: b.Joined, Metrics: jobsdb.NewMetrics(prometheus.NewRegistry()), Log: slog.New(slog.DiscardHandler), Now: time.Now,
	})
	config := b.config
	config.Queue = runner
	runner.Handle(alerts.JobDeliver, jobs.Limits{Timeout: alerts.DeliverTimeout, Attempts: alerts.DeliverAttempts}, alerts.New(config).Deliver)
	if err := runner.Open(); err != nil {
		t.Fatal(err)
	}
	return runner
}

// ends waits until a delivery has ended.
func (b *bundle) ends(t *testing.T, id uuid.UUID) {
	t.Helper()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	deadline := time.After(30 * time.Second)
	for {
		delivery, _, err := b.Alerts.AlertDelivery(t.Context(), b.owner.Workspace.ID, id)
		if err != nil {
			t.Fatal(err)
		}
		if delivery.State != tenants.DeliveryWaiting {
			return
		}
		select {
		case <-ticker.C:
		case <-deadline:
			t.Fatalf("delivery %+v waits", delivery)
		}
	}
}
