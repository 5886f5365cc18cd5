package walks_test

import (
	"strings"
	"testing"

	"palimpsest/pipeline/fulltest"
	"palimpsest/web/browsertest"
	"palimpsest/web/webtest"
)

// S12: an invitation from its link to the end of the membership, in two browsers.
func TestInvitedPersonJoinsChangesAndGoes(t *testing.T) {
	t.Parallel()
	fulltest.Turn(t, 4)
	product := webtest.Start(t)
	owner := product.SignUp(t, "northbeam")
	browser := browsertest.Start(t)
	hers := browser.Open(t, browsertest.View{URL: product.URL, Theme: "light", Cookies: owner.Cookies()})
	his := browser.Open(t, browsertest.View{URL: product.URL, Theme: "light", Width: browsertest.Phone})

	hers.Go("/members/invite")
	hers.Until(opened)
	hers.Type("#field-email", "finn@example.com")
	hers.Set("#field-role", "admin")
	hers.Click(`dialog button[type="submit"]`)
	hers.Until(`document.querySelector('dialog:modal #link-0') !== null`)
	hers.Check("invited")
	link := strings.TrimPrefix(hers.Text("#link-0"), webtest.PublicURL)

	his.Go(link)
	his.Type("#field-password", webtest.Password)
	his.Type("#field-workspace", "Finn's")
	his.Click(`main form.g button[type="submit"]`)
	his.Until(browsertest.At("/overview") + ` && document.querySelector('.wsw b').textContent === 'northbeam'`)
	// On a phone the workspaces are behind More.
	his.Click(`.tabbar a[href="/more"]`)
	his.Until(browsertest.At("/more") + ` && document.querySelector('main .switch-list button') !== null`)
	his.Click(`main .switch-list button[aria-label="Switch to Finn's"]`)
	his.Until(browsertest.At("/overview") + ` && document.querySelector('.wsw b').textContent === "Finn's"`)
	his.Go("/more")
	his.Click(`main .switch-list button[aria-label="Switch to northbeam"]`)
	his.Until(browsertest.At("/overview") + ` && document.querySelector('.wsw small').textContent === 'admin'`)

	hers.Click(`dialog .df a`)
	hers.Until(browsertest.At("/members") + ` && document.querySelector('dialog[open]') === null`)
	hers.Click(`[data-testid="members"] a[href$="/role"]`)
	hers.Until(opened)
	hers.Set("#field-role", "viewer")
	hers.Click(`dialog button[type="submit"]`)
	hers.Until(browsertest.At("/members?done=role"))
	his.Go("/members")
	his.Until(`document.querySelector('[data-testid="problem"]') !== null && document.querySelector('.wsw small').textContent === 'viewer'`)

	hers.Click(`[data-testid="members"] a[href$="/remove"]`)
	hers.Until(opened)
	hers.Type("#field-confirm", "finn@example.com")
	hers.Click(`dialog button[type="submit"]`)
	hers.Until(browsertest.At("/members?done=removed"))
	his.Click(`.tabbar a[href="/sessions"]`)
	his.Until(`location.pathname === '/login' && document.querySelector('#field-password') !== null`)
	his.Type("#field-email", "finn@example.com")
	his.Type("#field-password", webtest.Password)
	his.Click(`main button[type="submit"]`)
	his.Until(`document.readyState === 'complete' && (document.querySelector('.wsw b') || {}).textContent === "Finn's"`)
}
