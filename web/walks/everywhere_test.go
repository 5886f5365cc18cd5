package walks_test

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"palimpsest/pipeline/fulltest"
	"palimpsest/web/browsertest"
	"palimpsest/web/webtest"
)

const (
	streaming = `document.documentElement.dataset.streaming === 'yes'`
	noted     = `!document.querySelector('[data-live-show]').hidden`
)

// press presses keys one after the other as a person does. The page's clock stands still
// for more than one: however busy the machine is, they follow one another at once.
func press(tab *browsertest.Tab, keys string) {
	if len(keys) > 1 {
		tab.Run(`Date.now = (now => () => now)(Date.now())`)
	}
	for _, key := range keys {
		tab.Do(chromedp.KeyEvent(string(key)))
	}
}

// A person who has no mouse goes everywhere.
func TestKeyboardLeadsEverywhere(t *testing.T) {
	t.Parallel()
	fulltest.Turn(t, 4)
	product := webtest.Start(t)
	person := product.SignUp(t, "northbeam")
	person.TalkOnce(person.Connect(webtest.Provider(t, window), "laptop"), window, "/v1/messages",
		`{"model":"claude-sonnet-4-5","max_tokens":100,"messages":[{"role":"user","content":"Why does the zeppelin webhook answer 409?"}]}`, claudeCode)
	tab := browsertest.Start(t).Open(t, browsertest.View{URL: product.URL, Theme: "light", Cookies: person.Cookies()})

	// ? lists the keys of the page and of all pages.
	tab.Go("/patterns")
	press(tab, "?")
	tab.Until(`document.querySelector('#shortcuts:modal [data-here] td').textContent === 'Add a rule'`)
	tab.CheckLooks("shortcuts")
	tab.Do(chromedp.KeyEvent(kb.Escape))
	tab.Until(`document.querySelector('dialog[open]') === null`)
	press(tab, "n")
	tab.Until(browsertest.At("/patterns/new") + ` && document.activeElement.id === 'field-text'`)
	press(tab, "g?s") // typing is typing
	tab.Until(`document.querySelector('#field-text').value === 'g?s' && !document.querySelector('#shortcuts').open`)

	// g leads to pages, / to their search.
	tab.Go("/overview")
	press(tab, "gs")
	tab.Until(browsertest.At("/sessions") + ` && document.activeElement.matches('h1')`)
	press(tab, "/")
	tab.Until(`document.activeElement.id === 'find' && document.activeElement.value === ''`)

	// The palette finds a session by a word of its title.
	tab.Run(`document.activeElement.blur()`)
	tab.Run(`document.dispatchEvent(new KeyboardEvent('keydown', {key: 'k', ctrlKey: true, bubbles: true, cancelable: true}))`)
	tab.Until(`document.querySelector('#palette:modal') !== null && document.activeElement.id === 'palette-q' && document.querySelectorAll('#palette-list [role="option"]').length > 5`)
	tab.CheckLooks("palette")
	tab.Do(chromedp.KeyEvent("zeppelin"))
	tab.Until(`document.querySelector('#palette-list [aria-selected="true"]')?.textContent.includes('zeppelin webhook') && document.querySelector('[data-palette-words]').textContent === '1 result'`)
	chosen := `document.querySelector('#palette-list [aria-selected="true"]').id === document.activeElement.getAttribute('aria-activedescendant')`
	tab.Until(chosen)
	tab.CheckLooks("palette with a query")
	tab.Do(chromedp.KeyEvent(kb.ArrowDown))
	tab.Until(`document.querySelector('#palette-list [aria-selected="true"]').textContent.includes('Search messages for “zeppelin”')`)
	tab.Do(chromedp.KeyEvent(kb.ArrowUp))
	tab.Until(chosen + ` && document.querySelector('#palette-list [aria-selected="true"]').textContent.includes('zeppelin webhook')`)
	tab.Do(chromedp.KeyEvent(kb.Enter))
	tab.Until(`location.pathname === '/sessions/` + person.Newest().ID.String() + `' && document.querySelector('dialog[open]') === null`)

	// The button opens it too, and Escape gives the focus back.
	tab.Go("/keys")
	tab.Click(".omni")
	tab.Until(`document.querySelector('#palette:modal') !== null`)
	tab.Do(chromedp.KeyEvent(kb.Escape))
	tab.Until(`document.querySelector('dialog[open]') === null && document.activeElement.matches('.omni')`)
}

