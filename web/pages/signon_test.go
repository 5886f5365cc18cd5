package pages_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/golang-jwt/jwt/v5"
	"github.com/oauth2-proxy/mockoidc"

	"palimpsest/tenants"
	"palimpsest/web/webtest"
)

// company is a workspace with a proven domain and an identity provider.
type company struct {
	*webtest.Product

	owner    *webtest.Person
	provider *mockoidc.MockOIDC
}

func signonSetup(t *testing.T) *company {
	t.Helper()
	provider, err := mockoidc.Run()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = provider.Shutdown() })
	product := webtest.Start(t)
	c := &company{Product: product, owner: product.SignUp(t, "northbeam"), provider: provider}
	saved := c.owner.Post("/settings/sign-on", "issuer", provider.Issuer(), "client_id", provider.ClientID, "secret", provider.ClientSecret, "role", "viewer")
	if saved.Path != "/settings/sign-on?done=saved" || strings.Contains(saved.HTML, provider.ClientSecret) {
		t.Fatalf("saving led to %s: %s", saved.Path, saved.Text("main"))
	}
	c.prove(t, c.owner, "corp.example")
	return c
}

// prove claims a domain for a person's workspace and proves it.
func (c *company) prove(t *testing.T, person *webtest.Person, domain string) {
	t.Helper()
	person.Post("/settings/sign-on/domains", "domain", domain)
	if page := person.Post("/settings/sign-on/domains/prove", "domain", domain); page.Status != http.StatusUnprocessableEntity {
		t.Fatalf("proven without a record: %d", page.Status)
	}
	c.Records.Add(domain, person.Get("/settings/sign-on").TestID("record"))
	if page := person.Post("/settings/sign-on/domains/prove", "domain", domain); page.Path != "/settings/sign-on?done=proven" {
		t.Fatalf("proving led to %s: %s", page.Path, page.Text("main"))
	}
}

// begin returns where a browser is sent back to once the provider knows the user.
func (c *company) begin(t *testing.T, browser *webtest.Person, user mockoidc.User) string {
	t.Helper()
	c.provider.QueueUser(user)
	asked := browser.Post("/login/sign-on", "email", "who@corp.example", "next", "/workspaces")
	address := asked.Find(`[data-testid="go"]`).AttrOr("href", "")
	if parsed, err := url.Parse(address); err != nil || parsed.Query().Get("code_challenge_method") != "S256" || parsed.Query().Get("nonce") == "" {
		t.Fatalf("led to %q: %s", address, asked.Text("main"))
	}
	back := browser.Direct(address).Header.Get("Location")
	path, found := strings.CutPrefix(back, webtest.PublicURL)
	if !found || !strings.HasPrefix(path, "/login/sign-on/callback?") {
		t.Fatalf("the provider leads to %q", back)
	}
	return path
}

// forged is a user whose id token says something else.
type forged struct {
	mockoidc.MockUser

	change func(*mockoidc.IDTokenClaims)
}

// Claims implements mockoidc.User.
func (f *forged) Claims(scope []string, claims *mockoidc.IDTokenClaims) (jwt.Claims, error) {
	f.change(claims)
	return f.MockUser.Claims(scope, claims)
}

func mira() *mockoidc.MockUser {
	return &mockoidc.MockUser{Subject: "7", Email: "Mira@corp.example", EmailVerified: true}
}

// refused reports whether an answer to a sign-on logs nobody in.
func refused(t *testing.T, what string, browser *webtest.Person, page webtest.Page) {
	t.Helper()
	if page.Status != http.StatusForbidden || page.TestID("error-form") == "" {
		t.Errorf("%s: %d at %s", what, page.Status, page.Path)
	}
	if page := browser.Get("/overview"); !strings.HasPrefix(page.Path, "/login") {
		t.Errorf("%s opens %s", what, page.Path)
	}
}

