package identity

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"palimpsest/tenants"
)

// DeleteAccount deletes the account of a person who is logged in and knows their password,
// with their memberships, logins, second factors and passkeys. Their API keys are revoked,
// or go on to send requests on behalf of who else owns the workspace. It returns a
// tenants.Invalid that names password, a tenants.TooMany, a tenants.OnlyOwner of a workspace
// without another owner, tenants.ErrOperator, and tenants.ErrSignOnOnly for a login that
// opens one workspace only.
func (s *Service) DeleteAccount(ctx context.Context, who tenants.Principal, password string, revokeKeys bool) error {
	if who.Login.SignOn != uuid.Nil {
		return tenants.ErrSignOnOnly
	}
	if err := s.confirm(ctx, who, "password", password); err != nil {
		return err
	}
	defer s.Forget()
	if err := s.store.DeleteAccount(ctx, who.User.ID, revokeKeys); err != nil {
		return fmt.Errorf("delete account: %w", err)
	}
	return nil
}