// What is new is offered, and nothing that someone reads moves by itself.
func TestNewRequestsAreOfferedAndNothingMoves(t *testing.T) {
	t.Parallel()
	fulltest.Turn(t, 4)
	product := webtest.Start(t)
	person := product.SignUp(t, "northbeam")
	secret := person.Connect(webtest.Provider(t, window), "laptop")
	ask := func(question string) {
		person.TalkOnce(secret, window, "/v1/messages",
			fmt.Sprintf(`{"model":"claude-sonnet-4-5","max_tokens":100,"messages":[{"role":"user","content":%q}]}`, question), claudeCode)
	}
	ask("The first question of all.")
	tab := browsertest.Start(t).Open(t, browsertest.View{URL: product.URL, Theme: "light", Cookies: person.Cookies()})

	tab.Go("/sessions?show=single")
	tab.Until(streaming)
	if open := product.Live.Open(); open != 1 {
		t.Errorf("%d streams for one tab", open)
	}
	tab.Run(`window.before = document.querySelector('#list').innerHTML`)
	ask("A second question.")
	ask("A third question.")
	tab.Until(noted + ` && document.querySelector('[data-live-show]').textContent === '2 new requests – show'`)
	if same := browsertest.Evaluate[bool](tab, `document.querySelector('#list').innerHTML === window.before`); !same {
		t.Error("the list changed by itself")
	}
	tab.CheckLooks("sessions with news")
	tab.Click(`[data-live-show]`)
	tab.Until(`document.querySelectorAll('#list .sessions tbody tr').length === 3 && document.querySelector('[data-live-show]').hidden && document.activeElement.id === 'list'`)

	// So does the list of requests. A page that does not change on its own has no dot that says so.
	tab.Go("/requests")
	tab.Until(streaming + ` && document.querySelector('.live .dot') !== null`)
	ask("A question beside the list.")
	tab.Until(noted)
	tab.Click(`[data-live-show]`)
	tab.Until(`document.querySelectorAll('#request-list tbody tr').length === 4 && document.activeElement.id === 'request-list'`)
	tab.Go("/patterns")
	if browsertest.Evaluate[bool](tab, `document.querySelector('.live .dot') !== null`) {
		t.Error("a static page has the dot of a live one")
	}

	// Figures are refreshed where they stand.
	tab.Go("/overview")
	tab.Until(streaming + ` && document.querySelector('[data-testid="requests"]').textContent === '4'`)
	tab.Run(`window.heading = document.querySelector('h1'); window.place = document.querySelector('#ledger').getBoundingClientRect().toJSON()`)
	ask("A fourth question.")
	const isNew, isOffered = `document.querySelector('[data-testid="requests"]').textContent === '5'`, `!document.querySelector('[data-live-show]').hidden`
	tab.Until(isNew + ` || ` + isOffered) // offered where a figure became wider than its place
	tab.Until(`document.querySelector('h1') === window.heading && JSON.stringify(document.querySelector('#ledger').getBoundingClientRect().toJSON()) === JSON.stringify(window.place)`)
	if !browsertest.Evaluate[bool](tab, isNew) {
		tab.Click(`[data-live-show]`)
		tab.Until(isNew)
	}

	// A login that ended has no stream.
	tab.Go("/sessions")
	tab.Until(streaming)
	if _, err := product.Database.Owner(t).Exec(t.Context(), "DELETE FROM logins"); err != nil {
		t.Fatal(err)
	}
	product.People.Forget()
	product.Live.Recheck()
	tab.Until(`document.documentElement.dataset.streaming === undefined`)
	if !browsertest.Evaluate[bool](tab, `fetch('/live').then(answer => answer.redirected)`) {
		t.Error("a login that ended opens a stream")
	}
}

