package pages_test

import (
	"testing"

	"palimpsest/pipeline/fulltest"
	"palimpsest/web/browsertest"
	"palimpsest/web/webtest"
)

// Where the server cannot be reached, saving says that nothing was saved, what was typed stays, and the
// same is tried again when asked to.
func TestServerThatIsGoneIsSaid(t *testing.T) {
	t.Parallel()
	fulltest.Turn(t, 4)
	person := webtest.Start(t).SignUp(t, "northbeam")
	tab := tuningOpen(t, person, "/pipeline")
	tab.Until(`document.documentElement.dataset.streaming === 'yes'`) // a stream that opens says that the server is there
	tab.Run(`window.reach = window.fetch, window.fetch = () => Promise.reject(new TypeError('Failed to fetch'))`)
	tab.Set(`[name="ipc.targetUtilization"]`, "0.61")
	tab.Click(`[data-savebar] button[type="submit"]`)
	tab.Until(`document.querySelector('div[data-gone]').checkVisibility() && document.querySelector('div[data-gone]').textContent.includes('Not connected, not saved.')`)
	tab.Until(`document.documentElement.dataset.gone === 'yes' && document.querySelector('[name="ipc.targetUtilization"]').value === '0.61'`)
	if stored, _ := saved(t, person); stored.Version != 0 {
		t.Fatalf("version %d was saved", stored.Version)
	}
	tab.Run(`window.fetch = window.reach`)
	tab.Click(`[data-gone-again]`)
	tab.Until(`location.pathname + location.search === '/pipeline?saved=1' || document.querySelector('[data-testid="saved"]') !== null`)
	tab.Until(`!document.querySelector('div[data-gone]').checkVisibility() && document.documentElement.dataset.gone === undefined`)
}

// A page that comes late says so, to the eye and to a screen reader, until it is there. What the page asks for on its
// own says nothing.
func TestSlowPageIsSaidToLoad(t *testing.T) {
	t.Parallel()
	fulltest.Turn(t, 4)
	person := webtest.Start(t).SignUp(t, "northbeam")
	tab := tuningOpen(t, person, "/pipeline")
	tab.Run(`const reach = window.fetch; window.fetch = async (...asked) => { await new Promise(release => { window.release = release; }); return reach(...asked); }`)
	tab.Click(`.nav a[href="/members"]`)
	const bar, busy, words = `document.documentElement.dataset.waiting === 'yes' && getComputedStyle(document.documentElement, '::before').height === '3px'`,
		`document.querySelector('main').getAttribute('aria-busy') === 'true'`, `document.querySelector('.toast').textContent === 'Loading…'`
	tab.Until(bar + " && " + busy + " && " + words)
	tab.Run(`release()`)
	tab.Until(browsertest.At("/members") + ` && document.documentElement.dataset.waiting === undefined && document.querySelector('[aria-busy]') === null && document.querySelector('.toast').textContent === ''`)

	tab.Run(`document.querySelector('main').insertAdjacentHTML('beforeend', '<div id="part" hx-get="/keys" hx-trigger="load" data-quiet></div><div id="asked" hx-get="/keys" hx-trigger="load"></div>');
		htmx.process(document.querySelector('main'))`)
	tab.Until(`document.documentElement.dataset.waiting === 'yes'`)
	if browsertest.Evaluate[bool](tab, `document.querySelector('#part').hasAttribute('aria-busy')`) {
		t.Error("a quiet request is said to load")
	}
	tab.Run(`release()`)
}
