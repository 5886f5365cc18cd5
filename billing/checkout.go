package billing

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"palimpsest/tenants"
)

// Checkout returns the address where a person pays for a workspace's plan. It returns tenants.ErrBillingOff,
// tenants.Invalid for a plan that is not sold, and tenants.ErrConflict if a subscription is already running,
// because that is changed in the portal.
func (s *Service) Checkout(ctx context.Context, workspace tenants.Workspace, email, plan string) (string, error) {
	if !s.IsOn() {
		return "", tenants.ErrBillingOff
	}
	wanted, err := s.config.Catalog.offered(plan)
	if err != nil {
		return "", err
	}
	account, err := s.customer(ctx, workspace, email)
	if err != nil {
		return "", err
	}
	// Read the state again: the stored one may be old, and no one may pay for two subscriptions.
	state, err := s.read(ctx, account)
	if err != nil {
		return "", err
	}
	if state.Status.IsLive() {
		return "", fmt.Errorf("checkout: subscription %s runs: %w", state.Subscription, tenants.ErrConflict)
	}
	order := order{workspace: workspace.ID, customer: account.Customer, plan: wanted, seats: 1}
	if wanted == Team {
		if order.seats, err = s.deps.Store.Members(ctx, workspace.ID); err != nil {
			return "", err
		}
	}
	if state.Subscription == "" {
		order.trialDays = s.config.TrialDays
	}
	address, err := s.stripe.checkout(ctx, order)
	if err != nil {
		return "", err
	}
	fields := tenants.Fields{"plan": string(wanted), "seats": strconv.FormatInt(order.seats, 10)}
	return address, s.deps.Store.Note(ctx, workspace.ID, tenants.Change{Action: tenants.CheckoutOpened, Target: account.Customer, After: fields})
}

// customer returns a workspace's account and creates its customer at Stripe if needed.
func (s *Service) customer(ctx context.Context, workspace tenants.Workspace, email string) (Account, error) {
	account, err := s.deps.Store.Account(ctx, workspace.ID)
	if err != nil || account.Customer != "" {
		return account, err
	}
	made, err := s.stripe.customer(ctx, workspace.ID, workspace.Name, email)
	if err != nil {
		return Account{}, err
	}
	account.Customer, err = s.deps.Store.KeepCustomer(ctx, workspace.ID, made)
	return account, err
}

// Portal returns the address where a person changes a workspace's subscription and payment method. It returns
// tenants.ErrBillingOff, and tenants.ErrNotFound before the first checkout.
func (s *Service) Portal(ctx context.Context, workspace tenants.WorkspaceID) (string, error) {
	if !s.IsOn() {
		return "", tenants.ErrBillingOff
	}
	account, err := s.deps.Store.Account(ctx, workspace)
	if err != nil {
		return "", err
	}
	if account.Customer == "" {
		return "", fmt.Errorf("portal: no customer: %w", tenants.ErrNotFound)
	}
	address, err := s.stripe.portal(ctx, account.Customer)
	if err != nil {
		return "", err
	}
	return address, s.deps.Store.Note(ctx, workspace, tenants.Change{Action: tenants.PortalOpened, Target: account.Customer})
}

// Origins returns the origins to which Checkout and Portal redirect.
func (s *Service) Origins() []string {
	if s.config.APIBase == "" {
		return []string{"https://checkout.stripe.com", "https://billing.stripe.com"}
	}
	base, err := url.Parse(s.config.APIBase)
	if err != nil {
		return nil
	}
	return []string{base.Scheme + "://" + base.Host}
}

// Returned reads a workspace's state again when a person returns from Stripe, because Stripe's notice may not
// have arrived yet.
func (s *Service) Returned(ctx context.Context, workspace tenants.WorkspaceID) error {
	if !s.IsOn() {
		return nil
	}
	return s.Read(ctx, workspace)
}

// unix returns a time of Stripe; zero if absent.
func unix(seconds int64) time.Time {
	if seconds == 0 {
		return time.Time{}
	}
	return time.Unix(seconds, 0).UTC()
}
