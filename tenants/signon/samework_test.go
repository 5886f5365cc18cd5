package signon_test

import (
	"context"
	"fmt"
	"net/url"
	"testing"

	"palimpsest/tenants"
	"palimpsest/tenants/signon"
	"palimpsest/tenants/vault/vaulttest"
)

// counting counts what is asked of a store. It has no other method: what it does not count
// panics, so no one looks for a person.
type counting struct {
	signon.Store

	db    signon.Store
	calls int
}

func (c *counting) SignOnWorkspace(ctx context.Context, domain string) (tenants.WorkspaceID, error) {
	c.calls++
	return c.db.SignOnWorkspace(ctx, domain)
}

func (c *counting) SignOn(ctx context.Context, workspace tenants.WorkspaceID) (tenants.SignOn, error) {
	c.calls++
	return c.db.SignOn(ctx, workspace)
}

// S11: where single sign-on leads depends on the domain of an address, and never on whether
// the address has an account.
func TestSignOnIsTheSameWorkForKnownAndUnknownAddresses(t *testing.T) {
	t.Parallel()
	c := setup(t)
	c.configure(t)
	if _, _, err := c.DB.Accounts.SignUp(t.Context(), "ada@"+domain, "", "Hers"); err != nil {
		t.Fatal(err)
	}
	store := &counting{db: c.DB.SignOn}
	config := c.with(vaulttest.Of(t, "v"), records{}).Config
	config.Store = store
	service := signon.New(config)
	begin := func(email string) string {
		store.calls = 0
		address, _, err := service.Begin(t.Context(), email, "/")
		if err != nil {
			return fmt.Sprintf("%d calls, %v", store.calls, err)
		}
		leads, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("%d calls to %s%s, %d values", store.calls, leads.Host, leads.Path, len(leads.Query()))
	}
	for domain, most := range map[string]int{domain: 2, "elsewhere.example": 1} {
		known, unknown := begin("ada@"+domain), begin("nobody@"+domain)
		if known != unknown || store.calls != most {
			t.Errorf("%s: %s for a known address, %s for an unknown one", domain, known, unknown)
		}
	}
}

// configure has the workspace's people log in at the provider.
func (c *company) configure(t *testing.T) {
	t.Helper()
	service := c.with(vaulttest.Of(t, "v"), records{})
	ctx := tenants.WithActor(t.Context(), c.owner.Actor(""))
	wanted := tenants.WantedSignOn{Issuer: c.provider.Issuer(), ClientID: c.provider.ClientID, Secret: c.provider.ClientSecret, Role: tenants.Viewer}
	if err := service.Save(ctx, c.owner, wanted); err != nil {
		t.Fatal(err)
	}
	if err := service.Claim(ctx, c.owner, domain); err != nil {
		t.Fatal(err)
	}
	_, domains, err := service.Find(t.Context(), c.owner.Workspace.ID)
	if err != nil || len(domains) != 1 {
		t.Fatal(domains, err)
	}
	if err := c.with(vaulttest.Of(t, "v"), records{domains[0].Record()}).Prove(ctx, c.owner, domain); err != nil {
		t.Fatal(err)
	}
}
