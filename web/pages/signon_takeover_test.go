package pages_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/oauth2-proxy/mockoidc"

	"palimpsest/tenants"
	"palimpsest/web/webtest"
)

// signUpMira signs up a person with an address of the company, in a workspace of her own.
func (c *company) signUpMira(t *testing.T) (*webtest.Person, tenants.User) {
	t.Helper()
	person := c.Stranger(t)
	if page := person.Post("/signup", "email", "mira@corp.example", "password", webtest.Password, "workspace", "elsewhere"); page.Path != "/overview" {
		t.Fatalf("sign up led to %s", page.Path)
	}
	user, _, err := c.DB.Accounts.UserByEmail(t.Context(), "mira@corp.example")
	if err != nil {
		t.Fatal(err)
	}
	return person, user
}

// exec changes the database as its owner.
func (c *company) exec(t *testing.T, statement string, values ...any) {
	t.Helper()
	if _, err := c.Database.Owner(t).Exec(t.Context(), statement, values...); err != nil {
		t.Fatal(err)
	}
	c.People.Forget()
}

// S13, S35: an identity provider opens no account that reaches beyond its workspace.
func TestAccountThatBelongsElsewhereIsNotOpenedByAnIdentityProvider(t *testing.T) {
	t.Parallel()
	for name, verified := range map[string]bool{"verified": true, "unverified": false} {
		c := signonSetup(t)
		victim, user := c.signUpMira(t)
		if verified {
			c.exec(t, "UPDATE users SET verified_at = now() WHERE id = $1", user.ID)
		}
		attacker := c.Stranger(t)
		page := attacker.Get(c.begin(t, attacker, mira()))
		refused(t, name, attacker, page)
		if !strings.Contains(page.TestID("error-form"), "Log in once with your password or a passkey") {
			t.Errorf("%s: it says %q", name, page.TestID("error-form"))
		}
		if page := victim.Get("/account"); page.Path != "/account" {
			t.Errorf("%s: the victim is led to %s", name, page.Path)
		}
		memberships, err := c.DB.Workspaces.Memberships(t.Context(), user.ID)
		if err != nil || len(memberships) != 1 || memberships[0].Workspace.ID == c.owner.Workspace.ID {
			t.Errorf("%s: memberships %+v, %v", name, memberships, err)
		}
	}
}

// S13, S35
func TestOperatorIsNotOpenedByAnIdentityProvider(t *testing.T) {
	t.Parallel()
	c := signonSetup(t)
	_, user := c.signUpMira(t)
	c.exec(t, "DELETE FROM logins WHERE user_id = $1", user.ID)
	c.exec(t, "UPDATE members SET workspace_id = $2 WHERE user_id = $1", user.ID, c.owner.Workspace.ID)
	c.exec(t, "INSERT INTO operators (user_id) VALUES ($1)", user.ID)
	attacker := c.Stranger(t)
	refused(t, "operator", attacker, attacker.Get(c.begin(t, attacker, mira())))
}

