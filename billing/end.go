package billing

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"palimpsest/tenants"
)

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
