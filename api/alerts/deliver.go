package alerts

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"palimpsest/pipeline/jobs"
	"palimpsest/tenants"
)

const (
	// GiveUpAfter bounds the time for attempts of a delivery.
	GiveUpAfter = 24 * time.Hour

	firstPause = 10 * time.Second // before the second attempt …
	maxPause   = 4 * time.Hour    // … doubled each time, up to this
	overdue    = 10 * time.Minute // after which a delivery's job counts as lost
	maxOverdue = 100
)

// pause returns how long to wait after a number of attempts.
func pause(attempts int) time.Duration { return min(firstPause<<min(max(attempts-1, 0), 16), maxPause) }

// Deliver does a job of JobDeliver. It may run again at any time, because it doesn't repeat a delivered or
// failed delivery.
func (s *Service) Deliver(ctx context.Context, workspace tenants.WorkspaceID, id uuid.UUID) error {
	delivery, channel, err := s.config.Store.AlertDelivery(ctx, workspace, id)
	if errors.Is(err, tenants.ErrNotFound) || err == nil && delivery.State != tenants.DeliveryWaiting {
		return nil
	}
	if err != nil {
		return err
	}
	if now := s.config.Now(); now.Before(delivery.NextAt) {
		return jobs.Snooze{At: delivery.NextAt}
	}
	result := outcome{final: true, answer: "Not sent: the channel is turned off."}
	if !channel.Disabled {
		if result, err = s.send(ctx, workspace, delivery, channel); err != nil {
			return err
		}
	}
	attempt := s.attempt(delivery, result)
	// The attempt is noted even if the program is shutting down, since the receiver may have accepted it.
	if err := s.config.Store.NoteAlertAttempt(context.WithoutCancel(ctx), workspace, id, attempt); err != nil {
		return err
	}
	if attempt.State == tenants.DeliveryWaiting {
		return jobs.Snooze{At: attempt.NextAt}
	}
	return nil
}

// attempt returns the new state of a delivery after another try.
func (s *Service) attempt(delivery tenants.AlertDelivery, result outcome) tenants.AlertAttempt {
	now := s.config.Now()
	attempt := tenants.AlertAttempt{At: now, State: tenants.DeliveryFailed, Status: result.status, Answer: result.answer}
	next := now.Add(pause(delivery.Attempts + 1))
	switch {
	case result.ok:
		attempt.State = tenants.DeliveryDelivered
	case !result.final && !next.After(delivery.Until):
		attempt.State, attempt.NextAt = tenants.DeliveryWaiting, next
	}
	return attempt
}

// Test sends a test to a channel, now and once, and returns the result. It returns tenants.ErrNotFound.
func (s *Service) Test(ctx context.Context, who tenants.Principal, id uuid.UUID) (tenants.AlertDelivery, error) {
	channel, err := s.find(ctx, who.Workspace.ID, id)
	if err != nil {
		return tenants.AlertDelivery{}, err
	}
	now := s.config.Now()
	delivery := tenants.AlertDelivery{
		ID: uuid.Must(uuid.NewV7()), Channel: id, CreatedAt: now, NextAt: now, Until: now, Attempts: 1,
		Alert: tenants.Alert{Rule: tenants.AlertTest, Title: "Test of " + named(channel.Name), Text: "Alerts of this workspace arrive here.", Path: pathAlerts},
	}
	result, err := s.send(ctx, who.Workspace.ID, delivery, channel)
	if err != nil {
		return tenants.AlertDelivery{}, err
	}
	delivery.State, delivery.TriedAt, delivery.Status, delivery.Answer = tenants.DeliveryFailed, s.config.Now(), result.status, result.answer
	if result.ok {
		delivery.State = tenants.DeliveryDelivered
	}
	return delivery, s.config.Store.AddAlertDelivery(context.WithoutCancel(ctx), who.Workspace.ID, delivery)
}

// Retry restarts a failed delivery, for another day. It returns tenants.ErrNotFound for a delivery that has
// not failed.
func (s *Service) Retry(ctx context.Context, who tenants.Principal, id uuid.UUID) error {
	workspace, now := who.Workspace.ID, s.config.Now()
	return s.config.Store.Together(ctx, workspace, func(tenant tenants.Tenant) error {
		if err := s.config.Store.RetryAlertDelivery(ctx, tenant, id, now, now.Add(GiveUpAfter)); err != nil {
			return err
		}
		return s.enqueue(ctx, tenant, id, now)
	})
}

// find returns a channel, or tenants.ErrNotFound.
func (s *Service) find(ctx context.Context, workspace tenants.WorkspaceID, id uuid.UUID) (tenants.AlertChannel, error) {
	channels, err := s.config.Store.AlertChannels(ctx, workspace)
	if err != nil {
		return tenants.AlertChannel{}, err
	}
	for _, channel := range channels {
		if channel.ID == id {
			return channel, nil
		}
	}
	return tenants.AlertChannel{}, tenants.ErrNotFound
}

func (s *Service) enqueue(ctx context.Context, tenant tenants.Tenant, delivery uuid.UUID, at time.Time) error {
	return s.config.Queue.Enqueue(ctx, tenant, jobs.Job{Kind: JobDeliver, Workspace: tenant.Workspace(), Lane: delivery, At: at})
}

// resume starts new jobs for deliveries whose job was lost.
func (s *Service) resume(ctx context.Context, workspace tenants.WorkspaceID) error {
	late, err := s.config.Store.OverdueAlertDeliveries(ctx, workspace, s.config.Now().Add(-overdue), maxOverdue)
	for _, delivery := range late {
		err = errors.Join(err, s.enqueue(ctx, workspace, delivery.ID, s.config.Now()))
	}
	return err
}
