package billing

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/stripe/stripe-go/v76"

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
