package main

import (
	"context"
	"net"
	"sync"

	"palimpsest/api/connections"
	"palimpsest/api/credentials"
	"palimpsest/api/upstream"
	"palimpsest/tenants"
	"palimpsest/tenants/identity"
	"palimpsest/tenants/passkey"
	"palimpsest/tenants/signon"
	"palimpsest/web/paths"
)

// openAccess creates the identity service and the API key service.
func openAccess(b base) (*identity.Service, *identity.Keys, error) {
	keys, err := identity.NewKeys(b.db.APIKeys, b.vault.DeriveAll("api keys"), b.Now)
	if err != nil {
		return nil, nil, err
	}
	b.Every(keyFlush, func(ctx context.Context) {
		if err := keys.Flush(ctx); err != nil {
			b.Log.Warn("note the use of API keys", "error", err)
		}
	})
	throttle, err := newThrottle(b)
	if err != nil {
		return nil, nil, err
	}
	people, err := identity.NewService(identity.Store{Accounts: b.db.Accounts, LoginStore: b.db.Logins, WorkspaceStore: b.db.Workspaces, Factors: b.db.Factors}, throttle, b.vault.DeriveAll("logins"), b.Now)
	if err != nil {
		return nil, nil, err
	}
	people.SetSignUps(b.Config.SignUps())
	people.SetSealer(b.vault)
	return people, keys, nil
}

// newThrottle counts failed logins and mails: in Redis, for all replicas, if configured.
func newThrottle(b base) (tenants.Throttle, error) {
	if b.redis == nil {
		return identity.NewLocalThrottle(b.Now)
	}
	throttle := identity.NewRedisThrottle(b.redis)
	throttle.Log = b.Log
	return throttle, nil
}

// newDevices creates the service that logs terminals in.
func newDevices(b base, people *identity.Service, keys tenants.APIKeys) *tenants.DeviceLogins {
	return &tenants.DeviceLogins{
		Store: b.db.Devices, Keys: keys, Throttle: people.Throttle().Throttle, Peppers: b.vault.DeriveAll("terminal codes"),
		Page: b.Reachable() + paths.Device, Now: b.Now,
	}
}

// newSignOn creates the service for single sign-on through a workspace's identity provider.
func newSignOn(b base, people *identity.Service) *signon.Service {
	client := signon.NewClient(b.Guard)
	b.OnClose(client.CloseIdleConnections)
	return signon.New(signon.Config{
		Store: b.db.SignOn, Sealer: b.vault, LookupTXT: net.DefaultResolver.LookupTXT, Logins: people, Throttle: people.Throttle(), Client: client,
		PublicURL: b.Reachable(), AllowHTTP: b.Config.Serving.AllowPrivateUpstreams, Now: b.Now,
	})
}

// newPasskeys creates the service for logins with passkeys.
func newPasskeys(b base, people *identity.Service) *passkey.Service {
	return passkey.New(passkey.Config{
		Store: b.db.Factors, Sealer: b.vault, Accounts: people, Throttle: people.Throttle(), PublicURL: b.Reachable(), Now: b.Now,
	})
}

// newCredentials creates the service that creates and tests the keys of workspaces.
func newCredentials(b base, keys *identity.Keys, provider *upstream.Client) *credentials.Service {
	return credentials.New(credentials.Config{
		Store: credentials.Store{APIKeyStore: b.db.APIKeys, ProviderKeyStore: b.db.ProviderKeys}, Issuer: keys, Vault: b.vault, Upstream: provider,
		Defaults: b.Defaults(), AllowPrivate: b.Config.Serving.AllowPrivateUpstreams, Now: b.Now,
	})
}

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

// visitor returns who everyone is in a public demo: someone who sees what the person in Config.Visited sees, and
// may change nothing. It returns nil if this is not a public demo.
func (p product) visitor() func(context.Context) (tenants.Principal, error) {
	if p.Config.Demos.Visited == "" {
		return nil
	}
	var (
		mu    sync.Mutex
		found *tenants.Principal
	)
	return func(ctx context.Context) (tenants.Principal, error) {
		mu.Lock()
		defer mu.Unlock()
		if found != nil {
			return *found, nil
		}
		user, _, err := p.db.Accounts.UserByEmail(ctx, p.Config.Demos.Visited)
		if err != nil {
			return tenants.Principal{}, err
		}
		memberships, err := p.db.Workspaces.Memberships(ctx, user.ID)
		if err != nil {
			return tenants.Principal{}, err
		}
		if len(memberships) == 0 {
			return tenants.Principal{}, tenants.ErrNotFound
		}
		user.Operator = false
		found = &tenants.Principal{User: user, Workspace: memberships[0].Workspace, Role: tenants.Visitor, Memberships: memberships[:1]}
		return *found, nil
	}
}
