package signon_test

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/oauth2-proxy/mockoidc"

	"palimpsest/migrations/dbtest"
	"palimpsest/tenants"
	"palimpsest/tenants/guard"
	"palimpsest/tenants/identity"
	"palimpsest/tenants/rotation"
	"palimpsest/tenants/signon"
	"palimpsest/tenants/vault"
	"palimpsest/tenants/vault/vaulttest"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

const domain = "corp.example"

// company is a workspace whose people log in at a provider, on a real database.
type company struct {
	*dbtest.Database

	people   *identity.Service
	provider *mockoidc.MockOIDC
	owner    tenants.Principal
}

// records is a domain name system in which every domain is proven with a token.
type records struct{ record string }

func (r records) LookupTXT(context.Context, string) ([]string, error) { return []string{r.record}, nil }

func setup(t *testing.T) *company {
	t.Helper()
	c := &company{Database: dbtest.New(t)}
	throttle, err := identity.NewLocalThrottle(time.Now)
	if err != nil {
		t.Fatal(err)
	}
	if c.people, err = identity.NewService(identity.Store{Accounts: c.DB.Accounts, LoginStore: c.DB.Logins, WorkspaceStore: c.DB.Workspaces, Factors: c.DB.Factors}, throttle, [][]byte{bytes.Repeat([]byte("k"), 32)}, time.Now); err != nil {
		t.Fatal(err)
	}
	if c.provider, err = mockoidc.Run(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.provider.Shutdown() })
	if c.owner, _, err = c.people.SignUp(t.Context(), "owner@example.com", "correct horse battery", "Northbeam", "test"); err != nil {
		t.Fatal(err)
	}
	return c
}

// with returns the service with the master keys of a vault.
func (c *company) with(safe *vault.Vault, found records) *signon.Service {
	return signon.New(signon.Config{
		Store: c.DB.SignOn, Sealer: safe, LookupTXT: found.LookupTXT, Logins: c.people, Throttle: c.people.Throttle(), Client: signon.NewClient(guard.New(true)),
		PublicURL: "http://127.0.0.1:8080", AllowHTTP: true, Now: time.Now,
	})
}

// logIn takes someone through the provider and back.
func (c *company) logIn(t *testing.T, service *signon.Service) error {
	t.Helper()
	return c.through(t, service, service)
}

// through is logIn with two services: where it begins, and where people come back to.
func (c *company) through(t *testing.T, begins, ends *signon.Service) error {
	t.Helper()
	return c.as(t, &mockoidc.MockUser{Subject: "7", Email: "mira@" + domain, EmailVerified: true}, begins, ends)
}

// as is through for whom the provider proves.
func (c *company) as(t *testing.T, user *mockoidc.MockUser, begins, ends *signon.Service) error {
	t.Helper()
	c.provider.QueueUser(user)
	address, held, err := begins.Begin(t.Context(), "mira@"+domain, "/")
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := signon.NewClient(guard.New(true)).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	back, err := url.Parse(answer.Header.Get("Location"))
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = ends.Finish(t.Context(), tenants.Principal{}, held, back.Query().Get("state"), back.Query().Get("code"), "test")
	return err
}

