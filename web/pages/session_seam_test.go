package pages_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/fulltest"
	"palimpsest/pipeline/wire/sessiontest"
	"palimpsest/web/browsertest"
	"palimpsest/web/webtest"
)

const (
	// listed are the messages of the rows of the list.
	sessionListed = `[...document.querySelectorAll('.turns .turn')].map(turn => Number(new URL(turn.href).searchParams.get('m')))`

	// top is the message of the row that is seen first in the list, and where it stands.
	top = `(() => { const list = document.querySelector('.turns'), edge = list.getBoundingClientRect().top;
		const row = [...list.querySelectorAll('.turn')].find(turn => turn.getBoundingClientRect().bottom > edge + 1);
		return new URL(row.href).searchParams.get('m') + ' at ' + Math.round(row.getBoundingClientRect().top - edge); })()`

	// loads are the pages of the list that were asked for.
	loads = `performance.getEntriesByType('resource').map(e => new URL(e.name).searchParams.get('from')).filter(from => from !== null)`
)

// leaf is a person at the page of a session of many turns that was never compressed.
func leaf(t *testing.T) (d desk, messages int) {
	t.Helper()
	const wide = 1_000_000
	product := webtest.Start(t)
	d = desk{Person: product.SignUp(t, "northbeam")}
	talk := sessiontest.Generate(3, sessiontest.Options{Format: conversation.Anthropic, Turns: 180, TargetTokens: 40_000, SessionID: "long"})
	d.TalkOnce(d.Connect(webtest.Provider(t, wide), "laptop"), wide, "/v1/messages", string(talk.Body(talk.Steps()-1)), claudeCode)
	d.path = "/sessions/" + d.Newest().ID.String()
	d.tab = browsertest.Start(t).Open(t, browsertest.View{URL: withAPI(t, product), Theme: "light", Cookies: d.Cookies()})
	if messages = len(talk.Messages(talk.Steps() - 1)); messages < 320 {
		t.Fatalf("%d messages are no long session", messages)
	}
	return d, messages
}

func inOrder(from, to int) string {
	return fmt.Sprintf(`JSON.stringify(%s) === JSON.stringify([...Array(%d).keys()].map(i => i + %d))`, sessionListed, to-from, from)
}

// Where the end of the list is scrolled to, the next turns come in, once, and what is
// read stays where it is.
func TestTurnsAreLoadedWhereOneScrollsTo(t *testing.T) {
	t.Parallel()
	fulltest.Turn(t, 4)
	d, messages := leaf(t)
	tab := d.tab
	tab.Go(d.path + "?m=3")
	tab.Until(inOrder(0, 100))
	tab.Run(`document.querySelector('.turns').scrollIntoView()`)
	for shown := 100; shown < messages; shown += 100 {
		// Seen again and again until it is there, it is asked for once.
		before := browsertest.Evaluate[string](tab, `(() => { const list = document.querySelector('.turns'); list.scrollTop = list.scrollHeight; return `+top+`; })()`)
		tab.Until(inOrder(0, min(shown+100, messages)))
		if after := browsertest.Evaluate[string](tab, top); after != before {
			t.Errorf("after %d rows the first one seen was %s and is %s", shown, before, after)
		}
	}
	if asked := browsertest.Evaluate[[]string](tab, loads); len(asked) != (messages-1)/100 {
		t.Errorf("pages were asked for at %q", asked)
	}
	if tab.Text("#turns-after") != "" || browsertest.Evaluate[string](tab, `new URL(location.href).searchParams.get('m')`) != "3" || browsertest.Evaluate[int](tab, `document.querySelectorAll('.turns [aria-current]').length`) != 1 {
		t.Errorf("at the end stands %q, the address is %s", tab.Text("#turns-after"), browsertest.Evaluate[string](tab, `location.href`))
	}
	tab.Check("session with all turns")

	// Without JavaScript the link leads to the page that follows.
	page := d.Get(d.path)
	next := d.Get(page.Find(`#turns-after a`).AttrOr("href", ""))
	if first := next.Find(".turn .ix").First().Text(); first != "100" || !next.Has("h1") || !next.Has("#turns-before a") {
		t.Errorf("the next page begins with %q", first)
	}
}

// j and k go on over the ends of what is loaded, with the focus on what is read and the
// form that was chosen.
func TestKeysGoOnOverTheSeam(t *testing.T) {
	t.Parallel()
	fulltest.Turn(t, 4)
	d, _ := leaf(t)
	tab := d.tab
	// Whatever else is swapped while turns come in is not part of them.
	tab.OnEveryPage(`addEventListener('htmx:before:swap', () => queueMicrotask(() => document.dispatchEvent(new CustomEvent('htmx:after:swap', {detail: {}}))))`)
	tab.Go(d.path + "?m=199")
	tab.Until(inOrder(100, 200))
	tab.Run(`window.same = true`)
	tab.Click(`[data-testid="rendering"] a:last-child`)
	tab.Until(`document.querySelector('#pane').dataset.text === 'exact' && document.activeElement.matches('[data-focus]')`)
	d.key("j")
	tab.Until(shows("200"))
	tab.Until(inOrder(100, 300))
	if form := browsertest.Evaluate[string](tab, `document.querySelector('#pane').dataset.text + new URL(location.href).searchParams.get('text')`); form != "exactexact" {
		t.Errorf("the turn behind the seam is shown as %q", form)
	}
	if !browsertest.Evaluate[bool](tab, `window.same === true`) {
		t.Error("the page was loaded again for the turn behind the seam")
	}
	d.key("k")
	tab.Until(shows("199"))

	// Back over the first row: what comes in above moves nothing.
	tab.Go(d.path + "?m=100")
	tab.Until(inOrder(100, 200))
	tab.Run(`document.querySelector('.turns').scrollTop = 0`)
	d.key("k")
	tab.Until(shows("99"))
	tab.Until(inOrder(0, 200))

	tab.Go(d.path + "?from=100")
	tab.Until(inOrder(100, 200))
	before := browsertest.Evaluate[string](tab, `(() => { document.querySelector('.turns').scrollTop = 300; return `+top+`; })()`)
	tab.Run(`document.querySelector('#turns-before a').focus({preventScroll: true})`)
	d.key(kb.Enter)
	tab.Until(inOrder(0, 200))
	after := browsertest.Evaluate[string](tab, top)
	if !strings.HasPrefix(after, strings.Fields(before)[0]+" at ") || !browsertest.Evaluate[bool](tab, `document.activeElement.matches('.turn')`) {
		t.Errorf("the first row seen was %s and is %s", before, after)
	}
}