// From nothing to the first exchange, as someone new does it: each click and each field
// is counted.
func TestSetUpTakesFewStepsAndEndsWithTheFirstExchange(t *testing.T) {
	t.Parallel()
	fulltest.Turn(t, 4)
	product := webtest.Start(t)
	double := webtest.Provider(t, window)
	tab := browsertest.Start(t).Open(t, browsertest.View{URL: product.URL, Theme: "light"})
	steps := 0
	click := func(selector string) { steps++; tab.Click(selector) }
	fill := func(selector, text string) {
		steps++
		tab.Type(selector, text)
	}
	done := func(n int) string {
		return fmt.Sprintf(`(document.querySelector('#steps') || {dataset: {}}).dataset.done === '%d'`, n)
	}

	tab.Go("/signup")
	fill("#field-email", "mira@example.com")
	fill("#field-password", webtest.Password)
	fill("#field-workspace", "northbeam")
	click(`main button[type="submit"]`)
	tab.Until(browsertest.At("/overview") + " && " + done(0))
	click(`#steps a[href="/providers/new"]`)
	tab.Until(opened)
	fill("#field-key", webtest.ProviderKey)
	fill("#field-base_url", double.URL) // which is the provider's own for everybody else
	click(`dialog button[type="submit"]`)
	tab.Until(`location.search.startsWith('?added=') && document.querySelector('dialog[open]') === null`)
	click(`.nav a[href="/overview"]`)
	tab.Until(done(1))
	click(`#steps a[href="/keys/new"]`)
	tab.Until(opened)
	fill("#field-name", "laptop")
	click(`dialog button[type="submit"]`)
	tab.Until(`document.querySelector('dialog:modal [data-testid="secret"]') !== null && ` + done(2) + ` && document.querySelector('#steps').textContent.includes('Listening')`)
	if copies := browsertest.Evaluate[int](tab, `[...document.querySelectorAll('dialog:modal section:not([hidden]) [data-copy], dialog:modal .secret [data-copy]')].length`); copies < 2 {
		t.Errorf("%d copy buttons", copies)
	}
	secret := tab.Text(`[data-testid="secret"]`)
	tab.Until(streaming)
	// The client sends its first request while the dialog with the key is still open.
	person := product.LogIn(t, "mira@example.com")
	person.TalkOnce(secret, window, "/v1/messages",
		`{"model":"claude-sonnet-4-5","max_tokens":100,"messages":[{"role":"user","content":"ping"}]}`, claudeCode)
	tab.Until(done(3) + ` && document.querySelector('#steps').textContent.includes('From Claude Code')`)
	tab.CheckLooks("first exchange")
	t.Logf("%d steps from sign-up to the first exchange", steps)
	if steps > 12 {
		t.Errorf("the set-up takes %d steps, at most 12 are wanted", steps)
	}

	// A second key, for another client, is waited for by itself.
	if err := person.Keys.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	tab.Click(`[data-testid="copied"]`)
	tab.Until(browsertest.At("/keys") + ` && document.querySelector('dialog[open]') === null`)
	tab.Click(`.head a[href="/keys/new"]`)
	tab.Until(opened)
	tab.Type("#field-name", "cursor")
	tab.Click(`dialog button[type="submit"]`)
	tab.Until(`document.querySelector('dialog:modal #key-use .live')?.textContent === 'Listening for the first request with cursor'`)
	tab.Until(streaming)
	person.TalkOnce(tab.Text(`[data-testid="secret"]`), window, "/v1/messages",
		`{"model":"claude-sonnet-4-5","max_tokens":100,"messages":[{"role":"user","content":"ping"}]}`, claudeCode)
	tab.Until(`document.querySelector('dialog:modal [data-testid="key-used"]')?.textContent.includes('From Claude Code')`)
	tab.CheckLooks("second key in use")
}

// On paper there is what a page says: no navigation, ink on white, tables whole.
func TestPrintedPageIsInkOnWhiteWithoutNavigation(t *testing.T) {
	t.Parallel()
	fulltest.Turn(t, 4)
	product := webtest.Start(t)
	person := product.SignUp(t, "northbeam")
	person.TalkOnce(person.Connect(webtest.Provider(t, window), "laptop"), window, "/v1/messages",
		`{"model":"claude-sonnet-4-5","max_tokens":100,"messages":[{"role":"user","content":"Why does the zeppelin webhook answer 409?"}]}`, claudeCode)
	tab := browsertest.Start(t).Open(t, browsertest.View{URL: product.URL, Theme: "dark", Cookies: person.Cookies()})

	for path, width := range map[string]int64{
		"/keys": browsertest.Upright, "/overview": browsertest.Upright, "/sessions/" + person.Newest().ID.String(): browsertest.Upright,
		"/members": browsertest.Upright, "/pipeline": browsertest.Upright, "/sessions?show=single": browsertest.Across, "/requests": browsertest.Across,
	} {
		tab.Go(path)
		tab.Print(width)
		for _, selector := range []string{".side", ".top", ".tabbar", ".head .acts", "[data-copy]"} {
			if shown := browsertest.Evaluate[bool](tab, fmt.Sprintf(`[...document.querySelectorAll(%q)].some(e => e.getClientRects().length > 0)`, selector)); shown {
				t.Errorf("%s is printed on %s", selector, path)
			}
		}
		tab.Until(`getComputedStyle(document.body).backgroundColor === 'rgb(255, 255, 255)' && getComputedStyle(document.querySelector('h1')).color === 'rgb(0, 0, 0)'`)
		if wide := browsertest.Evaluate[int](tab, `document.documentElement.scrollWidth`); wide > int(width) {
			t.Errorf("%s is %d px wide, the sheet %d", path, wide, width)
		}
		wanted := "auto"
		if width == browsertest.Across {
			wanted = "across"
		}
		if sheet := browsertest.Evaluate[string](tab, `getComputedStyle(document.querySelector('.page')).page`); sheet != wanted {
			t.Errorf("%s is printed on the sheet %s", path, sheet)
		}
	}
}
