package identity

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"palimpsest/tenants"
)

// Pending returns the person of a tenants.CodeNeeded, who has typed their password. It returns
// tenants.ErrLoginEnded for an invalid token, for example after a change of the password or the address.
func (f *secondFactors) Pending(ctx context.Context, pending string) (tenants.User, error) {
	user, _, err := f.pending(ctx, pending)
	return user, err
}

// pending is Pending with the workspace whose single sign-on replaced the password; zero if the password was
// typed.
func (f *secondFactors) pending(ctx context.Context, pending string) (user tenants.User, signOn tenants.WorkspaceID, err error) {
	claims, err := f.logins.tokens.pending(pending)
	if err != nil {
		return tenants.User{}, tenants.WorkspaceID{}, err
	}
	user, hash, err := f.store.UserByEmail(ctx, claims.Email)
	if errors.Is(err, tenants.ErrNotFound) || err == nil && (user.ID != claims.user || fingerprint(hash) != claims.Password) {
		return tenants.User{}, tenants.WorkspaceID{}, tenants.ErrLoginEnded
	}
	if err != nil {
		return tenants.User{}, tenants.WorkspaceID{}, fmt.Errorf("log in: %w", err)
	}
	return user, claims.SignOn, nil
}

// PendingFactors returns the second factors of someone who has typed their password, or the error of Pending.
func (f *secondFactors) PendingFactors(ctx context.Context, pending string) (tenants.Factors, error) {
	user, err := f.Pending(ctx, pending)
	if err != nil {
		return tenants.Factors{}, err
	}
	return f.store.FactorsOf(ctx, user.ID)
}

// OpenWithPasskey opens a login for a user whose passkey was verified, and returns its token. If addresses
// must be verified first, it returns tenants.ErrWrongLogin for an unverified one.
func (s *Service) OpenWithPasskey(ctx context.Context, user tenants.User, userAgent string) (tenants.Principal, string, error) {
	if s.mails.RequireVerified && user.VerifiedAt == nil {
		return tenants.Principal{}, "", tenants.ErrWrongLogin
	}
	return s.OpenLogin(ctx, user, userAgent)
}

// NewRecoveryCodes returns readable recovery codes and their stored hashes.
func (f *secondFactors) NewRecoveryCodes(user uuid.UUID) (codes []string, hashes [][]byte) {
	return newRecoveryCodes(user)
}