// S13
func TestPersonOfTheDomainBecomesAMember(t *testing.T) {
	t.Parallel()
	c := signonSetup(t)
	browser := c.Stranger(t)
	back := c.begin(t, browser, mira())
	if page := browser.Get(back); page.Path != "/workspaces" {
		t.Fatalf("signing on led to %s: %s", page.Path, page.Text("main"))
	}
	user, _, err := c.DB.Accounts.UserByEmail(t.Context(), "mira@corp.example")
	if err != nil || user.VerifiedAt == nil {
		t.Fatalf("%+v, %v", user, err)
	}
	memberships, err := c.DB.Workspaces.Memberships(t.Context(), user.ID)
	if err != nil || len(memberships) != 1 || memberships[0].Workspace.ID != c.owner.Workspace.ID || memberships[0].Role != tenants.Viewer {
		t.Errorf("memberships %+v, %v", memberships, err)
	}
	// No password is theirs: nobody logs in with an empty one.
	if page := c.Stranger(t).Post("/login", "email", "mira@corp.example", "password", ""); page.Status != http.StatusUnprocessableEntity {
		t.Errorf("an empty password: %d at %s", page.Status, page.Path)
	}
	again := c.Stranger(t)
	if page := again.Get(c.begin(t, again, mira())); page.Path != "/workspaces" {
		t.Errorf("a second time led to %s", page.Path)
	}
}

// S13
func TestWhatDoesNotProveAPersonIsRefused(t *testing.T) {
	t.Parallel()
	c := signonSetup(t)
	for what, user := range map[string]mockoidc.User{
		"an unverified address":     &mockoidc.MockUser{Subject: "7", Email: "mira@corp.example"},
		"an address of no domain":   &mockoidc.MockUser{Subject: "7", Email: "mira@other.example", EmailVerified: true},
		"the owner's other address": &mockoidc.MockUser{Subject: "7", Email: c.owner.Email, EmailVerified: true},
		"another audience":          &forged{*mira(), func(claims *mockoidc.IDTokenClaims) { claims.Audience = jwt.ClaimStrings{"another"} }},
		"another nonce":             &forged{*mira(), func(claims *mockoidc.IDTokenClaims) { claims.Nonce = "another" }},
		"another issuer":            &forged{*mira(), func(claims *mockoidc.IDTokenClaims) { claims.Issuer = "https://evil.example" }},
	} {
		browser := c.Stranger(t)
		refused(t, what, browser, browser.Get(c.begin(t, browser, user)))
	}

	browser := c.Stranger(t)
	back := c.begin(t, browser, mira())
	other := c.Stranger(t)
	refused(t, "another browser", other, other.Get(back))
	changed, err := url.Parse(back)
	if err != nil {
		t.Fatal(err)
	}
	query := changed.Query()
	query.Set("state", "another")
	refused(t, "another state", browser, browser.Get(changed.Path+"?"+query.Encode()))
	refused(t, "a try after a refused one", browser, browser.Get(back))

	first, second := c.Stranger(t), c.Stranger(t)
	used, err := url.Parse(c.begin(t, first, mira()))
	if err != nil {
		t.Fatal(err)
	}
	first.Get(used.String())
	fresh, err := url.Parse(c.begin(t, second, mira()))
	if err != nil {
		t.Fatal(err)
	}
	query = fresh.Query()
	query.Set("code", used.Query().Get("code"))
	refused(t, "a used code", second, second.Get(fresh.Path+"?"+query.Encode()))
}

