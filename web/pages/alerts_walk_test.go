package pages_test

import (
	"strings"
	"testing"

	"palimpsest/pipeline/fulltest"
	"palimpsest/web/browsertest"
	"palimpsest/web/webtest"
)

const headed = ` && document.activeElement.matches('h1')` // the page has taken its place

// An owner adds a webhook with a real browser, sends a test, and reads what came of it. The
// receiver fails, and works again.
func TestOwnerAddsWebhookAndReadsItsDeliveries(t *testing.T) {
	t.Parallel()
	fulltest.Turn(t, 4)
	receiver := receive(t)
	product := webtest.Start(t)
	owner := product.SignUp(t, "northbeam")
	tab := browsertest.Start(t).Open(t, browsertest.View{URL: product.URL, Theme: "light", Cookies: owner.Cookies()})
	tab.Go("/settings")
	tab.Click(`main .tabs a[href="/settings/alerts"]`)
	tab.Until(browsertest.At("/settings/alerts") + headed)
	tab.CheckLooks("alerts empty")
	tab.Click(`main a[href="/settings/alerts/channels/new?kind=webhook"]`)
	tab.See(`dialog[open] [name="url"]`)
	tab.CheckLooks("alerts new webhook")
	tab.Fill("name", "On call")
	tab.Fill("url", receiver.URL+"/hooks")
	tab.Press("Save channel")
	tab.See("#signing-secret")
	secret := tab.Text("#signing-secret")
	tab.CheckLooks("alerts secret")

	tab.Press("Send a test")
	tab.Until(browsertest.At("/settings/alerts?done=tested") + headed)
	got := receiver.one(t)
	verify(t, secret, got)
	if row := tab.Text(`[data-testid="deliveries"] tbody tr`); !strings.Contains(row, "Test of On call") || !strings.Contains(row, "delivered") || !strings.Contains(row, "200 thanks") {
		t.Errorf("the log says %q", row)
	}
	tab.CheckLooks("alerts tested")

	receiver.answers(503)
	tab.Press("Send a test")
	tab.Until(browsertest.At("/settings/alerts?done=refused") + headed)
	tab.CheckLooks("alerts refused")
	receiver.one(t)
	receiver.answers(200)
	tab.Press("Retry")
	tab.Until(browsertest.At("/settings/alerts?done=retried") + headed)
	if row := tab.Text(`[data-testid="deliveries"] tbody tr`); !strings.Contains(row, "waiting") {
		t.Errorf("the log says %q", row)
	}
}
