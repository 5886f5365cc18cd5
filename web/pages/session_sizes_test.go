package pages_test

import (
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/PuerkitoBio/goquery"

	"palimpsest/tenants"
	"palimpsest/web/webtest"
)

// numbers returns the tokens that a row of the page says: received, and sent where that is another number.
func numbers(t *testing.T, text string) (received, sent int) {
	t.Helper()
	came, went, both := strings.Cut(text, "→")
	read := func(text string) int {
		n, err := strconv.Atoi(strings.NewReplacer(",", "", " ", "", "\n", "", "\t", "").Replace(text))
		if err != nil {
			t.Fatalf("%q is not a number of tokens", text)
		}
		return n
	}
	received = read(came)
	if sent = received; both {
		sent = read(went)
	}
	return received, sent
}

// What the rows say adds up to what the page says of the prompt, on all pages of the list together.
func TestRowsOfASessionAddUpToItsPrompt(t *testing.T) {
	t.Parallel()
	person, _, overview := compressed(t)
	address := "/sessions/" + overview.ID.String()
	page := person.Get(address)
	said := page.TestID("prompt")
	_, figures, _ := strings.Cut(said, "messages,")
	received, sent := numbers(t, strings.TrimSuffix(strings.TrimSpace(figures), "tokens"))
	newest, err := person.Sessions.Browser().Newest(t.Context(), person.Workspace.ID, overview.ID, laneOf(t, person, overview.ID), 0)
	if err != nil || received != newest.Before || sent != newest.After || sent >= received {
		t.Fatalf("the page says %q, the newest request had %d and sent %d tokens, %v", said, newest.Before, newest.After, err)
	}

	rows, deep, before, after := 0, 0, 0, 0
	for next := address; next != ""; {
		page := person.Get(next)
		for _, row := range page.Find(`[data-testid="turns"] .turn, [data-testid="turns"] .rest`).EachIter() {
			came, went := numbers(t, row.Find(".tk").Text())
			if came < 0 || went < 0 {
				t.Errorf("%q has %d and %d tokens", row.Text(), came, went)
			}
			before, after, rows = before+came, after+went, rows+1
			if level := strings.TrimSpace(row.Find(".lv").Text()); level == "L2" || level == "L3" {
				deep++
				if went == 0 && came > 0 {
					t.Errorf("nothing was sent for %d tokens at %s: %s", came, level, row.Text())
				}
			}
		}
		next = page.Find(`#turns-after a`).AttrOr("href", "")
	}
	if before != received || after != sent || rows < 10 || deep == 0 {
		t.Errorf("%d rows, %d of them at L2 or L3, add up to %d received and %d sent, of %d and %d", rows, deep, before, after, received, sent)
	}
	chosen := page.Find(`[data-testid="turns"] [aria-current]`)
	came, went := numbers(t, chosen.Find(".tk").Text())
	heads := page.Find("#pane .sbs header").Map(func(_ int, head *goquery.Selection) string { return head.Text() })
	if !strings.Contains(heads[0], count(came)+" tokens") || !strings.Contains(heads[1], count(went)+" tokens") {
		t.Errorf("the row says %d and %d tokens, beside it stands %q", came, went, heads)
	}
}

// count writes a number below a million as the page does.
func count(n int) string {
	if n < 1000 {
		return strconv.Itoa(n)
	}
	return strconv.Itoa(n/1000) + "," + strconv.Itoa(1000 + n%1000)[1:]
}

// A compaction is offered where it would do something. Elsewhere the button says why not, and the form is refused.
func TestCompactNowIsOfferedWhereItDoesSomething(t *testing.T) {
	t.Parallel()
	person, _, overview := compressed(t)
	address := "/sessions/" + overview.ID.String()
	lane := laneOf(t, person, overview.ID).String()
	if page := person.Get(address); page.Find(`a[data-testid="compact"]`).Length() != 1 {
		t.Fatal("it is not offered")
	}
	shown := func(why string) {
		t.Helper()
		page := person.Get(address)
		if button := page.Find(`button[data-testid="compact"][aria-disabled="true"]`); button.Length() != 1 || !strings.Contains(page.TestID("no-compact"), why) {
			t.Errorf("the page says %q, not %q", page.TestID("no-compact"), why)
		}
	}
	refused := func(why string) {
		t.Helper()
		shown(why)
		if page := person.Post(address+"/compact", "lane", lane); page.Status != http.StatusUnprocessableEntity || !strings.Contains(page.TestID("problem-form"), why) {
			t.Errorf("the form: status %d, %q", page.Status, page.TestID("problem-form"))
		}
	}

	if page := person.Post(address+"/compact", "lane", lane); page.TestID("waiting") == "" {
		t.Fatal("it is not planned")
	}
	shown("already planned for the next request")
	if _, err := person.Database.Owner(t).Exec(t.Context(), "UPDATE lanes SET asked_at = NULL WHERE id = $1", lane); err != nil {
		t.Fatal(err)
	}
	key := tenants.APIKey{ID: overview.APIKey, Name: "laptop", Pipeline: "ipc: {deepestLevel: 0}\n"}
	if err := person.DB.APIKeys.ChangeAPIKey(t.Context(), person.Workspace.ID, key); err != nil {
		t.Fatal(err)
	}
	refused("Compression is off")
	if err := person.DB.APIKeys.RevokeAPIKey(t.Context(), person.Workspace.ID, overview.APIKey); err != nil {
		t.Fatal(err)
	}
	refused("is revoked")
}

// Nothing is offered for a conversation of one turn either: the newest turn stays as it is.
func TestCompactNowIsNotOfferedForOneTurn(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	person.TalkOnce(person.Connect(webtest.Provider(t, sessionWindow), "laptop"), sessionWindow, "/v1/messages",
		`{"model":"claude-sonnet-4-5","max_tokens":100,"metadata":{"user_id":"user_a_account_b_session_00000000-0000-4000-8000-000000000000"},"messages":[{"role":"user","content":"Hello"}]}`, claudeCode)
	page := person.Get("/sessions/" + person.Newest().ID.String())
	if said := page.TestID("no-compact"); !strings.Contains(said, "one turn") {
		t.Errorf("the page says %q", said)
	}
}
