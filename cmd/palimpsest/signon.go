package main

import (
	"net"
	"time"

	"palimpsest/tenants/identity"
	"palimpsest/tenants/signon"
	"palimpsest/tenants/tenantsdb"
	"palimpsest/tenants/vault"
)

// signOn makes what logs people in through the single sign-on of their workspace.
func (p *program) signOn(db *tenantsdb.DB, safe *vault.Vault, people *identity.Service) *signon.Service {
	client := signon.NewClient(p.config.AllowPrivateUpstreams)
	p.onClose(client.CloseIdleConnections)
	return signon.New(signon.Config{
		Store: db, Sealer: safe, Resolver: net.DefaultResolver, Door: people, Client: client,
		PublicURL: p.reachable(), AllowHTTP: p.config.AllowPrivateUpstreams, Now: time.Now,
	})
}
