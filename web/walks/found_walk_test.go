package walks_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"palimpsest/pipeline/fulltest"
	"palimpsest/web/browsertest"
	"palimpsest/web/webtest"
)

// A word that was said stands in the list of sessions once someone searches for it, and one click on the
// hit opens the session at its message, in view and with the word marked.
func TestHitOpensAtItsMarkedMessage(t *testing.T) {
	t.Parallel()
	fulltest.Turn(t, 4)
	product := webtest.Start(t)
	person := product.SignUp(t, "northbeam")
	var said []string
	for i := range 40 {
		text := fmt.Sprintf("Step %d is about the harbor.", i)
		if i == 21 {
			text = "The marmots whistle at dawn near the quarry."
		}
		said = append(said, `{"role":"`+[]string{"user", "assistant"}[i%2]+`","content":"`+text+`"}`)
	}
	person.TalkOnce(person.Connect(webtest.Provider(t, 100_000), "laptop"), 100_000, "/v1/messages",
		`{"model":"claude-sonnet-4-5","max_tokens":100,"messages":[`+strings.Join(append(said, `{"role":"user","content":"Go on."}`), ",")+`]}`, claudeCode)
	if n, err := person.Index.IndexPending(t.Context(), 100); err != nil || n == 0 {
		t.Fatalf("%d indexed: %v", n, err)
	}
	browser := browsertest.Start(t)
	for _, width := range browsertest.Widths() {
		tab := browser.Open(t, browsertest.View{URL: product.URL, Theme: "light", Width: width, Cookies: person.Cookies()})
		tab.Go("/sessions")
		tab.Set("#find", "marmots whistle")
		tab.Until(`document.querySelector('[data-testid="hits"] a') !== null`)
		tab.Check(fmt.Sprintf("hits of a search %d", width))
		tab.Click(`[data-testid="hits"] a`)
		tab.Until(`location.pathname === '/sessions/` + person.Newest().ID.String() + `' && document.querySelector('#pane')?.dataset.message === '21' && [...CSS.highlights.get('found')].some(range => {
			const box = range.getBoundingClientRect();
			return range.toString() === 'marmots' && box.height > 0 && box.top >= 0 && box.bottom <= innerHeight;
		})`)
	}
}

// Someone who has a session open is offered what came since, and reads the newest answer once they take it.
func TestOpenSessionOffersWhatCameSince(t *testing.T) {
	t.Parallel()
	fulltest.Turn(t, 4)
	product := webtest.Start(t)
	person := product.SignUp(t, "northbeam")
	secret := person.Connect(webtest.Provider(t, window), "laptop")
	said := `{"role":"user","content":"What is a marmot?"}`
	ask := func() {
		person.TalkOnce(secret, window, "/v1/messages", `{"model":"claude-sonnet-4-5","max_tokens":100,"metadata":{"user_id":"user_1_account__session_6f0c6f6e-52d0-4f0e-9d3c-0f3d3a7f2b11"},"messages":[`+said+`]}`, claudeCode)
	}
	ask()
	session := "/sessions/" + person.Newest().ID.String()
	tab := browsertest.Start(t).Open(t, browsertest.View{URL: product.URL, Theme: "light", Cookies: person.Cookies()})
	tab.Go(session)
	first := tab.Text(`[data-testid="answer"]`)
	tab.Until(`document.documentElement.dataset.streaming === 'yes'`)
	said += `,{"role":"assistant","content":` + strconv.Quote(first) + `},{"role":"user","content":"And where does it live?"}`
	ask()
	tab.Until(`document.querySelector('[data-live-show]:not([hidden])')?.textContent === '1 new request in this session – show'`)
	tab.Check("a session that went on")
	tab.Click(`[data-live-show]`)
	tab.Until(`document.querySelector('[data-live-show]').hidden && document.querySelector('#read').textContent.includes('And where does it live?') && document.querySelector('[data-testid="answer"]').textContent !== ''`)
	if path := browsertest.Evaluate[string](tab, `location.pathname`); path != session {
		t.Errorf("it went on in %s", path)
	}
}
