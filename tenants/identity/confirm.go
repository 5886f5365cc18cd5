package identity

import (
	"context"

	"palimpsest/tenants"
)

// Confirm returns nil if the password is that of a user who is logged in: before
// what cannot be undone it is asked once more. It returns tenants.ErrWrongLogin, or
// tenants.ErrTooMany as LogIn does, with which it shares its count of failures.
func (s *Service) Confirm(ctx context.Context, user tenants.User, password, from string) error {
	_, err := s.verify(ctx, password, logInTries(user.Email, from))
	return err
}
