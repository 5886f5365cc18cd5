package identity

import (
	"context"
	"fmt"

	"palimpsest/tenants"
)

// DeleteAccount deletes the account of a person who is logged in, with their memberships,
// logins, second factors and passkeys. They know their password or, if the account has none,
// as single sign-on makes it, logged in within tenants.RecentLogin. Their API keys are revoked,
// or go on to send requests for another owner of the workspace. It returns a
// tenants.Invalid that names password, a tenants.TooMany, a tenants.OnlyOwner of a workspace
// without another owner, tenants.ErrOperator, and tenants.ErrSignOnOnly for a login that
// opens one workspace only while the person belongs to others too.
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

// confirmDeletion has a person prove that the account is theirs. A workspace's identity
// provider proves it of an account that belongs to the workspace alone.
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
