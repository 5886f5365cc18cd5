package walks_test

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"palimpsest/web/browsertest"
	"palimpsest/web/clients"
	"palimpsest/web/webtest"
)

// The way of a stranger through the product with the scripts on: pages are
// swapped, not loaded, and what a person sees is what is stored.
func TestStrangerWalksThroughWithTheScriptsOn(t *testing.T) {
	t.Parallel()
	product := webtest.Start(t)
	double := webtest.Provider(t, window)
	tab := browsertest.Start(t).Open(t, browsertest.View{URL: product.URL, Theme: "light"})
	const submit = `main button[type="submit"]`

	tab.Go("/signup")
	tab.Type("#field-email", "mira@example.com")
	tab.Type("#field-password", "short")
	tab.Type("#field-workspace", "northbeam")
	tab.Click(submit)
	tab.Until(`document.querySelector('[data-testid="error-password"]') !== null && document.activeElement.name === 'password'`)
	tab.Check("sign up refused")
	tab.Type("#field-password", webtest.Password)
	tab.Click(submit)
	tab.Until(browsertest.At("/overview"))

	// A navigation swaps the page; the document stays.
	tab.Do(chromedp.SetAttributeValue("html", "data-same", "yes"))
	tab.Click(`.nav a[href="/providers"]`)
	tab.Until(browsertest.At("/providers") + ` && document.title.startsWith('Providers') && document.activeElement.matches('h1')`)
	tab.Click(`.head a[href="/providers/new"]`)
	tab.Until(opened)
	tab.Type("#field-name", "anthropic-prod")
	tab.Type("#field-key", webtest.ProviderKey)
	tab.Type("#field-base_url", double.URL)
	tab.Click(`dialog button[type="submit"]`)
	tab.Until(`location.search.startsWith('?added=') && document.querySelector('dialog[open]') === null`)
	tab.Click(`form[action$="/test"] button`)
	tab.Until(`(document.querySelector('[data-testid="outcome"]') || {textContent: ''}).textContent.includes('The key works')`)

	tab.Click(`.nav a[href="/keys"]`)
	tab.Until(browsertest.At("/keys"))
	tab.Click(`.head a[href="/keys/new"]`)
	tab.Until(opened)
	tab.Type("#field-name", "laptop")
	tab.Click(`dialog button[type="submit"]`)
	tab.Until(`document.querySelector('dialog:modal [data-testid="secret"]') !== null`)
	secret := tab.Text(`[data-testid="secret"]`)
	if !strings.HasPrefix(secret, "plm_") {
		t.Fatalf("the secret is %q", secret)
	}
	tab.CheckLooks("key created")
	tab.Until(`document.querySelector('dialog #steps') !== null`)
	for _, client := range clients.All(webtest.PublicURL) {
		tab.Click(`dialog #d-` + client.ID + `-tab`)
		tab.Until(`document.querySelector('#d-` + client.ID + `').hidden === false && document.querySelectorAll('dialog section:not([hidden])').length === 1`)
	}
	tab.Click(`[data-testid="copied"]`)
	tab.Until(browsertest.At("/keys") + ` && document.querySelector('dialog[open]') === null && !document.body.textContent.includes('` + secret + `')`)

	tab.Click(`#c-openai-sdk-tab`)
	tab.CheckLooks("keys with an SDK")
	tab.Click(`#c-pi-tab`)
	tab.CheckLooks("keys with a long line")

	// The steps on the overview see the first request arrive.
	tab.Click(`.nav a[href="/overview"]`)
	tab.Until(`(document.querySelector('#steps') || {dataset: {}}).dataset.done === '2'`)
	person := product.LogIn(t, "mira@example.com")
	person.Talk(secret, window, webtest.LongTalk(), claudeCode)
	tab.Until(`(document.querySelector('#steps') || {dataset: {}}).dataset.done === '3' && document.querySelector('#steps').textContent.includes('Claude Code')`)

	tab.Click(`.nav a[href="/sessions"]`)
	tab.Until(browsertest.At("/sessions") + ` && document.querySelector('.sessions a.ttl') !== null`)
	tab.Type("#find", "nothing is called this")
	tab.Until(`document.querySelector('#list [data-testid="empty"]') !== null && location.search.includes('nothing')`)
	tab.Set("#find", "step")
	tab.Until(`document.querySelector('#list .sessions a.ttl') !== null`)
	tab.Click(`.sessions a.ttl`)
	tab.Until(charted + ` && document.querySelector('#read') !== null`)
	tab.Click(`.turns li.tickable a`)
	tab.Until(`document.querySelector('.turns li.tickable a').getAttribute('aria-current') === 'true' && location.search.includes('m=')`)
	if original, sent := tab.Text(`[data-testid="original"] pre`), tab.Text(`[data-testid="sent"]`); original == "" || sent == "" {
		t.Errorf("original %q, sent %q", original, sent)
	}
	tab.Until(charted)

	// The slider moves, the bar says what changes, saving keeps it.
	person.SetPipeline(0, "ipc:\n  compressTo: 0.25\n")
	tab.Click(`.nav a[href="/pipeline"]`)
	tab.Until(browsertest.At("/pipeline") + ` && document.querySelector('[data-savebar]').hidden`)
	tab.Set("[data-slider]", "0.58")
	tab.Until(`document.querySelector('[data-changes]').textContent.replace(/\s+/g, ' ').includes('targetUtilization 0.80 → 0.58')`)
	// compressTo gives way to a lower target and comes back with a higher one.
	tab.Set("[data-slider]", "0.31")
	tab.Until(`document.querySelector('[data-changes]').textContent.replace(/\s+/g, ' ').includes('compressTo 0.25 → 0.21')`)
	tab.Set("[data-slider]", "0.55")
	tab.Until(`document.querySelector('[name="ipc.compressTo"]').value === '0.25'`)
	tab.Set("[data-slider]", "0.32")
	tab.Until(`document.querySelector('[name="ipc.compressTo"]').value === '0.22'`)
	tab.CheckLooks("pipeline moved")
	tab.Click(`[data-savebar] button[type="submit"]`)
	tab.Until(browsertest.At("/pipeline?saved=2") + ` && document.querySelector('[name="ipc.targetUtilization"]').value === '0.32' && document.querySelector('[name="ipc.compressTo"]').value === '0.22'`)
	if same := browsertest.Evaluate[string](tab, `document.documentElement.dataset.same || 'no'`); same != "yes" {
		t.Error("pages were loaded again")
	}

	// The theme changes at once and stays.
	tab.Click(".top .to-dark")
	tab.Until(`document.documentElement.dataset.theme === 'dark' && document.cookie.includes('theme=dark')`)
	tab.Back()
	tab.Until(browsertest.At("/pipeline") + ` && document.querySelector('main h1') !== null`)
	tab.Click(`.who button[aria-label="Log out"]`)
	tab.Until(browsertest.At("/login"))
}
