package billing

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/stripe/stripe-go/v76"
	"github.com/stripe/stripe-go/v76/billing/meterevent"
	"github.com/stripe/stripe-go/v76/billing/metereventsummary"
	billingportal "github.com/stripe/stripe-go/v76/billingportal/session"
	checkout "github.com/stripe/stripe-go/v76/checkout/session"
	"github.com/stripe/stripe-go/v76/customer"
	"github.com/stripe/stripe-go/v76/invoice"
	"github.com/stripe/stripe-go/v76/price"
	"github.com/stripe/stripe-go/v76/subscription"
	"github.com/stripe/stripe-go/v76/subscriptionitem"

	"palimpsest/tenants"
)

// Handle handles a notice by reading the workspace's state, unless a reading began after the notice came.
func (s *Service) Handle(ctx context.Context, workspace tenants.WorkspaceID, notice uuid.UUID) error {
	done, err := s.deps.Store.IsDone(ctx, workspace, notice)
	if err != nil || done {
		return err
	}
	return s.Read(ctx, workspace)
}

// Read reads a workspace's state at Stripe and stores it. Of two concurrent readings the one that began later
// wins, so that newer data is not lost.
func (s *Service) Read(ctx context.Context, workspace tenants.WorkspaceID) error {
	account, err := s.deps.Store.Account(ctx, workspace)
	if err != nil {
		return err
	}
	if account.Customer == "" {
		return nil
	}
	reading, err := s.deps.Store.BeginReading(ctx, workspace)
	if err != nil {
		return err
	}
	began := s.deps.Now()
	state, err := s.read(ctx, account)
	if err != nil {
		return fmt.Errorf("read account of workspace %s: %w", workspace, err)
	}
	if err := s.deps.Store.KeepReading(ctx, workspace, reading, began, state); err != nil {
		return err
	}
	return s.judge(ctx, workspace)
}

// read returns the state of an account at Stripe. It depends only on Stripe's current data.
func (s *Service) read(ctx context.Context, account Account) (State, error) {
	found, err := s.stripe.subscription(ctx, account.Customer)
	if err != nil {
		return State{}, err
	}
	if found == nil {
		return State{Plan: Free}, nil
	}
	state, err := s.stateOf(found)
	if err != nil || !state.Status.Owes() {
		return state, err
	}
	if state.PastDueSince, err = s.stripe.owedSince(ctx, found.ID); err != nil {
		return State{}, err
	}
	if state.PastDueSince.IsZero() { // the invoice is closed but the debt is not paid
		state.PastDueSince = state.PeriodStart
	}
	return state, nil
}

// stateOf returns a subscription's state.
func (s *Service) stateOf(found *stripe.Subscription) (State, error) {
	state := State{
		Subscription: found.ID, Plan: Free, Status: Status(found.Status),
		PeriodStart: unix(found.CurrentPeriodStart), PeriodEnd: unix(found.CurrentPeriodEnd),
	}
	if isMetered(found) {
		state.MeteredFrom, state.MeteredTo = unix(found.StartDate), unix(found.EndedAt)
	}
	switch {
	case found.EndedAt > 0:
		state.EndsAt = unix(found.EndedAt)
	case found.CancelAt > 0:
		state.EndsAt = unix(found.CancelAt)
	case found.CancelAtPeriodEnd:
		state.EndsAt = state.PeriodEnd
	}
	if state.Status == Trialing {
		state.TrialEnd = unix(found.TrialEnd)
	}
	if !state.Status.IsLive() {
		return state, nil
	}
	plan, item, err := s.bought(found)
	if err != nil {
		return State{}, err
	}
	state.Plan, state.Seats = plan, item.Quantity
	return state, nil
}

// isMetered reports whether a subscription's price includes usage.
func isMetered(found *stripe.Subscription) bool {
	return slices.ContainsFunc(found.Items.Data, func(item *stripe.SubscriptionItem) bool {
		return item.Price.Recurring != nil && item.Price.Recurring.UsageType == stripe.PriceRecurringUsageTypeMetered
	})
}