// S13, S35: once its person has proven that the account is theirs, single sign-on opens it, in
// the one workspace.
func TestConnectedAccountOpensItsWorkspaceOnly(t *testing.T) {
	t.Parallel()
	c := signonSetup(t)
	person, user := c.signUpMira(t)
	c.exec(t, "INSERT INTO operators (user_id) VALUES ($1)", user.ID)
	elsewhere, err := c.DB.Workspaces.Memberships(t.Context(), user.ID)
	if err != nil {
		t.Fatal(err)
	}
	if page := person.Get(c.begin(t, person, mira())); page.Path != "/workspaces" {
		t.Fatalf("connecting led to %s: %s", page.Path, page.Text("main"))
	}
	browser := c.Stranger(t)
	if page := browser.Get(c.begin(t, browser, mira())); page.Path != "/workspaces" || strings.Contains(page.Text("main"), "elsewhere") {
		t.Fatalf("signing on led to %s: %s", page.Path, page.Text("main"))
	}
	for path, status := range map[string]int{
		"/workspaces/" + elsewhere[0].Workspace.ID.String() + "/enter": http.StatusForbidden,
		"/workspaces": http.StatusForbidden,
	} {
		if page := browser.Post(path, "name", "another"); page.Status != status {
			t.Errorf("POST %s: %d at %s", path, page.Status, page.Path)
		}
	}
	if page := browser.Get("/operator"); page.Status != http.StatusNotFound {
		t.Errorf("the operator's page: %d", page.Status)
	}
	// Another identity behind the same address is not the one that was connected.
	other := c.Stranger(t)
	refused(t, "another subject", other, other.Get(c.begin(t, other, &mockoidc.MockUser{Subject: "8", Email: "mira@corp.example", EmailVerified: true})))
	// Nor is the same name at another issuer.
	c.exec(t, "UPDATE members SET sign_on_issuer = 'https://before.example' WHERE user_id = $1 AND workspace_id = $2", user.ID, c.owner.Workspace.ID)
	refused(t, "another issuer", other, other.Get(c.begin(t, other, mira())))
}

// S13, S35: what one logs in with after single sign-on does not widen what it opens.
func TestCodeAfterSingleSignOnOpensItsWorkspaceOnly(t *testing.T) {
	t.Parallel()
	c := signonSetup(t)
	person, user := c.signUpMira(t)
	person.Get(c.begin(t, person, mira()))
	principal, _, err := c.People.OpenSignOn(t.Context(), user, c.owner.Workspace.ID, "test")
	if err != nil || principal.Login.SignOn != c.owner.Workspace.ID || len(principal.Memberships) != 1 {
		t.Fatalf("%+v, %v", principal, err)
	}
	codes, hashes := c.People.NewRecoveryCodes(user.ID)
	passkey := tenants.Passkey{ID: user.ID, Name: "Phone", Credential: []byte("c"), PublicKey: []byte("k"), CreatedAt: user.CreatedAt}
	if _, err := c.DB.Factors.AddPasskey(t.Context(), user, uuid.Nil, passkey, []byte("h"), hashes); err != nil {
		t.Fatal(err)
	}
	c.People.Forget()
	browser := c.Stranger(t)
	if page := browser.Get(c.begin(t, browser, mira())); !strings.HasPrefix(page.Path, "/login/code") {
		t.Fatalf("signing on led to %s", page.Path)
	}
	if page := browser.Post("/login/code", "code", codes[0]); page.Status != http.StatusOK {
		t.Fatalf("the code: %d at %s", page.Status, page.Path)
	}
	if page := browser.Get("/workspaces"); page.Path != "/workspaces" || strings.Contains(page.Text("main"), "elsewhere") {
		t.Errorf("it opens %s: %s", page.Path, page.Text("main"))
	}
}

// S13, S35: to connect an account, its person has proven it to us lately, by what is theirs alone:
// neither an old login nor that of another company's single sign-on does.
func TestOnlyARecentLoginOfOnesOwnConnectsAnAccount(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]string{
		"an old login":               "UPDATE logins SET created_at = now() - interval '16 minutes' WHERE user_id = $1",
		"another company's sign-on":  "UPDATE logins SET sign_on_workspace = workspace_id WHERE user_id = $1",
		"a login that has been left": "UPDATE logins SET revoked_at = now() WHERE user_id = $1",
	} {
		c := signonSetup(t)
		person, user := c.signUpMira(t)
		c.exec(t, change, user.ID)
		if page := person.Get(c.begin(t, person, mira())); page.Status != http.StatusForbidden || !strings.Contains(page.TestID("error-form"), "Log in once with your password or a passkey") {
			t.Errorf("%s: %d at %s: %q", name, page.Status, page.Path, page.TestID("error-form"))
		}
		memberships, err := c.DB.Workspaces.Memberships(t.Context(), user.ID)
		if err != nil || len(memberships) != 1 {
			t.Errorf("%s: %d memberships, %v", name, len(memberships), err)
		}
	}
}

