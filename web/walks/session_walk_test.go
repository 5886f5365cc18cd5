package walks_test

import (
	"testing"

	"palimpsest/pipeline/fulltest"
	"palimpsest/web/browsertest"
	"palimpsest/web/webtest"
)

// The page of a session begins with what was said: the text of a message stands in the first screen, on a phone the
// list of messages, and chart and compactions are a strip above it that opens.
func TestSessionShowsItsMessagesFirst(t *testing.T) {
	t.Parallel()
	fulltest.Turn(t, 4)
	product := webtest.Start(t)
	person := product.SignUp(t, "northbeam")
	person.Talk(person.Connect(webtest.Provider(t, window), "laptop-mira"), window, webtest.LongTalk(), claudeCode)
	address := "/sessions/" + person.Newest().ID.String()
	browser := browsertest.Start(t)
	for _, width := range browsertest.Widths() {
		tab := browser.Open(t, browsertest.View{URL: product.URL, Theme: "light", Width: width, Cookies: person.Cookies()})
		tab.Go(address)
		seen := browsertest.Evaluate[int](tab, `(() => {
			const nav = [...document.querySelectorAll('nav')].map(nav => nav.getBoundingClientRect()).filter(box => box.top > innerHeight / 2 && box.width > innerWidth / 2);
			const bottom = Math.min(innerHeight, ...nav.map(box => box.top));
			return Math.round(bottom - document.querySelector(innerWidth > 820 ? '#original-text' : '.turns .turn').getBoundingClientRect().top);
		})()`)
		if seen < 40 {
			t.Errorf("%d px wide: %d px of the text are in the first screen", width, seen)
		}
		if browsertest.Evaluate[bool](tab, `document.querySelector('#course').open || document.querySelector('[data-chart] canvas') !== null`) {
			t.Errorf("%d px wide: the chart is not folded away", width)
		}
		tab.Click(`#course > summary`)
		tab.Until(`document.querySelector('#course [data-chart] canvas')?.clientWidth > 200`)
		tab.CheckLooks("session with its chart")
	}
}

// On a phone the list of messages comes first, and each message is a page of its own.
func TestMessageIsAPageOfItsOwnOnAPhone(t *testing.T) {
	t.Parallel()
	fulltest.Turn(t, 4)
	product := webtest.Start(t)
	person := product.SignUp(t, "northbeam")
	person.Talk(person.Connect(webtest.Provider(t, window), "laptop-mira"), window, webtest.LongTalk(), claudeCode)
	tab := browsertest.Start(t).Open(t, browsertest.View{URL: product.URL, Theme: "light", Width: 390, Cookies: person.Cookies()})
	const shown = `[...document.querySelectorAll('.turns, #pane, .ledger')].filter(part => part.getBoundingClientRect().height > 0).map(part => part.id || part.classList[0]).sort().join(' ')`
	tab.Go("/sessions/" + person.Newest().ID.String())
	tab.Until(shown + ` === 'ledger turns'`)
	tab.Click(`.turns li:nth-child(3) .turn`)
	tab.Until(shown + ` === 'pane' && location.search.includes('m=')`)
	tab.CheckLooks("message on a phone")
	at := browsertest.Evaluate[string](tab, `document.querySelector('#pane').dataset.message`)
	tab.Click(`.steps-read [rel="next"]`)
	tab.Until(shown + ` === 'pane' && document.querySelector('#pane').dataset.message !== '` + at + `'`)
	tab.Click(`[data-testid="all-messages"]`)
	tab.Until(shown + ` === 'ledger turns' && !location.search.includes('m=')`)
}

// A compaction that was planned cannot be planned again: the button says why.
func TestCompactNowSaysWhyItIsNotOffered(t *testing.T) {
	t.Parallel()
	fulltest.Turn(t, 4)
	product := webtest.Start(t)
	person := product.SignUp(t, "northbeam")
	person.Talk(person.Connect(webtest.Provider(t, window), "laptop-mira"), window, webtest.LongTalk(), claudeCode)
	tab := browsertest.Start(t).Open(t, browsertest.View{URL: product.URL, Theme: "dark", Cookies: person.Cookies()})
	tab.Go("/sessions/" + person.Newest().ID.String())
	tab.Click(`a[data-testid="compact"]`)
	tab.Until(opened)
	tab.Press("Compact now")
	tab.Until(`document.querySelector('button[data-testid="compact"][aria-disabled="true"]') !== null`)
	if why := tab.Text(`[data-testid="no-compact"]`); why != "It is already planned for the next request." {
		t.Errorf("it says %q", why)
	}
	tab.CheckLooks("session with a compaction planned")
}
