package walks_test

import (
	"testing"

	"palimpsest/pipeline/fulltest"
	"palimpsest/tenants"
	"palimpsest/web/browsertest"
	"palimpsest/web/webtest"
)

// S53: a person types a terminal's code, reads who asks, and allows it.
func TestTerminalIsAllowedInTheBrowser(t *testing.T) {
	t.Parallel()
	fulltest.Turn(t, 4)
	product := webtest.Start(t)
	person := product.SignUp(t, "northbeam")
	codes, err := product.Devices.Begin(tenants.WithActor(t.Context(), tenants.Actor{From: "203.0.113.7"}), "ada's laptop")
	if err != nil {
		t.Fatal(err)
	}
	tab := browsertest.Start(t).Open(t, browsertest.View{URL: product.URL, Theme: "light", Cookies: person.Cookies()})

	tab.Go("/device")
	tab.CheckLooks("terminal code")
	tab.Fill("code", "bbbbbbbb")
	tab.Click(`main button[type="submit"]`)
	tab.See(`[data-testid="error-code"]`)
	tab.CheckFit("terminal code wrong")
	tab.Set("#field-code", codes.User)
	tab.Click(`main button[type="submit"]`)
	tab.See(`[data-testid="terminal-asks"]`)
	tab.CheckLooks("terminal asks")
	tab.Click(`button[value="allow"]`)
	tab.See(`[data-testid="terminal-done"]`)
	tab.CheckFit("terminal allowed")
	if _, err := product.Devices.Redeem(t.Context(), codes.Device); err != nil {
		t.Errorf("the terminal gets no key: %v", err)
	}
}
