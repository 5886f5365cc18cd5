package web_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"palimpsest/web/webtest"
)

// at is true once the page of a path is there.
func at(path string) string {
	return `location.pathname + location.search === '` + path + `' && document.readyState === 'complete'`
}

// The way of a stranger through the product with the scripts on: pages are
// swapped, not loaded, and what a person sees is what is stored.
func TestStrangerWalksThroughWithTheScriptsOn(t *testing.T) {
	t.Parallel()
	product := webtest.Start(t)
	double := webtest.Provider(t, window)
	tab := openBrowser(t).open(t, product.Stranger(t), "light", 1440)
	submit := chromedp.Click(`main button[type="submit"]`)

	tab.do(chromedp.Navigate(product.URL + "/signup"))
	tab.until(settled)
	tab.do(chromedp.SendKeys("#field-email", "mira@example.com"), chromedp.SendKeys("#field-password", "short"),
		chromedp.SendKeys("#field-workspace", "northbeam"), submit)
	tab.until(`document.querySelector('[data-testid="error-password"]') !== null && document.activeElement.name === 'password'`)
	tab.check("sign up refused")
	tab.do(chromedp.SendKeys("#field-password", webtest.Password), submit)
	tab.until(at("/overview"))

	// A navigation swaps the page; the document stays.
	tab.do(chromedp.SetAttributeValue("html", "data-same", "yes"))
	tab.do(chromedp.Click(`.nav a[href="/providers"]`))
	tab.until(at("/providers") + ` && document.title.startsWith('Providers') && document.activeElement.matches('h1')`)
	tab.do(chromedp.Click(`.head a[href="/providers/new"]`))
	tab.until(opened)
	tab.do(chromedp.SendKeys("#field-name", "anthropic-prod"), chromedp.SendKeys("#field-key", webtest.ProviderKey),
		chromedp.SendKeys("#field-base_url", double.URL), chromedp.Click(`dialog button[type="submit"]`))
	tab.until(`location.search.startsWith('?added=') && document.querySelector('dialog') === null`)
	tab.do(chromedp.Click(`form[action$="/test"] button`))
	tab.until(`(document.querySelector('[data-testid="outcome"]') || {textContent: ''}).textContent.includes('The key works')`)

	tab.do(chromedp.Click(`.nav a[href="/keys"]`))
	tab.until(at("/keys"))
	tab.do(chromedp.Click(`.head a[href="/keys/new"]`))
	tab.until(opened)
	tab.do(chromedp.SendKeys("#field-name", "laptop"), chromedp.Click(`dialog button[type="submit"]`))
	tab.until(`document.querySelector('dialog:modal [data-testid="secret"]') !== null`)
	secret := tab.text(`[data-testid="secret"]`)
	if !strings.HasPrefix(secret, "plm_") {
		t.Fatalf("the secret is %q", secret)
	}
	tab.check("key created")
	tab.picture("key created light 1440")
	tab.do(chromedp.Click(`dialog [role="tab"]:nth-child(2)`))
	tab.until(`document.querySelector('#d-codex').hidden === false && document.querySelector('#d-claude-code').hidden`)
	tab.do(chromedp.Click(`[data-testid="copied"]`))
	tab.until(at("/keys") + ` && document.querySelector('dialog') === null && !document.body.textContent.includes('` + secret + `')`)

	// The steps on the overview see the first request arrive.
	tab.do(chromedp.Click(`.nav a[href="/overview"]`))
	tab.until(`(document.querySelector('#steps') || {dataset: {}}).dataset.done === '2'`)
	person := product.LogIn(t, "mira@example.com")
	person.Talk(secret, window, longTalk(), claudeCode)
	tab.until(`(document.querySelector('#steps') || {dataset: {}}).dataset.done === '3' && document.querySelector('#steps').textContent.includes('Claude Code')`)

	tab.do(chromedp.Click(`.nav a[href="/sessions"]`))
	tab.until(at("/sessions") + ` && document.querySelector('.sessions a.ttl') !== null`)
	tab.do(chromedp.SendKeys("#find", "nothing is called this"))
	tab.until(`document.querySelector('#list [data-testid="empty"]') !== null && location.search.includes('nothing')`)
	tab.do(set("#find", "step"))
	tab.until(`document.querySelector('#list .sessions a.ttl') !== null`)
	tab.do(chromedp.Click(`.sessions a.ttl`))
	tab.until(charted + ` && document.querySelector('#read') !== null`)
	tab.do(chromedp.Click(`.turns li:nth-child(3) a`))
	tab.until(`document.querySelector('.turns li:nth-child(3) a').getAttribute('aria-current') === 'true' && location.search.includes('m=')`)
	if original, sent := tab.text(`[data-testid="original"] pre`), tab.text(`[data-testid="sent"] pre`); original == "" || sent == "" {
		t.Errorf("original %q, sent %q", original, sent)
	}
	tab.until(charted)

	// The slider moves, the bar says what changes, saving keeps it.
	tab.do(chromedp.Click(`.nav a[href="/pipeline"]`))
	tab.until(at("/pipeline") + ` && document.querySelector('[data-savebar]').hidden`)
	tab.do(set("[data-slider]", "0.58"))
	tab.until(`document.querySelector('[data-changes]').textContent.replace(/\s+/g, ' ').includes('targetUtilization 0.75 → 0.58')`)
	tab.picture("pipeline moved light 1440")
	tab.check("pipeline moved")
	tab.do(chromedp.Click(`[data-savebar] button[type="submit"]`))
	tab.until(at("/pipeline?saved=1") + ` && document.querySelector('[name="ipc.targetUtilization"]').value === '0.58'`)
	if same, err := chromedp.Run(tab.ctx, chromedp.Evaluate[string](`document.documentElement.dataset.same || 'no'`)); err != nil || same != "yes" {
		t.Errorf("pages were loaded anew: %v", err)
	}

	// The theme changes at once and stays.
	tab.do(chromedp.Click(".top .to-dark"))
	tab.until(`document.documentElement.dataset.theme === 'dark' && document.cookie.includes('theme=dark')`)
	tab.do(chromedp.NavigateBack())
	tab.until(`document.readyState === 'complete' && document.querySelector('main h1') !== null`)
	tab.do(chromedp.Click(`.who button[aria-label="Log out"]`))
	tab.until(at("/login"))
}

// set gives a field a value, as a person does who types it or moves the slider.
func set(selector, value string) chromedp.Action[chromedp.Void] {
	return func(ctx context.Context, target *chromedp.Target) (chromedp.Void, error) {
		expression := fmt.Sprintf(`(field => { field.value = %q; return field.dispatchEvent(new Event('input', {bubbles: true})); })(document.querySelector(%q))`, value, selector)
		_, err := chromedp.Evaluate[bool](expression)(ctx, target)
		return chromedp.Void{}, err
	}
}
