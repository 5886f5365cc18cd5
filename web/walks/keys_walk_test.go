package walks_test

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"palimpsest/pipeline/fulltest"
	"palimpsest/web/browsertest"
	"palimpsest/web/webtest"
)

// tabTo presses Tab until the element that has the focus matches, as someone does who
// has no mouse and looks where they are.
func tabTo(t *testing.T, tab *browsertest.Tab, selector string) {
	t.Helper()
	for range 90 {
		tab.Do(chromedp.KeyEvent(kb.Tab))
		if browsertest.Evaluate[bool](tab, `document.activeElement.matches('`+selector+`')`) {
			if !browsertest.Evaluate[bool](tab, `document.activeElement.matches(':focus-visible') && getComputedStyle(document.activeElement).outlineStyle !== 'none'`) {
				t.Errorf("nothing shows that %s has the focus", selector)
			}
			return
		}
	}
	t.Fatalf("Tab does not lead to %s", selector)
}

// From the overview to a key in use, without a mouse: the palette leads to the page, n
// opens the form, Tab leads through the dialog and not out of it.
func TestAPIKeyIsCreatedByKeyboardAlone(t *testing.T) {
	t.Parallel()
	fulltest.Turn(t, 4)
	product := webtest.Start(t)
	person := product.SignUp(t, "northbeam")
	tab := browsertest.Start(t).Open(t, browsertest.View{URL: product.URL, Theme: "light", Cookies: person.Cookies()})

	tab.Go("/overview")
	tabTo(t, tab, ".omni")
	tab.Do(chromedp.KeyEvent(kb.Enter))
	tab.Until(`document.querySelector('#palette:modal') !== null && document.activeElement.id === 'palette-q' && document.querySelectorAll('#palette-list [role="option"]').length > 5`)
	tab.Do(chromedp.KeyEvent("API keys"))
	tab.Until(`document.querySelector('#palette-list [aria-selected="true"]')?.textContent.includes('API keys')`)
	tab.Do(chromedp.KeyEvent(kb.Enter))
	tab.Until(browsertest.At("/keys") + ` && document.querySelector('dialog[open]') === null && document.activeElement.matches('h1')`)

	press(tab, "n")
	tab.Until(browsertest.At("/keys/new") + ` && document.querySelector('dialog:modal') !== null && document.activeElement.id === 'field-name'`)
	tab.Do(chromedp.KeyEvent("laptop"))
	tabTo(t, tab, `dialog:modal button[type="submit"]`)
	tab.Do(chromedp.KeyEvent(kb.Enter))
	tab.Until(`document.querySelector('dialog:modal [data-testid="secret"]') !== null && document.activeElement.matches('dialog h2')`)
	secret := tab.Text(`[data-testid="secret"]`)
	if _, err := person.Keys.Authenticate(t.Context(), secret); err != nil {
		t.Errorf("the key does not work: %v", err)
	}
	tab.CheckLooks("key created by keyboard")

	// Escape does not close what is shown once.
	tab.Do(chromedp.KeyEvent(kb.Escape))
	tabTo(t, tab, `[data-copy="secret"]`)
	tab.Do(chromedp.KeyEvent(kb.Enter))
	tab.Until(`/^(Copied|Selected)/.test(document.querySelector('.toast').textContent)`)
	tabTo(t, tab, `dialog:modal [role="tab"][aria-selected="true"]`)
	tab.Do(chromedp.KeyEvent(kb.ArrowRight), chromedp.KeyEvent(kb.ArrowRight)) // behind One command and Claude Code
	tab.Until(`document.activeElement.textContent === 'Codex' && document.querySelector('#d-code-codex-key').checkVisibility()`)
	if set := tab.Text("#d-code-codex-key"); !strings.Contains(set, secret) {
		t.Errorf("the set-up of Codex lacks the key: %q", set)
	}
	tabTo(t, tab, `[data-testid="copied"]`)
	tab.Do(chromedp.KeyEvent(kb.Enter))
	tab.Until(browsertest.At("/keys") + ` && document.querySelector('dialog[open]') === null && document.activeElement.matches('h1')`)
	if browsertest.Evaluate[bool](tab, `document.documentElement.innerHTML.includes('`+secret+`')`) {
		t.Error("the page still holds the secret")
	}
	// Going back does not bring it back: the answer that showed it is kept nowhere.
	tab.Back()
	tab.Until(`!location.href.includes('plm_')`)
	if browsertest.Evaluate[bool](tab, `document.documentElement.innerHTML.includes('`+secret+`') || JSON.stringify({...localStorage, ...sessionStorage}).includes('`+secret+`')`) {
		t.Error("the browser's history holds the secret")
	}
}
