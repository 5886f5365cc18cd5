package pages_test

import (
	"testing"

	"github.com/oauth2-proxy/mockoidc"

	"palimpsest/pipeline/fulltest"
	"palimpsest/tenants"
	"palimpsest/web/browsertest"
	"palimpsest/web/webtest"
)

// An owner sets single sign-on up with a real browser, and someone of the domain logs in
// through the provider with another.
func TestPeopleWalkThroughSingleSignOn(t *testing.T) {
	t.Parallel()
	fulltest.Turn(t, 4)
	provider, err := mockoidc.Run()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = provider.Shutdown() })
	product := webtest.Start(t, webtest.SignOnHere)
	owner := product.SignUp(t, "northbeam")
	browser := browsertest.Start(t)

	tab := browser.Open(t, browsertest.View{URL: product.URL, Theme: "light", Cookies: owner.Cookies()})
	tab.Go("/settings/sign-on")
	tab.Fill("issuer", "https://127.0.0.1:1")
	tab.Fill("client_id", provider.ClientID)
	tab.Fill("secret", provider.ClientSecret)
	tab.Press("Save")
	tab.Until(`document.querySelector('[data-testid="error-issuer"]') !== null`)
	tab.CheckLooks("sign-on refused")
	tab.Set(`[name="issuer"]`, provider.Issuer())
	tab.Fill("secret", provider.ClientSecret)
	tab.Press("Save")
	tab.Until(browsertest.At("/settings/sign-on?done=saved") + ` && document.querySelector('[data-testid="state"]').textContent === 'set' && document.activeElement.matches('h1')`) // the page has taken its place
	tab.Fill("domain", "corp.example")
	tab.Press("Add domain")
	tab.Until(`document.querySelector('[data-testid="record"]') !== null && document.activeElement.matches('h1')`) // the page has taken its place
	tab.Press("Verify")
	tab.Until(`document.querySelector('[data-testid="error-domain"]') !== null`)
	product.Records.Add("corp.example", tab.Text(`[data-testid="record"]`))
	tab.Press("Verify")
	tab.Until(browsertest.At("/settings/sign-on?done=proven"))
	tab.CheckLooks("sign-on proven")

	stranger := browser.Open(t, browsertest.View{URL: product.Local, Theme: "dark"})
	stranger.Go("/login?next=%2Fsessions")
	stranger.Click(`a[href^="/login/sign-on"]`)
	stranger.Until(browsertest.At("/login/sign-on?next=%2Fsessions"))
	stranger.Type("#field-email", "mira@nobody.example")
	stranger.Press("Continue")
	stranger.Until(`document.querySelector('[data-testid="error-form"]') !== null`)
	stranger.CheckLooks("sign-on unknown")
	provider.QueueUser(&mockoidc.MockUser{Subject: "7", Email: "mira@corp.example", EmailVerified: true})
	stranger.Set("#field-email", "mira@corp.example")
	stranger.Press("Continue")
	stranger.Until(`document.querySelector('[data-testid="go"]') !== null`)
	stranger.CheckLooks("sign-on go")
	stranger.Click(`[data-testid="go"]`)
	stranger.See(".who .mail") // past the provider, which is another site
	stranger.Until(browsertest.At("/sessions"))
	if mail := stranger.Text(".who .mail"); mail != "mira@corp.example" {
		t.Errorf("logged in is %q", mail)
	}

	// Someone with a second factor here is asked for it, too.
	user, _, err := product.DB.Accounts.UserByEmail(t.Context(), "mira@corp.example")
	if err != nil {
		t.Fatal(err)
	}
	passkey := tenants.Passkey{ID: user.ID, Name: "Phone", Credential: []byte("c"), PublicKey: []byte("k"), CreatedAt: user.CreatedAt}
	if _, err := product.DB.Factors.AddPasskey(t.Context(), user, user.ID, passkey, []byte("h"), nil); err != nil {
		t.Fatal(err)
	}
	product.People.Forget()
	again := browser.Open(t, browsertest.View{URL: product.Local})
	provider.QueueUser(&mockoidc.MockUser{Subject: "7", Email: "mira@corp.example", EmailVerified: true})
	again.Go("/login/sign-on")
	again.Type("#field-email", "mira@corp.example")
	again.Press("Continue")
	again.Until(`document.querySelector('[data-testid="go"]') !== null`)
	again.Click(`[data-testid="go"]`)
	again.See(`form[data-passkey="get"] button`)
	again.Until(`location.pathname === '/login/code'`)
}
