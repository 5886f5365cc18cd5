package pages_test

import (
	"testing"

	"palimpsest/pipeline/fulltest"
	"palimpsest/web/browsertest"
	"palimpsest/web/webtest"
)

// An answer to an earlier query that comes after that to a later one changes nothing in the palette, and neither does
// its failure.
func TestLateAnswerIsNotShownInThePalette(t *testing.T) {
	t.Parallel()
	fulltest.Turn(t, 4)
	person := webtest.Start(t).SignUp(t, "northbeam")
	tab := browsertest.Start(t).Open(t, browsertest.View{URL: person.URL, Theme: "light", Width: browsertest.Desktop, Cookies: person.Cookies()})
	tab.Go("/keys")
	// Each query waits for the test, also one that the page has abandoned.
	tab.Run(`window.asks = {}, window.fetch = url => new Promise((answer, fail) => {
		const asked = new URL(url, location).searchParams.get('q');
		asks[asked] = {
			answer: () => answer(new Response('<a role="option" id="o" href="/' + asked + '">found ' + asked + '</a>')),
			fail: () => fail(new TypeError('Failed to fetch')),
		};
	})`)
	tab.Click(".omni")
	for _, query := range []string{"a", "ab", "abc"} {
		tab.Set("#palette-q", query)
		tab.Until(`asks['` + query + `'] !== undefined`)
	}
	tab.Run(`asks.abc.answer()`)
	tab.Until(`document.querySelector('#palette-list').textContent === 'found abc'`)
	tab.Run(`asks.a.answer(), asks.ab.fail()`)
	tab.Run(`new Promise(done => setTimeout(done))`) // they were handled
	if shown := tab.Text("#palette-list"); shown != "found abc" {
		t.Errorf("a late answer or failure shows %q", shown)
	}
}
