package walks_test

import (
	"strings"
	"testing"

	"palimpsest/pipeline/fulltest"
	"palimpsest/tenants"
	"palimpsest/web/browsertest"
	"palimpsest/web/webtest"
)

// Send again is one click on the page of a request. Both answers then stand side by side, and
// one below the other on a phone.
func TestSendAgainIsOneClick(t *testing.T) {
	t.Parallel()
	fulltest.Turn(t, 4)
	product := webtest.Start(t)
	person := product.SignUp(t, "northbeam")
	person.TalkOnce(person.Connect(webtest.Provider(t, window), "laptop-mira"), window, "/v1/messages",
		`{"model":"claude-sonnet-4-5","max_tokens":100,"messages":[{"role":"user","content":"<img src=x onerror=alert(1)> what is a lane?"}]}`, claudeCode)
	exchanges, _, err := product.DB.Exchanges.Exchanges(tenants.OwnWork(t.Context()), person.Workspace.ID, tenants.ExchangeFilter{})
	if err != nil || len(exchanges) != 1 {
		t.Fatalf("%d exchanges, %v", len(exchanges), err)
	}
	browser := browsertest.Start(t)
	for _, width := range browsertest.Widths() {
		tab := browser.Open(t, browsertest.View{URL: product.URL, Theme: "light", Width: width, Cookies: person.Cookies()})
		tab.Go("/requests/" + exchanges[0].ID.String())
		tab.Click(`[data-testid="send-again"]`)
		tab.Until(`location.pathname === '/requests/compare' && document.querySelectorAll('[data-testid="answered"]').length === 2 && [...document.querySelectorAll('[data-testid="answered"]')].every(answer => answer.clientWidth > 0)`)
		if text := tab.Text(`[data-testid="compared"]`); strings.Count(text, "what is a lane?") < 2 {
			t.Errorf("it says %q", text)
		}
		besides := browsertest.Evaluate[bool](tab, `(() => {
			const [first, second] = [...document.querySelectorAll('[data-testid="answered"]')].map(answer => answer.getBoundingClientRect());
			return second.left >= first.right;
		})()`)
		if besides != (width == browsertest.Desktop) {
			t.Errorf("%d px wide: side by side is %v", width, besides)
		}
		tab.CheckLooks("requests side by side")
	}
}
