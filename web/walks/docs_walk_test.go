package walks_test

import (
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"palimpsest/pipeline/fulltest"
	"palimpsest/web/browsertest"
	"palimpsest/web/webtest"
)

// A stranger finds a page by the keyboard alone, and its anchors lead to their headings; a
// member gets from a page of the dashboard to what the docs say about it.
func TestDocsAreSearchedAndReadByKeyboard(t *testing.T) {
	t.Parallel()
	fulltest.Turn(t, 4)
	product := webtest.Start(t)
	person := product.SignUp(t, "northbeam")
	browser := browsertest.Start(t)
	tab := browser.Open(t, browsertest.View{URL: product.URL, Theme: "light"})
	tab.Go("/login")
	tab.Click(`.alone-top a[href="/docs"]`)
	tab.Until(browsertest.At("/docs"))
	tab.CheckLoad("docs")
	tab.CheckLooks("docs")
	press(tab, "/")
	tab.Until(`document.activeElement.id === 'find'`)
	tab.Do(chromedp.KeyEvent("when something is down"), chromedp.KeyEvent(kb.Enter))
	tab.Until(`document.querySelector('[data-testid="found"]') !== null`)
	tab.CheckLooks("docs search")
	tab.Click(`.docs-cards a[href="/docs/monitoring#when-something-is-down"]`)
	tab.Until(browsertest.At("/docs/monitoring") + ` && Math.abs(document.querySelector('#when-something-is-down').getBoundingClientRect().top) < 200`)
	tab.CheckLooks("docs page")
	tab.Click(`.outline a[href="#metrics"]`)
	tab.Until(`location.hash === '#metrics' && Math.abs(document.querySelector('#metrics').getBoundingClientRect().top) < 200`)

	tab = browser.Open(t, browsertest.View{URL: product.URL, Theme: "light", Cookies: person.Cookies()})
	tab.Go("/keys")
	tab.Click(`.top a[href="/docs/api-keys"]`)
	tab.Until(browsertest.At("/docs/api-keys") + ` && document.querySelector('.docs-list [aria-current="page"]').textContent === 'API keys'`)
	tab.CheckLoad("docs inside")
	tab.CheckLooks("docs inside")
	tab.Click(`.nav a[href="/overview"]`)
	tab.Until(browsertest.At("/overview"))
}
