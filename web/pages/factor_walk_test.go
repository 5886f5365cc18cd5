package pages_test

import (
	"strings"
	"testing"

	"palimpsest/pipeline/fulltest"
	"palimpsest/web/browsertest"
	"palimpsest/web/webtest"
)

// The way of a person with an authenticator app and a real browser: it is set up, asks
// for its code after the password, and is switched off.
func TestPersonWalksWithAnApp(t *testing.T) {
	t.Parallel()
	fulltest.Turn(t, 4)
	product := webtest.Start(t)
	product.SignUp(t, "northbeam")
	tab := browsertest.Start(t).Open(t, browsertest.View{URL: product.URL, Theme: "light"})
	logIn := func() {
		tab.Go("/login")
		tab.Type("#field-email", "northbeam@example.com")
		tab.Type("#field-password", webtest.Password)
		tab.Click(`form[action="/login"] button[type="submit"]`)
	}
	logOut := func() {
		tab.Go("/overview")
		tab.Click(`.who button[aria-label="Log out"]`)
		tab.Until(browsertest.At("/login"))
	}

	logIn()
	tab.Until(browsertest.At("/overview"))
	tab.Go("/account")
	tab.Click(`#second-factor a[href="/account/second-factor"]`)
	tab.Until(browsertest.At("/account/second-factor") + ` && document.activeElement.matches('h1')`) // the page has taken its place
	tab.Fill("password", webtest.Password)
	tab.Press("Set up")
	tab.Until(`(image => image !== null && image.complete && image.naturalWidth > 0)(document.querySelector('img.qr'))`)
	tab.CheckLooks("second factor waits")
	secret := tab.Text(`[data-testid="secret"]`)
	tab.Fill("code", codeAt(t, secret, 0))
	tab.Press("Switch on")
	tab.Until(`document.querySelectorAll('[data-testid="codes"] li').length === 10`)
	tab.CheckLooks("second factor on")
	recovery := strings.TrimSpace(tab.Text(`[data-testid="codes"] li`))

	logOut()
	logIn()
	tab.Until(`location.pathname === '/login/code' && document.activeElement.name === 'code'`)
	tab.Fill("code", "12345")
	tab.Press("Log in")
	tab.Until(`document.querySelector('[data-testid="error-code"]') !== null`)
	tab.CheckLooks("log in code refused")
	tab.Set(`[name="code"]`, codeAt(t, secret, 1))
	tab.Press("Log in")
	tab.Until(browsertest.At("/overview"))

	tab.Go("/account/second-factor")
	tab.Fill("password", webtest.Password)
	tab.Fill("code", recovery)
	tab.Press("Switch off")
	tab.Until(browsertest.At("/account/second-factor?done=off") + ` && document.querySelector('[data-testid="state"]').textContent === 'off'`)
	logOut()
	logIn()
	tab.Until(browsertest.At("/overview"))
}
