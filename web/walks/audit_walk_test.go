package walks_test

import (
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"palimpsest/pipeline/fulltest"
	"palimpsest/tenants"
	"palimpsest/web/browsertest"
	"palimpsest/web/webtest"
)

// An entry of the audit log is one line, and opens by the keyboard.
func TestAuditIsReadLineByLine(t *testing.T) {
	t.Parallel()
	fulltest.Turn(t, 4)
	product := webtest.Start(t)
	person := product.SignUp(t, "northbeam")
	person.Post("/settings/retention", "days", "30")
	person.Post("/keys", "name", "a key with a name that is far too long for a line on a telephone", "expiry", "")
	person.Post("/members/"+person.Colleague(tenants.Viewer).User.ID.String()+"/role", "role", "admin")
	person.SetPipeline(0, "ipc:\n  targetUtilization: 0.6\n")
	tab := browsertest.Start(t).Open(t, browsertest.View{URL: product.URL, Theme: "light", Cookies: person.Cookies()})
	tab.Go("/audit")
	tab.CheckLoad("audit lines")
	tab.CheckLooks("audit lines") // a phone breaks long ones
	const heights = `[...document.querySelectorAll('.audit > li')].map(e => e.getBoundingClientRect().height)`
	if tall := browsertest.Evaluate[[]float64](tab, heights+`.filter(h => h > 48)`); len(tall) > 0 {
		t.Errorf("entries take %v px", tall)
	}
	tab.Run(`document.querySelector('.audit summary').focus()`)
	tab.Do(chromedp.KeyEvent(kb.Enter))
	tab.Until(`document.querySelector('.audit details').open`)
	tab.CheckLooks("audit opened")
}
