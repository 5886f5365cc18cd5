package main

import (
	"context"
	"sync"

	"palimpsest/tenants"
)

// visitor returns who everyone is in a public demo: someone who sees what the person in Config.Visited sees, and
// may change nothing. It returns nil if this is not a public demo.
func (p product) visitor() func(context.Context) (tenants.Principal, error) {
	if p.config.Visited == "" {
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
		user, _, err := p.db.Accounts.UserByEmail(ctx, p.config.Visited)
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