// bought returns a subscription's plan and the item that pays for it.
func (s *Service) bought(found *stripe.Subscription) (Plan, *stripe.SubscriptionItem, error) {
	var licensed *stripe.SubscriptionItem
	for _, item := range found.Items.Data {
		if plan, known := s.config.Catalog.planOf(item.Price.ID); known {
			return plan, item, nil
		}
		if item.Price.Recurring != nil && item.Price.Recurring.UsageType == stripe.PriceRecurringUsageTypeLicensed {
			licensed = item
		}
	}
	// The price is no longer sold, so the plan is the one stored with the subscription.
	if plan := Plan(found.Metadata["plan"]); plan.IsSold() && licensed != nil {
		return plan, licensed, nil
	}
	return "", nil, fmt.Errorf("subscription %s has no price of STRIPE_PRO_PRICE or STRIPE_TEAM_PRICE, and names no plan", found.ID)
}

// setSeats sets the seats of the plan Team to the number of members.
func (s *Service) setSeats(ctx context.Context, account Account) error {
	if account.Plan != Team || account.Status != Active && account.Status != Trialing && account.Status != PastDue {
		return nil
	}
	members, err := s.deps.Store.Members(ctx, account.Workspace)
	if err != nil || members == account.Seats || members == 0 {
		return err
	}
	found, err := s.stripe.subscription(ctx, account.Customer)
	if err != nil || found == nil {
		return err
	}
	plan, item, err := s.bought(found)
	if err != nil {
		return err
	}
	if plan == Team && item.Quantity != members {
		if err := s.stripe.setSeats(ctx, item.ID, members); err != nil {
			return err
		}
	}
	return s.Read(ctx, account.Workspace)
}

// judge restrains a workspace's traffic, or lifts the restraint, according to the stored account.
func (s *Service) judge(ctx context.Context, workspace tenants.WorkspaceID) error {
	account, err := s.deps.Store.Account(ctx, workspace)
	if err != nil {
		return err
	}
	now := s.deps.Now()
	from, to := account.span(now)
	used, err := s.deps.Store.Used(ctx, workspace, from, to)
	if err != nil {
		return err
	}
	if reason := account.restraint(now, used, s.config.Grace); reason != account.Restraint.Reason {
		restraint := tenants.Restraint{Reason: reason}
		if reason != tenants.Unrestrained {
			restraint.Since = now
		}
		if err := s.deps.Store.Restrain(ctx, workspace, restraint); err != nil {
			return err
		}
		account.Restraint = restraint
	}
	return s.tell(ctx, account, to)
}

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

// stripeClients are the clients of the Stripe resources in use. Stripe's own client.API links all its 134
// packages.
type stripeClients struct {
	BillingMeterEvents         meterevent.Client
	BillingMeterEventSummaries metereventsummary.Client
	BillingPortalSessions      billingportal.Client
	CheckoutSessions           checkout.Client
	Customers                  customer.Client
	Invoices                   invoice.Client
	Prices                     price.Client
	SubscriptionItems          subscriptionitem.Client
	Subscriptions              subscription.Client
}

func newStripeClients(backend stripe.Backend, key string) stripeClients {
	return stripeClients{
		BillingMeterEvents:         meterevent.Client{B: backend, Key: key},
		BillingMeterEventSummaries: metereventsummary.Client{B: backend, Key: key},
		BillingPortalSessions:      billingportal.Client{B: backend, Key: key},
		CheckoutSessions:           checkout.Client{B: backend, Key: key},
		Customers:                  customer.Client{B: backend, Key: key},
		Invoices:                   invoice.Client{B: backend, Key: key},
		Prices:                     price.Client{B: backend, Key: key},
		SubscriptionItems:          subscriptionitem.Client{B: backend, Key: key},
		Subscriptions:              subscription.Client{B: backend, Key: key},
	}
}
