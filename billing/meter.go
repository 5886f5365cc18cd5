package billing

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

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

const (
	endsAtOnce  = 100           // limit of one pass
	endMinPause = time.Minute   // before the first retry …
	endMaxPause = 6 * time.Hour // … doubled each time, up to this
	endGiveUp   = 30 * 24 * time.Hour
)

// End is a customer of Stripe whose workspace was deleted and whose subscriptions must end.
type End struct {
	ID       uuid.UUID
	Customer string
	AskedAt  time.Time
	Attempts int // that failed
}

// Leave has a workspace's subscriptions ended at Stripe, in the background, if and only if the tenant's
// transaction, which deletes the workspace, is committed. It does not call Stripe.
func (s *Service) Leave(ctx context.Context, tenant tenants.Tenant) error {
	if s.deps.Store == nil {
		return nil
	}
	account, err := s.deps.Store.Account(ctx, tenant)
	if err != nil || account.Customer == "" {
		return err
	}
	return s.deps.Store.AskEnd(ctx, tenant, End{ID: uuid.Must(uuid.NewV7()), Customer: account.Customer, AskedAt: s.deps.Now()})
}

// EndPass ends the subscriptions of deleted workspaces at Stripe. It retries failures for 30 days; then
// operators are told to end the subscription by hand. The pass may be interrupted and restarted at any point.
func (s *Service) EndPass(ctx context.Context) error {
	if !s.IsOn() {
		return nil
	}
	due, err := s.deps.Store.DueEnds(ctx, s.deps.Now(), endsAtOnce)
	if err != nil {
		return err
	}
	var failures []error
	for _, end := range due {
		failures = append(failures, s.end(ctx, end))
	}
	return errors.Join(failures...)
}

// end tries one end. It logs Stripe's failures instead of returning them.
func (s *Service) end(ctx context.Context, end End) error {
	ended, err := s.stripe.end(ctx, end.Customer)
	now := s.deps.Now()
	switch {
	case err == nil:
		return s.deps.Store.CloseEnd(ctx, end, true, fmt.Sprintf("%d subscriptions ended", ended))
	case ctx.Err() != nil:
		return err
	case now.Sub(end.AskedAt) >= endGiveUp:
		s.deps.Log.ErrorContext(ctx, "subscriptions of a deleted workspace did not end and are not tried again: end them at Stripe", "customer", end.Customer, "attempts", end.Attempts+1, "error", err)
		return s.deps.Store.CloseEnd(ctx, end, false, "Stripe did not end them for 30 days: end them there")
	}
	pause := min(endMinPause<<min(end.Attempts, 16), endMaxPause)
	s.deps.Log.WarnContext(ctx, "subscriptions of a deleted workspace did not end and are tried again", "customer", end.Customer, "in", pause.String(), "error", err)
	return s.deps.Store.DelayEnd(ctx, end.ID, now.Add(pause))
}
