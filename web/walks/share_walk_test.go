package walks_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"palimpsest/pipeline/fulltest"
	"palimpsest/tenants"
	"palimpsest/web/browsertest"
	"palimpsest/web/webtest"
)

// keepsCopies has a page keep what its buttons copy.
const keepsCopies = `Object.defineProperty(navigator, 'clipboard', {value: {writeText: async text => { window.copied = text; }}})`

// newestMessage returns the number of the newest message of a session, which no compaction has made a part of a run.
func newestMessage(tab *browsertest.Tab, session string) string {
	tab.Go(session)
	return browsertest.Evaluate[string](tab, `new URL([...document.querySelectorAll('.turns .turn')].at(-1).href).searchParams.get('m')`)
}

// A link that is copied is a whole address, which opens the same page wherever it is pasted.
func TestCopiedLinksAreWholeAddresses(t *testing.T) {
	t.Parallel()
	fulltest.Turn(t, 4)
	product := webtest.Start(t)
	person := product.SignUp(t, "northbeam")
	person.Talk(person.Connect(webtest.Provider(t, window), "laptop-mira"), window, webtest.LongTalk(), claudeCode)
	session := "/sessions/" + person.Newest().ID.String()
	exchanges, _, err := product.DB.Exchanges.Exchanges(tenants.OwnWork(t.Context()), person.Workspace.ID, tenants.ExchangeFilter{Limit: 1})
	if err != nil || len(exchanges) != 1 {
		t.Fatalf("%d requests, %v", len(exchanges), err)
	}
	request := "/requests/" + exchanges[0].ID.String()
	tab := browsertest.Start(t).Open(t, browsertest.View{URL: product.URL, Theme: "light", Cookies: person.Cookies()})
	tab.OnEveryPage(keepsCopies)
	message := newestMessage(tab, session)
	for _, copies := range []struct{ page, button string }{
		{session, `.head button[data-link]`},
		{session + "?m=" + message, `[data-testid="provenance"] button[data-link]`},
		{request, `.head button[data-link]`},
		{"/requests?open=" + exchanges[0].ID.String(), `dialog button[data-link]`},
	} {
		tab.Go(copies.page)
		want := browsertest.Evaluate[string](tab, `location.origin + document.querySelector('`+copies.button+`')?.dataset.link`)
		tab.Click(copies.button)
		tab.Until(`window.copied !== undefined && document.querySelector('.toast.on')?.textContent === 'Copied'`)
		copied := browsertest.Evaluate[string](tab, `window.copied`)
		if copied != want {
			t.Errorf("%s copies %q, want %q", copies.page, copied, want)
		}
		if page := person.Get(copied[len(product.URL):]); page.Status != 200 {
			t.Errorf("%s copies %q: status %d", copies.page, copied, page.Status)
		}
	}
}

