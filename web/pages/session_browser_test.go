package pages_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"palimpsest/api/manage"
	"palimpsest/api/upstream/providertest"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/fulltest"
	"palimpsest/pipeline/wire/formats"
	"palimpsest/pipeline/wire/sessiontest"
	"palimpsest/tenants"
	"palimpsest/web/browsertest"
	"palimpsest/web/webtest"
)

// desk is a person at the page of a session that went past the window.
type desk struct {
	*webtest.Person

	double *providertest.Server
	talk   *sessiontest.Session
	secret string
	path   string // of the page
	cut    int    // a message that was cut at L1
	tab    *browsertest.Tab
}

// sit starts a session, its page in a browser, and the API that serves its originals.
func sit(t *testing.T) desk {
	t.Helper()
	product := webtest.Start(t)
	d := desk{double: webtest.Provider(t, sessionWindow), Person: product.SignUp(t, "northbeam"), cut: -1}
	cutAtL1(t, d.Person)
	d.talk = sessiontest.Generate(7, sessiontest.Options{Format: conversation.Anthropic, Turns: 40, TargetTokens: 80_000, SessionID: "one"})
	d.secret = d.Connect(d.double, "laptop")
	d.Talk(d.secret, sessionWindow, d.talk, claudeCode)
	overview := d.Newest()
	d.path = "/sessions/" + overview.ID.String()
	for _, part := range projection(t, d.Person, overview.ID).Parts {
		if part.Level == 1 && part.Raw != nil && part.To-part.From == 1 {
			d.cut = part.From
		}
	}
	if d.cut < 0 {
		t.Fatal("no message was cut at L1")
	}
	d.tab = browsertest.Start(t).Open(t, browsertest.View{URL: withAPI(t, product), Theme: "light", Cookies: d.Cookies()})
	return d
}

// withAPI serves the product's API and, behind it, its dashboard at one address, and
// returns it.
func withAPI(t *testing.T, product *webtest.Product) string {
	t.Helper()
	dashboard, err := url.Parse(product.URL)
	if err != nil {
		t.Fatal(err)
	}
	e := echo.New()
	manage.Register(e.Group("/api/v1"), manage.Config{
		Codecs:        formats.ByFormat(),
		People:        manage.People{Identity: product.People, Cookies: tenants.NewCookies(webtest.PublicURL), Keys: product.Keys, Operators: product.DB.Operators},
		Conversations: manage.Conversations{Sessions: product.Sessions.Browser(), Archive: product.Archive}, Administration: manage.Administration{Data: product.DB.Data, Audit: product.DB.Audit},
	})
	front := http.NewServeMux()
	front.Handle("/api/v1/", e)
	front.Handle("/", httputil.NewSingleHostReverseProxy(dashboard))
	server := httptest.NewServer(front)
	t.Cleanup(server.Close)
	return server.URL
}

// key presses a key as a person does: what the page does at once decides whether it
// also types its letter.
func (d desk) key(key string) {
	d.tab.Do(chromedp.KeyEvent(key, func(event *input.DispatchKeyEventParams) {
		switch {
		case event.Type == kb.KeyDown && key != kb.Tab:
			event.Text = key
		case event.Type == kb.KeyChar:
			event.Modifiers |= int64(chromedp.ModifierAlt) // it is not sent: the one above types
		}
	}))
}

// shows is true once the page shows a message and has its row marked.
func shows(message string) string {
	return fmt.Sprintf(`new URL(location.href).searchParams.get('m') === '%[1]s' && document.querySelectorAll('.turns [aria-current]').length === 1
		&& new URL(document.querySelector('.turns [aria-current]').href).searchParams.get('m') === '%[1]s' && document.activeElement.matches('[data-focus]')`, message)
}

func TestSessionIsReadByKeyboard(t *testing.T) {
	t.Parallel()
	fulltest.Turn(t, 4)
	d := sit(t)
	tab := d.tab
	tab.Go(d.path + "?m=" + itoa(d.cut))
	tab.Check("session")
	// Where j leads is the row below, where k leads is the one that was left.
	below := browsertest.Evaluate[string](tab, `new URL(document.querySelector('.turns li:has([aria-current]) + li a').href).searchParams.get('m')`)
	d.key("j")
	tab.Until(shows(below))
	d.key("k")
	tab.Until(shows(itoa(d.cut)))

	for _, only := range []string{"orig", "sent", "both"} {
		d.key("o")
		tab.Until(`document.querySelector('.sbs').dataset.only === '` + only + `'`)
		original, sent := browsertest.Evaluate[bool](tab, `document.querySelector('.s-orig').offsetWidth > 0`), browsertest.Evaluate[bool](tab, `document.querySelector('.s-sent').offsetWidth > 0`)
		if original != (only != "sent") || sent != (only != "orig") {
			t.Errorf("%s: original is shown %v, sent %v", only, original, sent)
		}
	}
}