// S13: anyone who signed up with an address that is not theirs keeps nothing once its
// owner has come.
func TestUnverifiedAccountIsTakenFromWhoeverMadeIt(t *testing.T) {
	t.Parallel()
	c := signonSetup(t)
	squatter := c.Stranger(t)
	if page := squatter.Post("/signup", "email", "mira@corp.example", "password", webtest.Password, "workspace", "mine"); page.Path != "/overview" {
		t.Fatalf("sign up led to %s", page.Path)
	}
	planted, _, err := c.DB.Accounts.UserByEmail(t.Context(), "mira@corp.example")
	if err != nil {
		t.Fatal(err)
	}
	squatter.Post("/account/email", "email", "squatter@elsewhere.example", "email_password", webtest.Password)
	mailed := *squatter
	mailed.Email = "squatter@elsewhere.example"
	link := mailed.Link("") // which makes the account that of the other address
	backDoor := tenants.Passkey{ID: planted.ID, Name: "back door", Credential: []byte("c"), PublicKey: []byte("k"), CreatedAt: planted.CreatedAt}
	if _, err := c.DB.Factors.AddPasskey(t.Context(), planted, planted.ID, backDoor, []byte("h"), [][]byte{[]byte("code")}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Database.Owner(t).Exec(t.Context(), "DELETE FROM members WHERE user_id = $1", planted.ID); err != nil {
		t.Fatal(err) // an account that belongs elsewhere is not taken
	}
	browser := c.Stranger(t)
	if page := browser.Get(c.begin(t, browser, mira())); page.Path != "/workspaces" {
		t.Fatalf("signing on led to %s", page.Path)
	}
	if factors, err := c.DB.Factors.FactorsOf(t.Context(), planted.ID); err != nil || factors != (tenants.Factors{}) {
		t.Errorf("the squatter's factors: %+v, %v", factors, err)
	}
	if page := squatter.Get("/account"); !strings.HasPrefix(page.Path, "/login") {
		t.Errorf("the squatter opens %s", page.Path)
	}
	if page := squatter.Post("/login", "email", "mira@corp.example", "password", webtest.Password); page.Status != http.StatusUnprocessableEntity {
		t.Errorf("the squatter's password: %d at %s", page.Status, page.Path)
	}
	squatter.Get(link)
	squatter.Post("/verify/confirm")
	if owner, _, err := c.DB.Accounts.UserByEmail(t.Context(), "mira@corp.example"); err != nil || owner.ID != planted.ID {
		t.Errorf("a link from before gives the account another address: %+v, %v", owner, err)
	}
}

// S13
func TestDomainCountsForOneWorkspaceOnceProven(t *testing.T) {
	t.Parallel()
	c := signonSetup(t)
	rival := c.SignUp(t, "rival")
	rival.Post("/settings/sign-on/domains", "domain", "corp.example")
	c.Records.Add("corp.example", rival.Get("/settings/sign-on").TestID("record"))
	if page := rival.Post("/settings/sign-on/domains/prove", "domain", "corp.example"); page.Status != http.StatusUnprocessableEntity || !strings.Contains(page.TestID("error-domain"), "another workspace") {
		t.Errorf("a second workspace proves the domain: %d, %s", page.Status, page.TestID("error-domain"))
	}
	if page := c.Stranger(t).Post("/login/sign-on", "email", "who@unknown.example"); page.Status != http.StatusUnprocessableEntity {
		t.Errorf("a domain that nobody has: %d", page.Status)
	}
	if page := c.owner.Post("/settings/sign-on/domains/remove", "domain", "corp.example"); page.Path != "/settings/sign-on?done=domain-removed" {
		t.Errorf("removing led to %s", page.Path)
	}
	if page := c.Stranger(t).Post("/login/sign-on", "email", "who@corp.example"); page.Status != http.StatusUnprocessableEntity {
		t.Errorf("a removed domain: %d", page.Status)
	}
}

func TestInvalidSettingIsExplained(t *testing.T) {
	t.Parallel()
	c := signonSetup(t)
	for field, values := range map[string][]string{
		"issuer":    {"issuer", "ftp://x", "client_id", "c", "secret", "s", "role", "member"},
		"client_id": {"issuer", c.provider.Issuer(), "client_id", "", "secret", "s", "role", "member"},
		"role":      {"issuer", c.provider.Issuer(), "client_id", "c", "secret", "s", "role", "owner"},
		// A kept secret is not sent to another client or issuer.
		"secret": {"issuer", c.provider.Issuer(), "client_id", "another", "secret", "", "role", "member"},
	} {
		if page := c.owner.Post("/settings/sign-on", values...); page.Status != http.StatusUnprocessableEntity || page.TestID("error-"+field) == "" {
			t.Errorf("%s: %d, %s", field, page.Status, page.Text("main"))
		}
	}
	if page := c.owner.Post("/settings/sign-on/domains", "domain", "no domain"); page.TestID("error-domain") == "" {
		t.Errorf("a domain with a space: %d", page.Status)
	}
	if page := c.owner.Post("/settings/sign-on/remove"); page.Path != "/settings/sign-on?done=removed" || page.TestID("state") != "not set" {
		t.Errorf("removing led to %s", page.Path)
	}
}