// A member stars a session and comments on one of its messages; the list shows both, and the person
// who reads the comment is led to the message.
func TestSessionIsStarredAndCommentedOn(t *testing.T) {
	t.Parallel()
	fulltest.Turn(t, 4)
	product := webtest.Start(t)
	person := product.SignUp(t, "northbeam")
	person.Talk(person.Connect(webtest.Provider(t, window), "laptop-mira"), window, webtest.LongTalk(), claudeCode)
	session := person.Newest()
	address := "/sessions/" + session.ID.String()
	browser := browsertest.Start(t)
	for _, width := range browsertest.Widths() {
		tab := browser.Open(t, browsertest.View{URL: product.URL, Theme: "light", Width: width, Cookies: person.Cookies()})
		message := newestMessage(tab, address)
		tab.Go(address)
		if browsertest.Evaluate[bool](tab, `document.querySelector('#comments').open`) {
			t.Errorf("%d px wide: the comments are not folded", width)
		}
		tab.Click(`.head [data-testid="star"]`)
		tab.Until(`document.querySelector('.head [data-testid="star"]').getAttribute('aria-pressed') === 'true'`)
		tab.Go(address + "?m=" + message)
		tab.Click(`#pane [data-testid="comment-here"]`)
		tab.Until(`document.querySelector('#comments').open && document.activeElement.name === 'text'`)
		tab.Fill("text", "<i>Here</i> it began.")
		tab.Press("Comment")
		tab.Until(`document.querySelector('[data-testid="comment"] .remark')?.textContent === '<i>Here</i> it began.'`)
		tab.Check(fmt.Sprintf("session with a comment %d", width))
		if who := tab.Text(`[data-testid="comment"] b`); who != person.Email {
			t.Errorf("%d px wide: the author is %q", width, who)
		}
		tab.Go("/sessions?show=starred")
		list := map[int64]string{browsertest.Desktop: `table.sessions`, browsertest.Phone: `ul.cards`}[width]
		if count := tab.Text(list + ` [data-testid="comment-count"]`); count != "1 comment" {
			t.Errorf("%d px wide: the list says %q", width, count)
		}
		tab.Check(fmt.Sprintf("starred sessions %d", width))
		tab.Click(list + ` [data-testid="comment-count"]`)
		tab.Until(`document.querySelector('#comments')?.open`)
		tab.Click(`[data-testid="comment"] a.link`)
		tab.Until(`document.querySelector('#pane')?.dataset.message === '` + message + `' && document.querySelector('#pane [data-testid="comment-here"]').textContent.trim() === 'Comments 1'`)
		tab.Click(`#pane [data-testid="comment-here"]`)
		tab.Until(`document.querySelector('#comments').open`)
		tab.Press("Delete")
		tab.Until(`document.querySelector('[data-testid="comment"]') === null && document.querySelector('[data-testid="done"]')?.textContent === 'The comment was deleted.'`)
		tab.Go("/sessions?show=starred")
		tab.Click(list + ` [data-testid="star"]`)
		tab.Until(`document.querySelector('` + list + ` [data-testid="star"]').getAttribute('aria-pressed') === 'false'`)
		tab.Go("/sessions?show=starred")
		if browsertest.Evaluate[bool](tab, `document.querySelector('[data-testid="star"]') !== null`) {
			t.Errorf("%d px wide: a session stays in the list without its star", width)
		}
	}
}

// Two sessions that are ticked in the list are shown side by side, from their figures to the
// first message that differs.
func TestTwoSessionsAreComparedSideBySide(t *testing.T) {
	t.Parallel()
	fulltest.Turn(t, 4)
	product := webtest.Start(t)
	person := product.SignUp(t, "northbeam")
	secret := person.Connect(webtest.Provider(t, window), "laptop-mira")
	for _, talk := range []string{
		`{"role":"user","content":"Why does the build fail?"},{"role":"assistant","content":"The cache is stale."},{"role":"user","content":"Clear it."}`,
		`{"role":"user","content":"Why does the build fail?"},{"role":"assistant","content":"A test is flaky."},{"role":"user","content":"Which one?"},{"role":"assistant","content":"The third."},{"role":"user","content":"Mend it."}`,
	} {
		person.TalkOnce(secret, window, "/v1/messages", `{"model":"claude-sonnet-4-5","max_tokens":100,"messages":[`+talk+`]}`, claudeCode)
	}
	browser := browsertest.Start(t)
	tab := browser.Open(t, browsertest.View{URL: product.URL, Theme: "dark", Cookies: person.Cookies()})
	tab.Go("/sessions")
	tab.Click(`[data-choose-all="chosen"]`)
	tab.Press("Compare selected")
	tab.Until(`location.pathname === '/sessions/compare' && document.querySelector('[data-testid="differences"]') !== null`)
	tab.Check("sessions compared")
	figures := browsertest.Evaluate[map[string]string](tab, `Object.fromEntries([...document.querySelectorAll('[data-testid="differences"] tbody tr')].map(row => [row.cells[0].textContent, row.cells[1].textContent + ' | ' + row.cells[2].textContent]))`)
	if got := figures["Messages"]; got != "3 | 5" && got != "5 | 3" {
		t.Errorf("messages: %q of %v", got, figures)
	}
	parting := tab.Text(`[data-testid="parting"]`)
	for _, part := range []string{"message 1", "The cache is stale.", "A test is flaky."} {
		if !strings.Contains(parting, part) {
			t.Errorf("what differs does not say %q: %s", part, parting)
		}
	}
	if timelines := browsertest.Evaluate[int](tab, `document.querySelectorAll('[data-testid="timeline"] li').length`); timelines < 2 {
		t.Errorf("%d steps in the timelines", timelines)
	}

	phone := browser.Open(t, browsertest.View{URL: product.URL, Theme: "light", Width: browsertest.Phone, Cookies: person.Cookies()})
	phone.Go("/sessions/" + person.Newest().ID.String())
	phone.Click(`[data-testid="compare"]`)
	phone.Until(`document.querySelector('[data-testid="offers"] a') !== null`)
	phone.Check("a session to compare with")
	phone.Click(`[data-testid="offers"] a`)
	phone.Until(`document.querySelector('[data-testid="differences"]') !== null`)
	phone.CheckLooks("sessions compared on a phone")
}

