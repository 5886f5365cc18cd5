package billing

import (
	"context"
	"errors"
	"time"

	"palimpsest/tenants"
)

// How often there is something to do.
const (
	// Every is the pause between two passes.
	Every = time.Minute
	// Timeout bounds a pass; what is left comes with the next one.
	Timeout = 10 * time.Minute

	dueAtOnce  = 500            // workspaces that are asked for together
	seatsEvery = time.Minute    // the members of a team are counted
	lookEvery  = 24 * time.Hour // where nothing else is due
	afterFault = 5 * time.Minute
)

// Pass looks at every workspace with something to do: it restrains traffic or lets it
// go, tells Stripe of usage, and sets seats. It may be ended and begun again at any
// point.
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

// look does what is to be done for one workspace.
func (s *Service) look(ctx context.Context, workspace tenants.WorkspaceID) error {
	store := s.deps.Store
	if err := store.LookAt(ctx, workspace); err != nil {
		return err
	}
	again, err := s.attend(ctx, workspace)
	if err != nil {
		// What is already past must not keep the others waiting.
		return errors.Join(err, store.LookAgain(context.WithoutCancel(ctx), workspace, s.deps.Now().Add(afterFault)))
	}
	return store.LookAgain(ctx, workspace, again)
}

// attend judges, reports and sets seats, and returns when to look again.
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

// lookAgain returns when something of an account changes by itself.
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
