package main

import (
	"context"
	"net"

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
	keys, err := identity.NewKeys(b.db.APIKeys, b.vault.DeriveAll("api keys"), b.now)
	if err != nil {
		return nil, nil, err
	}
	b.every(keyFlush, func(ctx context.Context) {
		if err := keys.Flush(ctx); err != nil {
			b.log.Warn("note the use of API keys", "error", err)
		}
	})
	throttle, err := newThrottle(b)
	if err != nil {
		return nil, nil, err
	}
	people, err := identity.NewService(identity.Store{Accounts: b.db.Accounts, LoginStore: b.db.Logins, WorkspaceStore: b.db.Workspaces, Factors: b.db.Factors}, throttle, b.vault.DeriveAll("logins"), b.now)
	if err != nil {
		return nil, nil, err
	}
	people.SetSignUps(b.config.signUps())
	people.SetSealer(b.vault)
	return people, keys, nil
}

// newThrottle counts failed logins and mails: in Redis, for all replicas, if configured.
func newThrottle(b base) (tenants.Throttle, error) {
	if b.redis == nil {
		return identity.NewLocalThrottle(b.now)
	}
	throttle := identity.NewRedisThrottle(b.redis)
	throttle.Log = b.log
	return throttle, nil
}

// newDevices creates the service that logs terminals in.
func newDevices(b base, people *identity.Service, keys tenants.APIKeys) *tenants.DeviceLogins {
	return &tenants.DeviceLogins{
		Store: b.db.Devices, Keys: keys, Throttle: people.Throttle().Throttle, Peppers: b.vault.DeriveAll("terminal codes"),
		Page: b.reachable() + paths.Device, Now: b.now,
	}
}

// newSignOn creates the service for single sign-on through a workspace's identity provider.
func newSignOn(b base, people *identity.Service) *signon.Service {
	client := signon.NewClient(b.guard)
	b.onClose(client.CloseIdleConnections)
	return signon.New(signon.Config{
		Store: b.db.SignOn, Sealer: b.vault, LookupTXT: net.DefaultResolver.LookupTXT, Logins: people, Throttle: people.Throttle(), Client: client,
		PublicURL: b.reachable(), AllowHTTP: b.config.AllowPrivateUpstreams, Now: b.now,
	})
}

// newPasskeys creates the service for logins with passkeys.
func newPasskeys(b base, people *identity.Service) *passkey.Service {
	return passkey.New(passkey.Config{
		Store: b.db.Factors, Sealer: b.vault, Accounts: people, Throttle: people.Throttle(), PublicURL: b.reachable(), Now: b.now,
	})
}

// newCredentials creates the service that creates and tests the keys of workspaces.
func newCredentials(b base, keys *identity.Keys, provider *upstream.Client) *credentials.Service {
	return credentials.New(credentials.Config{
		Store: credentials.Store{APIKeyStore: b.db.APIKeys, ProviderKeyStore: b.db.ProviderKeys}, Issuer: keys, Vault: b.vault, Upstream: provider,
		Defaults: b.config.defaults(), AllowPrivate: b.config.AllowPrivateUpstreams, Now: b.now,
	})
}
