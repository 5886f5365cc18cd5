package main

import (
	"context"

	"palimpsest/api/connections"
	"palimpsest/tenants"
	"palimpsest/tenants/identity"
)

// admittingPeople is the identity service. A connection on which a login is found counts as that of
// its person, and is refused if they have too many.
type admittingPeople struct{ *identity.Service }

// Authenticate implements tenants.Identity.
func (a admittingPeople) Authenticate(ctx context.Context, token string) (tenants.Principal, error) {
	principal, err := a.Service.Authenticate(ctx, token)
	if err != nil {
		return principal, err
	}
	return principal, connections.Admitted(ctx, principal.Login.ID, principal.User.ID)
}

// admittingKeys are the API keys, with the same for each that is found and the account that owns its
// workspace.
type admittingKeys struct{ *identity.Keys }

// Authenticate implements tenants.KeyAuthenticator.
func (a admittingKeys) Authenticate(ctx context.Context, secret string) (tenants.APIKey, error) {
	key, err := a.Keys.Authenticate(ctx, secret)
	if err != nil {
		return key, err
	}
	return key, connections.Admitted(ctx, key.ID, key.Account())
}
