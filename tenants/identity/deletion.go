package identity

import (
	"context"
	"fmt"

	"palimpsest/tenants"
)

// DeleteAccount deletes the account of a logged-in person, with their memberships, logins, second factors and
// passkeys. They know their password or, if the account has no password because single sign-on created it,
// logged in within tenants.RecentLogin. Their API keys are revoked, or continue to send requests for another
// owner of the workspace. It returns a tenants.Invalid for password, a tenants.TooMany, a tenants.OnlyOwner
// of a workspace without another owner, tenants.ErrOperator, and tenants.ErrSignOnOnly for a login limited to
// one workspace while the person belongs to others too.
func (a *accounts) DeleteAccount(ctx context.Context, who tenants.Principal, password string, revokeKeys bool) error {
	if err := a.confirmDeletion(ctx, who, password); err != nil {
		return err
	}
	defer a.logins.Forget()
	if err := a.store.DeleteAccount(ctx, who.User.ID, revokeKeys); err != nil {
		return fmt.Errorf("delete account: %w", err)
	}
	return nil
}

// confirmDeletion requires proof that the account is the person's. For an account in one workspace only, that
// workspace's identity provider can prove it.
func (a *accounts) confirmDeletion(ctx context.Context, who tenants.Principal, password string) error {
	if !who.Login.SignOn.IsZero() {
		memberships, err := a.store.Memberships(ctx, who.User.ID)
		if err != nil {
			return fmt.Errorf("delete account: %w", err)
		}
		for _, membership := range memberships {
			if membership.Workspace.ID != who.Login.SignOn {
				return tenants.ErrSignOnOnly
			}
		}
	}
	_, hash, err := a.store.UserByEmail(ctx, who.User.Email)
	if err != nil {
		return fmt.Errorf("delete account: %w", err)
	}
	if hash != "" {
		return a.prover.confirm(ctx, who, "password", password)
	}
	if a.now().Sub(who.Login.CreatedAt) > tenants.RecentLogin {
		return tenants.Invalid{Field: "password", Message: "is not set for your account: log out and log in again, then delete it within 15 minutes"}
	}
	return nil
}