// S13: what comes back once the settings have changed proves nobody.
func TestSignOnEndsWithTheSettingsThatItBeganWith(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]string{
		"another client": "UPDATE sign_ons SET client_id = 'another' WHERE workspace_id = $1",
		"another issuer": "UPDATE sign_ons SET issuer = 'https://another.example' WHERE workspace_id = $1",
		"none":           "DELETE FROM sign_ons WHERE workspace_id = $1",
	} {
		c := signonSetup(t)
		browser := c.Stranger(t)
		back := c.begin(t, browser, mira())
		c.exec(t, change, c.owner.Workspace.ID)
		refused(t, name, browser, browser.Get(back))
	}
}

// S13, S35
func TestAnotherIssuerHasTheDomainsProvenAgain(t *testing.T) {
	t.Parallel()
	c := signonSetup(t)
	rival, err := mockoidc.Run()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = rival.Shutdown() })
	save := func(provider *mockoidc.MockOIDC) {
		c.owner.Post("/settings/sign-on", "issuer", provider.Issuer(), "client_id", provider.ClientID, "secret", provider.ClientSecret, "role", "viewer")
	}
	count := func() bool {
		_, err := c.DB.SignOn.SignOnWorkspace(t.Context(), "corp.example")
		return err == nil
	}
	if save(c.provider); !count() {
		t.Error("saving the same issuer takes the domain's proof away")
	}
	if save(rival); count() {
		t.Error("the domain counts for another issuer")
	}
	if page := c.owner.Post("/settings/sign-on/domains/prove", "domain", "corp.example"); page.Status != http.StatusUnprocessableEntity {
		t.Errorf("the record from before proves it again: %d", page.Status)
	}
	c.Records.Add("corp.example", c.owner.Get("/settings/sign-on").TestID("record"))
	c.owner.Post("/settings/sign-on/domains/prove", "domain", "corp.example")
	if !count() {
		t.Error("a new record does not prove it")
	}
	c.owner.Post("/settings/sign-on/remove")
	if save(rival); count() {
		t.Error("removing and saving keeps the proof")
	}
}

// S13, S35
func TestOnlyOwnersWhoLoggedInLatelyChangeSingleSignOn(t *testing.T) {
	t.Parallel()
	c := signonSetup(t)
	change := []string{"issuer", c.provider.Issuer(), "client_id", c.provider.ClientID, "secret", c.provider.ClientSecret, "role", "member"}
	c.exec(t, "UPDATE logins SET created_at = now() - interval '16 minutes' WHERE user_id = $1", c.owner.User.ID)
	for path, values := range map[string][]string{
		"/settings/sign-on": change, "/settings/sign-on/remove": nil, "/settings/sign-on/domains": {"domain", "more.example"},
		"/settings/sign-on/domains/prove": {"domain", "corp.example"}, "/settings/sign-on/domains/remove": {"domain", "corp.example"},
	} {
		if page := c.owner.Post(path, values...); page.Status != http.StatusForbidden || !strings.Contains(page.Text("main"), "Log in again") {
			t.Errorf("an old login, %s: %d: %s", path, page.Status, page.Text("main"))
		}
	}
	c.exec(t, "UPDATE logins SET created_at = now() WHERE user_id = $1", c.owner.User.ID)
	if page := c.owner.Post("/settings/sign-on", change...); page.Path != "/settings/sign-on?done=saved" {
		t.Errorf("a new login led to %s", page.Path)
	}
	admin := c.owner.As(tenants.Admin)
	if page := admin.Post("/settings/sign-on", change...); page.Status != http.StatusForbidden {
		t.Errorf("an admin: %d", page.Status)
	}
}
