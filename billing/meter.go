package billing

import (
	"context"
	"fmt"
	"time"

	"palimpsest/tenants"
)

// Stripe's limits of meter events (docs.stripe.com/api/billing/meter-event/create), each less an hour, so
// that slow calls and inaccurate clocks do no harm.
const (
	// knownFor is how long Stripe refuses a repeated identifier: "a rolling period of at least 24 hours".
	knownFor = 23 * time.Hour
	// acceptedFor is the maximum age of an event's time: "within the past 35 calendar days".
	acceptedFor = 35*24*time.Hour - time.Hour
)

// report reports a workspace's usage to Stripe. It sends one event after the other and stops at a failure, so
// that at most one event's fate is unknown.
func (s *Service) report(ctx context.Context, workspace tenants.WorkspaceID) error {
	if err := s.deps.Store.CutEvents(ctx, workspace); err != nil {
		return err
	}
	events, err := s.deps.Store.Unsent(ctx, workspace)
	if err != nil {
		return err
	}
	for _, event := range events {
		if err := s.send(ctx, workspace, event); err != nil {
			return fmt.Errorf("meter event %s: %w", event.ID, err)
		}
	}
	return nil
}

// send delivers one event to Stripe exactly once.
func (s *Service) send(ctx context.Context, workspace tenants.WorkspaceID, event MeterEvent) error {
	now := s.deps.Now()
	isOld := now.Sub(event.At) > acceptedFor
	if !event.TriedAt.IsZero() && (isOld || now.Sub(event.TriedAt) > knownFor) {
		// Stripe may have the event but have forgotten its identifier, or may no longer accept it.
		arrived, err := s.hasArrived(ctx, workspace, event)
		if err != nil {
			return err
		}
		if arrived {
			return s.deps.Store.Sent(ctx, workspace, event.ID, now)
		}
		event.TriedAt = time.Time{}
	}
	if event.TriedAt.IsZero() {
		event.TriedAt = now
		if isOld {
			event.At = now.UTC().Truncate(time.Hour) // billed late rather than never
		}
		if err := s.deps.Store.Trying(ctx, workspace, event); err != nil {
			return err
		}
	}
	if err := s.stripe.report(ctx, event); err != nil {
		return err
	}
	return s.deps.Store.Sent(ctx, workspace, event.ID, s.deps.Now())
}

// hasArrived checks Stripe's own sums to find out whether it has an event.
func (s *Service) hasArrived(ctx context.Context, workspace tenants.WorkspaceID, event MeterEvent) (bool, error) {
	theirs, err := s.stripe.reported(ctx, event.Customer, event.At)
	if err != nil {
		return false, err
	}
	ours, err := s.deps.Store.SentAt(ctx, workspace, event.Customer, event.At)
	if err != nil {
		return false, err
	}
	switch theirs {
	case ours:
		return false, nil
	case ours + event.Exchanges:
		return true, nil
	}
	return false, fmt.Errorf("stripe counts %d exchanges for the hour of %s, we have sent %d: someone has to compare them",
		theirs, event.At.UTC().Format(time.RFC3339), ours)
}
