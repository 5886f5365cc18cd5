package main

import (
	"context"

	"palimpsest/api/connections"
	"palimpsest/tenants"
	"palimpsest/tenants/identity"
)

// admittingPeople is the identity service. It counts the connection of each login found for the login's
// user, and refuses it if they have too many.
type admittingPeople struct{ *identity.Service }

// Authenticate implements tenants.Identity.
func (a admittingPeople) Authenticate(ctx context.Context, token string) (tenants.Principal, error) {
	principal, err := a.Service.Authenticate(ctx, token)
	if err != nil {
		return principal, err
	}
	return principal, connections.Admitted(ctx, principal.Login.ID, principal.User.ID)
}

// admittingKeys does the same for API keys, and counts a connection for the account that owns the key's
// workspace too.
type admittingKeys struct{ *identity.Keys }

// Authenticate implements tenants.KeyAuthenticator.
func (a admittingKeys) Authenticate(ctx context.Context, secret string) (tenants.APIKey, error) {
	key, err := a.Keys.Authenticate(ctx, secret)
	if err != nil {
		return key, err
	}
	return key, connections.Admitted(ctx, key.ID, key.Account())
}