// A link of another workspace that the person belongs to offers to go there; a person who does
// not belong to it is told that there is no such page.
func TestSharedLinkLeadsToItsWorkspace(t *testing.T) {
	t.Parallel()
	fulltest.Turn(t, 4)
	product := webtest.Start(t)
	person := product.SignUp(t, "northbeam")
	person.TalkOnce(person.Connect(webtest.Provider(t, window), "laptop"), window, "/v1/messages",
		`{"model":"claude-sonnet-4-5","max_tokens":100,"messages":[{"role":"user","content":"Why does it answer 409?"}]}`, claudeCode)
	session := "/sessions/" + person.Newest().ID.String()
	exchanges, _, err := product.DB.Exchanges.Exchanges(tenants.OwnWork(t.Context()), person.Workspace.ID, tenants.ExchangeFilter{Limit: 1})
	if err != nil || len(exchanges) != 1 {
		t.Fatalf("%d requests, %v", len(exchanges), err)
	}
	request := "/requests/" + exchanges[0].ID.String()
	person.Post("/workspaces", "workspace", "Another one")
	stranger := product.SignUp(t, "stranger")
	for _, address := range []string{session, request} {
		if page := stranger.Get(address); page.Status != http.StatusNotFound || page.Has(`[data-testid="elsewhere"]`) || strings.Contains(page.HTML, "northbeam") {
			t.Errorf("%s for a stranger: status %d: %s", address, page.Status, page.Text("main"))
		}
	}
	browser := browsertest.Start(t)
	for _, address := range []string{session, request} {
		tab := browser.Open(t, browsertest.View{URL: product.URL, Theme: "light", Cookies: person.Cookies()})
		if page := person.Get(address); page.Status == http.StatusOK {
			t.Fatalf("%s is in the workspace that the person works in", address)
		}
		tab.Expect(http.StatusNotFound)
		tab.Go(address)
		tab.CheckLooks("in another workspace")
		tab.Press("Switch workspace and open it")
		tab.Until(`location.pathname === '` + address + `' && document.querySelector('[data-testid="elsewhere"]') === null`)
		person.Post("/workspaces", "workspace", "One more")
	}
}

// What a list cuts off for want of room stands on hover, whole.
func TestWhatListsCutOffStandsOnHover(t *testing.T) {
	t.Parallel()
	fulltest.Turn(t, 4)
	product := webtest.Start(t)
	person := product.SignUp(t, "northbeam")
	long := "A question that is so long that no list has room for it: " + strings.Repeat("why does the build of the parser fail, ", 12)
	secret := person.Connect(webtest.Provider(t, window), "the laptop of Mira that stands in the research office on the second floor")
	person.TalkOnce(secret, window, "/v1/messages", `{"model":"claude-sonnet-4-5-of-a-deployment-with-a-very-long-name-20250929","max_tokens":100,"messages":[
		{"role":"user","content":"`+long+`"},{"role":"assistant","content":"It does not."},{"role":"user","content":"It does."}]}`, claudeCode)
	browser := browsertest.Start(t)
	for _, width := range browsertest.Widths() {
		tab := browser.Open(t, browsertest.View{URL: product.URL, Theme: "light", Width: width, Cookies: person.Cookies()})
		for _, list := range []string{"/overview", "/sessions", "/requests", "/keys", "/providers", "/members", "/audit", "/operator"} {
			tab.Go(list)
			for _, cut := range browsertest.Evaluate[[]string](tab, `[...document.querySelectorAll('main *')]
				.filter(e => getComputedStyle(e).textOverflow === 'ellipsis' && e.scrollWidth > e.clientWidth && !e.matches('input, select'))
				.filter(e => !(e.closest('[title]')?.title ?? '').includes(e.textContent.trim())).map(e => e.textContent.trim())`) {
				t.Errorf("%s, %d px wide: nothing on hover says the whole of %q", list, width, cut)
			}
		}
	}
}
