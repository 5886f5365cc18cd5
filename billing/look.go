package billing

import (
	"context"
	"errors"
	"time"

	"palimpsest/tenants"
)

// Intervals of the work.
const (
	// Every is the pause between two passes.
	Every = time.Minute
	// Timeout bounds a pass; the next one does the rest.
	Timeout = 10 * time.Minute

	dueAtOnce  = 500            // workspaces queried together
	seatsEvery = time.Minute    // the members of a team are counted again
	lookEvery  = 24 * time.Hour // the longest interval
	afterFault = 5 * time.Minute
)

// Pass does the due work of all workspaces: it restrains traffic or lifts the restraint, reports usage to
// Stripe, and sets seats. It may be interrupted and restarted at any point.
func (s *Service) Pass(ctx context.Context) error {
	if !s.IsOn() {
		return nil
	}
	var failures []error
	for {
		due, err := s.deps.Store.Due(ctx, s.deps.Now(), dueAtOnce)
		if err != nil {
			return errors.Join(append(failures, err)...)
		}
		for _, workspace := range due {
			if err := s.look(ctx, workspace); err != nil {
				failures = append(failures, err)
				if ctx.Err() != nil {
					return errors.Join(failures...)
				}
			}
		}
		if len(due) < dueAtOnce {
			return errors.Join(failures...)
		}
	}
}

// look does one workspace's due work.
func (s *Service) look(ctx context.Context, workspace tenants.WorkspaceID) error {
	store := s.deps.Store
	if err := store.LookAt(ctx, workspace); err != nil {
		return err
	}
	again, err := s.attend(ctx, workspace)
	if err != nil {
		// A failing workspace must not delay the others, so its next time is in the future.
		return errors.Join(err, store.LookAgain(context.WithoutCancel(ctx), workspace, s.deps.Now().Add(afterFault)))
	}
	return store.LookAgain(ctx, workspace, again)
}

// attend judges, reports and sets seats, and returns the time of the next look.
func (s *Service) attend(ctx context.Context, workspace tenants.WorkspaceID) (time.Time, error) {
	judgeErr := s.judge(ctx, workspace)
	account, err := s.deps.Store.Account(ctx, workspace)
	if err != nil {
		return time.Time{}, err
	}
	var reportErr, seatsErr error
	if account.Customer != "" {
		reportErr, seatsErr = s.report(ctx, workspace), s.setSeats(ctx, account)
	}
	if err := errors.Join(judgeErr, reportErr, seatsErr); err != nil {
		return time.Time{}, err
	}
	return account.lookAgain(s.deps.Now(), s.config.Grace), nil
}

// lookAgain returns when an account changes on its own.
func (a Account) lookAgain(now time.Time, grace time.Duration) time.Time {
	next := now.Add(lookEvery)
	_, end := a.span(now)
	for _, at := range []time.Time{a.Deadline(grace), end} {
		if at.After(now) && at.Before(next) {
			next = at
		}
	}
	if a.Plan == Team && a.Status.IsLive() {
		next = now.Add(seatsEvery)
	}
	return next
}
