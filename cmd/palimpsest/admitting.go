package main

import (
	"context"

	"palimpsest/api/connections"
	"palimpsest/tenants"
	"palimpsest/tenants/identity"
)

// admittingPeople is the identity service. A connection on which a login is found no longer
// counts as a stranger's.
type admittingPeople struct{ *identity.Service }

// Authenticate implements tenants.Identity.
func (a admittingPeople) Authenticate(ctx context.Context, token string) (tenants.Principal, error) {
	principal, err := a.Service.Authenticate(ctx, token)
	if err == nil {
		connections.Admitted(ctx)
	}
	return principal, err
}

// admittingKeys are the API keys, with the same for each that is found.
type admittingKeys struct{ *identity.Keys }

// Authenticate implements tenants.KeyAuthenticator.
func (a admittingKeys) Authenticate(ctx context.Context, secret string) (tenants.APIKey, error) {
	key, err := a.Keys.Authenticate(ctx, secret)
	if err == nil {
		connections.Admitted(ctx)
	}
	return key, err
}