// S14, S15: what is kept of a client secret opens for its workspace, issuer and client
// only, and is sealed again with a new master key, while people log in.
func TestClientSecretIsResealedWithNewMasterKey(t *testing.T) {
	t.Parallel()
	c := setup(t)
	before, during, after := vaulttest.Of(t, "v"), vaulttest.Of(t, "w", "v"), vaulttest.Of(t, "w")
	workspace := c.owner.Workspace.ID
	service := c.with(before, records{})
	wanted := tenants.WantedSignOn{Issuer: c.provider.Issuer(), ClientID: c.provider.ClientID, Secret: c.provider.ClientSecret, Role: tenants.Viewer}
	owner := c.owner
	ctx := tenants.WithActor(t.Context(), owner.Actor(""))
	if err := service.Save(ctx, owner, wanted); err != nil {
		t.Fatal(err)
	}
	if err := service.Claim(ctx, owner, domain); err != nil {
		t.Fatal(err)
	}
	_, domains, err := service.Find(t.Context(), workspace)
	if err != nil || len(domains) != 1 {
		t.Fatal(domains, err)
	}
	if err := c.with(before, records{domains[0].Record()}).Prove(ctx, owner, domain); err != nil {
		t.Fatal(err)
	}
	kept, err := c.DB.SignOn.SignOn(t.Context(), workspace)
	if err != nil || bytes.Contains(kept.Sealed, []byte(c.provider.ClientSecret)) {
		t.Fatalf("sealed %q, %v", kept.Sealed, err)
	}
	for name, about := range map[string]string{
		"another workspace": tenants.AboutSignOn(tenants.NewWorkspaceID(), kept.Issuer, kept.ClientID),
		"another issuer":    tenants.AboutSignOn(workspace, "https://evil.example", kept.ClientID),
		"another client":    tenants.AboutSignOn(workspace, kept.Issuer, "another"),
	} {
		if _, _, err := before.OpenAbout(about, kept.Sealed); !errors.Is(err, vault.ErrSealedElsewhere) {
			t.Errorf("for %s: %v", name, err)
		}
	}

	if err := c.logIn(t, c.with(after, records{})); err == nil || !strings.Contains(err.Error(), "sign-on") {
		t.Fatalf("without the old master key, before: %v", err)
	}
	for _, want := range []int{1, 0} { // S28: done twice, it comes to the same
		if count, err := rotation.SignOns(t.Context(), c.DB, during); err != nil || count != want {
			t.Errorf("%d sealed again, want %d: %v", count, want, err)
		}
		if err := c.logIn(t, c.with(during, records{})); err != nil {
			t.Errorf("meanwhile: %v", err)
		}
	}
	if err := c.logIn(t, c.with(after, records{})); err != nil {
		t.Errorf("without the old master key: %v", err)
	}
	if _, err := rotation.SignOns(t.Context(), c.DB, before); !errors.Is(err, vault.ErrSealedElsewhere) {
		t.Errorf("with the old master key alone: %v", err)
	}
}

// S11
func TestUnknownDomainsOfOnePlaceAreSlowedDown(t *testing.T) {
	t.Parallel()
	c := setup(t)
	service := c.with(vaulttest.Of(t, "v"), records{})
	from := tenants.WithActor(t.Context(), tenants.Actor{From: "203.0.113.7"})
	for range 10 {
		if _, _, err := service.Begin(from, "who@nobody.example", "/"); !errors.Is(err, tenants.ErrNotFound) {
			t.Fatal(err)
		}
	}
	if _, _, err := service.Begin(from, "who@nobody.example", "/"); !errors.Is(err, tenants.ErrTooMany) {
		t.Errorf("the eleventh: %v", err)
	}
	if _, _, err := service.Begin(t.Context(), "who@nobody.example", "/"); !errors.Is(err, tenants.ErrNotFound) {
		t.Errorf("from elsewhere: %v", err)
	}
}

// S11: an identity without a subject, or with an address that two readers take for two people, opens
// no account.
func TestIdentityThatNamesNobodyOpensNoAccount(t *testing.T) {
	t.Parallel()
	c := setup(t)
	c.configure(t)
	service := c.with(vaulttest.Of(t, "v"), records{})
	for name, user := range map[string]*mockoidc.MockUser{
		"two @":         {Subject: "1", Email: "mira@evil.example@" + domain, EmailVerified: true},
		"no subject":    {Email: "mira@" + domain, EmailVerified: true},
		"blank subject": {Subject: " ", Email: "mira@" + domain, EmailVerified: true},
		"no domain":     {Subject: "1", Email: "mira", EmailVerified: true},
		"a line break":  {Subject: "1", Email: "mi\nra@" + domain, EmailVerified: true},
		"not verified":  {Subject: "1", Email: "mira@" + domain},
		"with a name":   {Subject: "1", Email: "Mira <mira@" + domain + ">", EmailVerified: true},
	} {
		if err := c.as(t, user, service, service); !errors.Is(err, tenants.ErrSignOn) {
			t.Errorf("%s: %v", name, err)
		}
	}
	var accounts int
	if err := c.Owner(t).QueryRow(t.Context(), "SELECT count(*) FROM users").Scan(&accounts); err != nil || accounts != 1 {
		t.Errorf("%d accounts, want the owner's alone (%v)", accounts, err)
	}
	if err := c.logIn(t, service); err != nil {
		t.Errorf("a whole identity: %v", err)
	}
}