// marked is true once the message that is read has what was looked for marked, in sight.
const marked = `document.querySelector('#pane[data-marked]') !== null && CSS.highlights.get('found').size > 0
	&& document.querySelector('[data-hit][aria-current]')?.href === location.href
	&& [...CSS.highlights.get('found')].some(range => { const box = range.getBoundingClientRect(); return box.top >= 0 && box.bottom <= innerHeight && box.height > 0; })`

// The search looks through the archive of the session, whatever rows are loaded.
func TestSessionIsSearchedInItsArchive(t *testing.T) {
	t.Parallel()
	fulltest.Turn(t, 4)
	d := sit(t)
	tab := d.tab
	if n, err := d.Index.IndexPending(t.Context(), 1000); err != nil || n == 0 {
		t.Fatalf("%d lanes were indexed: %v", n, err)
	}
	tab.Go(d.path + "?m=0")
	word := browsertest.Evaluate[string](tab, `document.querySelector('.turns .pv').textContent.match(/[A-Za-z]{5,}/g).sort((a, b) => b.length - a.length)[0]`)
	tab.Go(d.path + "?from=" + itoa(d.cut+20) + "&m=" + itoa(d.cut+20))
	if browsertest.Evaluate[bool](tab, `[...document.querySelectorAll('.turns a.turn')].some(row => new URL(row.href).searchParams.get('m') === '0')`) {
		t.Fatal("the first row is loaded: the test proves nothing")
	}

	d.key("/")
	tab.Until(`document.activeElement.matches('[data-find]') && document.activeElement.value === ''`)
	tab.Do(chromedp.KeyEvent(word + kb.Enter))
	tab.Until(marked)
	first := browsertest.Evaluate[string](tab, `document.querySelector('#pane').dataset.message`)
	if first != "0" {
		t.Errorf("%q is first found in message %s", word, first)
	}
	tab.Check("session searched")
	hits := browsertest.Evaluate[int](tab, `document.querySelectorAll('[data-hit]').length`)
	if hits < 2 {
		t.Fatalf("%q is found in %d messages: n leads nowhere", word, hits)
	}
	browsertest.Evaluate[bool](tab, `(document.activeElement.blur(), true)`)
	d.key("n")
	tab.Until(marked + ` && new URL(location.href).searchParams.get('m') !== '0'`)
	d.key("p")
	tab.Until(marked + ` && new URL(location.href).searchParams.get('m') === '0'`)

	// Words that nobody said find nothing.
	tab.Set("[data-find]", "zorgblatt wuffelknop")
	tab.Until(`document.querySelector('[data-found]').textContent.includes('No message of this session matches') && document.querySelectorAll('[data-hit]').length === 0`)

	// A hit of the search over all sessions opens at its message, in one click.
	tab.Go("/sessions?q=" + url.QueryEscape(word))
	tab.Click(`[data-testid="hits"] a`)
	tab.Until(marked)
}

// Lines of a difference stand under one another, and scroll inside their card.
func TestDifferenceIsReadInItsCard(t *testing.T) {
	t.Parallel()
	fulltest.Turn(t, 4)
	d := sit(t)
	d.tab.Go(d.path + "?view=diff")
	d.tab.Check("session difference")
	overlapping := browsertest.Evaluate[int](d.tab, `(lines => lines.filter((line, i) => i > 0 && line.getBoundingClientRect().top < lines[i - 1].getBoundingClientRect().top + lines[i - 1].scrollHeight - 2).length)([...document.querySelectorAll('.diff > *')])`)
	below := browsertest.Evaluate[float64](d.tab, `document.documentElement.scrollHeight - (scrollY + document.querySelector('#read').getBoundingClientRect().bottom)`)
	if overlapping > 0 || below > 200 {
		t.Errorf("%d lines overlap, the page goes on for %v px below the card", overlapping, below)
	}
}

