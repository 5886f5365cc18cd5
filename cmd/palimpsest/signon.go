package main

import (
	"net"

	"palimpsest/tenants/identity"
	"palimpsest/tenants/passkey"
	"palimpsest/tenants/signon"
	"palimpsest/tenants/tenantsdb"
	"palimpsest/tenants/vault"
)

// signOn makes what logs people in through the single sign-on of their workspace.
func (p *program) signOn(db *tenantsdb.DB, safe *vault.Vault, people *identity.Service) *signon.Service {
	client := signon.NewClient(p.config.AllowPrivateUpstreams)
	p.onClose(client.CloseIdleConnections)
	return signon.New(signon.Config{
		Store: db.SignOn, Sealer: safe, Resolver: net.DefaultResolver, Door: people, Throttle: people.Throttle(), Client: client,
		PublicURL: p.reachable(), AllowHTTP: p.config.AllowPrivateUpstreams, Now: p.now,
	})
}

// passkeys makes what logs people in with passkeys.
func (p *program) passkeys(db *tenantsdb.DB, safe *vault.Vault, people *identity.Service) *passkey.Service {
	return passkey.New(passkey.Config{
		Store: db.Factors, Sealer: safe, Door: people, Throttle: people.Throttle(), PublicURL: p.reachable(), Now: p.now,
	})
}
