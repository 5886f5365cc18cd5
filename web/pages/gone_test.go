package pages_test

import (
	"testing"

	"palimpsest/pipeline/fulltest"
	"palimpsest/web/webtest"
)

// Where the server cannot be reached, saving says that nothing was saved, what was typed stays, and the
// same is tried again when asked to.
func TestServerThatIsGoneIsSaid(t *testing.T) {
	t.Parallel()
	fulltest.Turn(t, 4)
	person := webtest.Start(t).SignUp(t, "northbeam")
	tab := tuningOpen(t, person, "/pipeline")
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