func TestEventsAreReachedByKeyboard(t *testing.T) {
	t.Parallel()
	fulltest.Turn(t, 4)
	d := sit(t)
	tab := d.tab
	tab.Go(d.path)
	events := browsertest.Evaluate[[]string](tab, `[...document.querySelectorAll('[data-event]')].map(event => new URL(event.href).searchParams.get('m'))`)
	if len(events) == 0 {
		t.Fatal("no event leads to a turn")
	}
	at := func(message string) string {
		return fmt.Sprintf(`new URL(location.href).searchParams.get('m') === '%s' && document.readyState === 'complete' && document.querySelector('.turns [aria-current]') !== null`, message)
	}
	d.key("[") // from nowhere the one before is the last
	tab.Until(at(events[len(events)-1]))
	tab.Go(d.path)
	d.key("]")
	tab.Until(at(events[0]))
}

// S32: the hash that is shown is that of the bytes a browser gets, and a browser can say so.
func TestBrowserComputesTheHashItself(t *testing.T) {
	t.Parallel()
	fulltest.Turn(t, 4)
	d := sit(t)
	d.tab.Go(d.path + "?m=" + itoa(d.cut))
	d.tab.Click("[data-check-hash]")
	d.tab.Until(`document.querySelector('[data-check-result]').textContent.startsWith('Checked in this browser')`)
	if said := d.tab.Text("[data-check-result]"); said != "Checked in this browser: the bytes have this hash." {
		t.Errorf("it says %q", said)
	}

	// The same bytes against another hash: the browser does not repeat what the page says.
	d.tab.Run(`document.querySelector('[data-check-hash]').dataset.checkHash = '00'`)
	d.tab.Click("[data-check-hash]")
	d.tab.Until(`document.querySelector('[data-check-result]').textContent.includes('another hash')`)
	if said, sum := d.tab.Text("[data-check-result]"), d.tab.Text("#sha256"); !strings.Contains(said, sum) {
		t.Errorf("it says %q, the hash is %s", said, sum)
	}
	d.tab.Run(`document.querySelector('[data-check-hash]').dataset.bytes = '/sessions/` + uuid.Nil.String() + `'`)
	d.tab.Click("[data-check-hash]")
	d.tab.Until(`document.querySelector('[data-check-result]').textContent.includes('Nothing was checked')`)
}

// A turn that was cut stands in the next request as the client sent it, byte for byte,
// once someone has put it back without touching a mouse.
func TestTurnIsPutBackWithTheKeyboardAlone(t *testing.T) {
	t.Parallel()
	fulltest.Turn(t, 4)
	d := sit(t)
	original := d.talk.Messages(d.talk.Steps() - 1)[d.cut]
	if bytes.Contains(d.newest(t), original) {
		t.Fatal("the newest request held the turn verbatim before")
	}
	d.tab.Go(d.path + "?m=" + itoa(d.cut))
	d.key("j")
	d.tab.Until(`document.activeElement.matches('[data-focus]') && !` + fmt.Sprintf(`(new URL(location.href).searchParams.get('m') === '%d')`, d.cut))
	d.key("k")
	d.tab.Until(shows(itoa(d.cut)))
	for range 20 {
		d.key(kb.Tab)
		if browsertest.Evaluate[bool](d.tab, `document.activeElement.matches('[data-testid="restore"]')`) {
			break
		}
	}
	d.key(kb.Enter)
	d.tab.See(`[data-testid="waiting"]`)
	if done := d.tab.Text(`[data-testid="done"]`); !strings.HasPrefix(done, "Restored in the next request.") {
		t.Errorf("it says %q", done)
	}

	body := bytes.TrimSuffix(d.talk.Body(d.talk.Steps()-1), []byte("]}"))
	next := string(body) + `,{"role":"assistant","content":[{"type":"text","text":"Done."}]},{"role":"user","content":"And now?"}]}`
	d.TalkOnce(d.secret, sessionWindow, "/v1/messages", next, claudeCode)
	if !bytes.Contains(d.newest(t), original) {
		t.Errorf("the next request does not hold message %d as the client sent it: %s", d.cut, short(string(original)))
	}
	d.tab.Go(d.path + "?m=" + itoa(d.cut))
	if sent := d.tab.Text(`[data-testid="sent"]`); !strings.HasPrefix(sent, "Unchanged, byte for byte.") || d.tab.Text(`[data-testid="waiting"]`) != "" || d.tab.Text(`[data-testid="pinned"]`) == "" {
		t.Errorf("the page says %q, waiting %q", short(sent), d.tab.Text(`[data-testid="waiting"]`))
	}
}

// newest returns the body of the newest request that the provider got.
func (d desk) newest(t *testing.T) []byte {
	t.Helper()
	last, known := d.double.Last()
	if !known || last.Status != http.StatusOK {
		t.Fatalf("the provider answered %d", last.Status)
	}
	return last.Body
}
