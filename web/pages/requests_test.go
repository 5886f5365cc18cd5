package pages_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/PuerkitoBio/goquery"
	"github.com/google/uuid"

	"palimpsest/api/upstream/providerdouble"
	"palimpsest/api/upstream/providertest"
	"palimpsest/migrations/dbtest"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/fulltest"
	"palimpsest/pipeline/wire/sessiontest"
	"palimpsest/tenants"
	"palimpsest/web"
	"palimpsest/web/webtest"
)

const (
	requestsWindow = 40_000
	asked          = `{"model":"claude-sonnet-4-5","max_tokens":100,"messages":[{"role":"user","content":"a private question"}]}`
)

// bundle is someone with traffic.
type bundle struct {
	*webtest.Person

	double *providertest.Server
	secret string
}

func requestsSetup(t *testing.T, options ...webtest.Option) bundle {
	t.Helper()
	person := webtest.Start(t, options...).SignUp(t, "northbeam")
	double := webtest.Provider(t, requestsWindow)
	return bundle{Person: person, double: double, secret: person.Connect(double, "laptop")}
}

// ask sends one request and returns its id with the headers of its answer.
func (b bundle) ask(body string, header ...string) (id string, answered http.Header) {
	_, answered = b.Exchange(b.secret, requestsWindow, "/v1/messages", body, header...)
	return answered.Get("X-Palimpsest-Request-Id"), answered
}

// talk returns a session that goes past the window.
func talk() *sessiontest.Session {
	return sessiontest.Generate(7, sessiontest.Options{Format: conversation.Anthropic, Turns: 24, TargetTokens: 60_000, SessionID: "6f0c6f6e-52d0-4f0e-9d3c-0f3d3a7f2b11"})
}

func TestEveryRequestIsListedWithWhatItWas(t *testing.T) {
	t.Parallel()
	b := requestsSetup(t)
	id, _ := b.ask(asked, "X-Palimpsest-Tag-Team", "search", "User-Agent", "codex_cli_rs/0.50")
	page := b.Get("/requests")
	list := page.TestID("requests")
	for _, part := range []string{id[:13], b.Newest().ID.String()[:8], "Codex", "claude-sonnet-4-5", "team=search", "laptop", "anthropic-prod", "200", "ms", "$0.0", "1 idle"} {
		if !strings.Contains(list, part) {
			t.Errorf("the list does not say %q: %s", part, list)
		}
	}
	if page.Find(`.cards li`).Length() != 1 || !page.Has(`nav a[href="/requests"][aria-current]`) || !page.Has(`[data-rows] [data-row]`) {
		t.Error("the list for narrow screens, the navigation or the rows for the keyboard are missing")
	}
	for selector, want := range map[string]string{
		`[data-testid="requests"] a[href^="/sessions/"]`: "/sessions/" + b.Newest().ID.String(),
		`a[download]`: "/api/v1/requests.csv",
		`[data-row]`:  "/requests?open=" + id,
		`.tags a`:     "/requests?tag=team%3Dsearch",
	} {
		if got := page.Find(selector).AttrOr("href", ""); got != want {
			t.Errorf("%s leads to %s, want %s", selector, got, want)
		}
	}
}

func TestTheListIsNarrowedByItsAddress(t *testing.T) {
	t.Parallel()
	b := requestsSetup(t)
	dbtest.FillExchanges(t, b.Database.Owner(t), b.Workspace.ID, 600)
	for query, want := range map[string]int{
		"": 50, "client=rare": 2, "model=rare": 2, "status=4xx": 2, "status=5xx": 12, "error_from=proxy": 2, "miss=provider": 6,
		"module=patterns:applied": 1, "module=patterns:failed": 0, "tag=env%3Dprod&tag=team%3Dteam-3": 30, "tag=env%3Dtest": 0,
		"range=1h&status=4xx": 2, "range=24h&client=rare&model=rare": 0, "to=2020-01-01": 0, "from=2020-01-01&status=4xx": 2,
		"session=" + uuid.NewString(): 0, "key=00000000-0000-0000-0000-000000000003": 50,
	} {
		page := b.Get("/requests?" + query)
		if rows := page.Find(`[data-testid="requests"] tbody tr`).Length(); rows != want || page.Status != http.StatusOK {
			t.Errorf("%s: %d rows, want %d", query, rows, want)
		}
		empty := page.TestID("empty")
		if (empty != "") != (want == 0) || want == 0 && (!strings.Contains(empty, "There are 600 requests") || !strings.Contains(empty, "Clear filters")) {
			t.Errorf("%s: says %q", query, empty)
		}
	}
	page := b.Get("/requests?client=rare&tag=env%3Dprod&tag=team%3Dteam-7")
	if chips := page.Find(".chip a"); chips.Length() != 3 || chips.Last().AttrOr("href", "") != "/requests?client=rare&tag=env%3Dprod" {
		t.Errorf("%d filters can be taken off, the last leads to %s", chips.Length(), chips.Last().AttrOr("href", ""))
	}
	if csv := page.Find("a[download]").AttrOr("href", ""); csv != "/api/v1/requests.csv?client=rare&tag=env%3Dprod&tag=team%3Dteam-7" {
		t.Errorf("the download is %s", csv)
	}
	var shown, values []string
	for _, option := range page.Find(`select[name="client"] option`).EachIter() {
		shown, values = append(shown, option.Text()), append(values, option.AttrOr("value", ""))
	}
	if !slices.Equal(values, []string{"", "client-0", "client-1", "client-2", "rare"}) || shown[0] != "any" {
		t.Errorf("the clients are %q", values)
	}
}

func TestTheListIsPagedByItsLastRequest(t *testing.T) {
	t.Parallel()
	b := requestsSetup(t)
	dbtest.FillExchanges(t, b.Database.Owner(t), b.Workspace.ID, 130)
	seen := map[string]bool{}
	page := b.Get("/requests?status=2xx")
	pages := 1
	for ; ; pages++ {
		for _, row := range page.Find(`[data-row]`).EachIter() {
			opens, err := url.Parse(row.AttrOr("href", ""))
			if err != nil {
				t.Fatal(err)
			}
			seen[opens.Query().Get("open")] = true
		}
		older, more := page.Find(`[data-testid="older"]`).Attr("href")
		if !more {
			break
		}
		page = b.Get(older)
	}
	if len(seen) != 126 || pages != 3 {
		t.Errorf("%d requests on %d pages", len(seen), pages)
	}
	if page = b.Get(b.Get("/requests").Find(`[data-testid="older"]`).AttrOr("href", "")); page.Find(`[data-testid="requests"] tbody tr`).Length() != 50 || !page.Has(`.foot a[href="/requests"]`) {
		t.Error("the second page is another")
	}
	if page := b.Get("/requests?cursor=x"); page.Status != http.StatusBadRequest {
		t.Errorf("a cursor of nobody: status %d", page.Status)
	}
}

func digits(r rune) rune {
	if r >= '0' && r <= '9' {
		return r
	}
	return -1
}

// A click on the head of a figure puts the list in its order, a second one the other way round, and filters
// and pages keep to it.
func TestTheListIsOrderedByAFigure(t *testing.T) {
	t.Parallel()
	b := requestsSetup(t)
	dbtest.FillExchanges(t, b.Database.Owner(t), b.Workspace.ID, 130)
	received := func(page webtest.Page) []int {
		var all []int
		for _, cell := range page.Find(`[data-testid="requests"] tbody td:nth-child(6) span`).EachIter() {
			count, err := strconv.Atoi(strings.Map(digits, cell.AttrOr("title", "0")))
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, count)
		}
		return all
	}
	head := func(page webtest.Page) *goquery.Selection {
		return page.Find(`[data-testid="requests"] th:nth-child(6)`)
	}

	page := b.Get("/requests?client=client-1")
	if state := head(page).AttrOr("aria-sort", ""); state != "none" {
		t.Errorf("at first the order of the column is %q", state)
	}
	for _, state := range []string{"descending", "ascending"} {
		page = b.Get(head(page).Find("a").AttrOr("href", ""))
		shown := received(page)
		if state == "descending" {
			slices.Reverse(shown)
		}
		if len(shown) < 40 || !slices.IsSorted(shown) || head(page).AttrOr("aria-sort", "") != state || !page.Has(`.chip a[href*="sort=received"]`) {
			t.Errorf("%s: %d rows, %v, the head says %q", state, len(shown), shown, head(page).AttrOr("aria-sort", ""))
		}
	}
	page = b.Get("/requests?sort=received")
	first := received(page)
	older := page.Find(`[data-testid="older"]`)
	second := received(b.Get(older.AttrOr("href", "")))
	if strings.TrimSpace(older.Text()) != "Next page" || len(second) != 50 || second[0] > first[49] {
		t.Errorf("the page after it (%q) goes on with %v after %v", older.Text(), second, first)
	}
	if !strings.Contains(page.Find(".foot").Text(), "of the newest 20,000 at most") || page.Find(`input[type="hidden"][name="sort"]`).AttrOr("value", "") != "received" {
		t.Error("the foot does not say what is put in order, or the form forgets the order")
	}
	if page := b.Get("/requests?sort=weight"); page.Status != http.StatusOK || head(page).AttrOr("aria-sort", "") != "none" {
		t.Errorf("an order that there is not: status %d", page.Status)
	}
}

// What is rare among very many is looked for in steps.
func TestRareRequestsAreLookedForFurtherBack(t *testing.T) {
	t.Parallel()
	fulltest.Turn(t, 4)
	b := requestsSetup(t)
	dbtest.FillExchanges(t, b.Database.Owner(t), b.Workspace.ID, 20_500)
	page := b.Get("/requests?module=ipc:failed")
	if empty := page.TestID("empty"); !strings.Contains(empty, "No match so far") || !strings.Contains(empty, "more than 10,000 requests") {
		t.Errorf("says %q", empty)
	}
	if page = b.Get(page.Find(`[data-testid="further"]`).AttrOr("href", "")); page.Has(`[data-testid="further"]`) || !strings.Contains(page.TestID("empty"), "no request on this page") {
		t.Errorf("further back: %q", page.TestID("empty"))
	}
}

func TestWrongFiltersSaySoAtTheirField(t *testing.T) {
	t.Parallel()
	b := requestsSetup(t)
	for query, field := range map[string]string{
		"id=short": "id", "id=zzzzzzzz": "id", "session=x": "id", "key=x": "id", "status=200": "id", "error_from=me": "id",
		"tag=nonsense": "tag", "tag=UP%3Dx": "tag", "from=yesterday": "from", "to=x": "to",
	} {
		page := b.Get("/requests?" + query)
		if page.Status != http.StatusUnprocessableEntity || page.TestID("error-"+field) == "" || page.Has(`[data-testid="requests"]`) {
			t.Errorf("%s: status %d, %q", query, page.Status, page.Text("form"))
		}
	}
	if page := b.Get("/requests?tag=nonsense&client=codex"); page.Find("#field-tag").AttrOr("value", "") != "nonsense" || page.Find(`select[name="client"]`).Find("[selected]").AttrOr("value", "") != "codex" {
		t.Error("what was typed is gone")
	}
}

// Each of our headers that the answer had is explained, with the value that it had.
func TestOpenedRequestExplainsEveryHeaderOfItsAnswer(t *testing.T) {
	t.Parallel()
	b := requestsSetup(t)
	b.Talk(b.secret, requestsWindow, talk(), "claude-cli/2.1.0 (external, cli)")
	var whole string
	for _, body := range talk().Bodies() {
		whole = string(body)
	}
	for name, header := range map[string][]string{
		"an epoch's replay": {}, "a dry run": {"X-Palimpsest-Dry-Run", "true"}, "bypassed": {"X-Palimpsest-Bypass", "true"},
		"refused by the provider": {providerdouble.MisbehaveHeader, providerdouble.MisbehaveOverloaded},
		"refused by the proxy":    {"X-Palimpsest-Target-Utilization", "7"},
		"nothing stored":          {"X-Palimpsest-No-Store", "true"},
	} {
		id, answered := b.ask(whole, header...)
		page := b.Get("/requests/" + id)
		shown := map[string]string{}
		for _, row := range page.Find(`[data-testid="headers"] > div`).EachIter() {
			shown[row.Find("dt code").Text()] = row.Find("dd code").Text()
			if row.Find("dd span").Text() == "" {
				t.Errorf("%s: %s is not explained", name, row.Find("dt code").Text())
			}
		}
		want := map[string]string{}
		for header := range answered {
			if strings.HasPrefix(header, "X-Palimpsest-") || header == "Server-Timing" {
				want[header] = answered.Get(header)
			}
		}
		for header, value := range want {
			if shown[header] != value {
				t.Errorf("%s: %s was %q and is shown as %q", name, header, value, shown[header])
			}
		}
		if len(shown) != len(want) || len(want) < 2 {
			t.Errorf("%s: shown are %v, sent were %v", name, shown, want)
		}
	}
}

func TestOpenedRequestTellsWhatWasDoneAndWhatItEarned(t *testing.T) {
	t.Parallel()
	b := requestsSetup(t)
	b.Talk(b.secret, requestsWindow, talk(), "claude-cli/2.1.0 (external, cli)")
	var id, lane string
	var position int
	err := b.Database.Owner(t).QueryRow(t.Context(), "SELECT id::text, lane_id::text, position FROM exchanges WHERE compression = 'epoch' LIMIT 1").Scan(&id, &lane, &position)
	if err != nil {
		t.Fatal(err)
	}
	page := b.Get("/requests/" + id)
	for part, wants := range map[string][]string{
		"facts":    {"/v1/messages", "Claude Code", "laptop", "anthropic-prod", "Read from cache", "Saved, net"},
		"modules":  {"Compression", "ipc", "applied", "changed the prompt"},
		"events":   {"completed", "ipc", "predicted savings $"},
		"decision": {"This request made the compaction", "Predicted", "So far", "Requests with it"},
		"headers":  {"X-Palimpsest-Compression", "compressed older turns"},
	} {
		if said := page.TestID(part); part != "headers" && (strings.Contains(said, "microusd") || strings.Contains(said, "noop")) {
			t.Errorf("%s has names of the program: %s", part, said)
		}
		for _, want := range wants {
			if !strings.Contains(page.TestID(part), want) {
				t.Errorf("%s does not say %q: %s", part, want, page.TestID(part))
			}
		}
	}
	place := page.Find(`[data-testid="place"]`).AttrOr("href", "")
	want := "/sessions/" + b.Newest().ID.String() + "?" + (url.Values{"lane": {lane}, "m": {strconv.Itoa(position - 1)}}).Encode()
	if place != want {
		t.Errorf("its place is %s, want %s", place, want)
	}
	if shown := b.Get(place); shown.Status != http.StatusOK || !shown.Has(".turn[aria-current]") {
		t.Errorf("its place answers %d", shown.Status)
	}
	if page := b.Get("/requests?open=" + id); !page.Has("dialog#dlg-request [data-testid=headers]") || !page.Has(`[data-testid="requests"]`) ||
		page.Find("dialog [data-close]").AttrOr("href", "") != "/requests" {
		t.Error("it does not open above the list, or does not close to it")
	}
	for _, path := range []string{"/requests/" + uuid.NewString(), "/requests/none", "/requests?open=" + uuid.NewString()} {
		if page := b.Get(path); page.Status != http.StatusNotFound {
			t.Errorf("%s answers %d", path, page.Status)
		}
	}
}

// What the provider said where it refused is there word for word, for who may read what
// was said in the session, unless nothing was to be kept.
func TestProvidersErrorIsShownToWhoMayReadTheSession(t *testing.T) {
	t.Parallel()
	b := requestsSetup(t)
	refused, _ := b.ask(asked, providerdouble.MisbehaveHeader, providerdouble.MisbehaveOverloaded)
	broken, _ := b.ask(strings.Replace(asked, `"max_tokens"`, `"stream":true,"max_tokens"`, 1), providerdouble.MisbehaveHeader, providerdouble.MisbehaveMidstream)
	unkept, _ := b.ask(asked, providerdouble.MisbehaveHeader, providerdouble.MisbehaveOverloaded, "X-Palimpsest-No-Store", "true")
	for id, want := range map[string]string{refused: `"message":"Overloaded"`, broken: `"type":"overloaded_error"`} {
		page := b.Get("/requests/" + id)
		if said := page.TestID("said"); !strings.Contains(strings.ReplaceAll(said, ": ", ":"), want) || !strings.Contains(page.TestID("fault"), "overloaded_error") {
			t.Errorf("says %q, %q", said, page.TestID("fault"))
		}
		for role, may := range map[tenants.Role]bool{tenants.Admin: true, tenants.Billing: false} {
			colleague := b.Colleague(role).Get("/requests/" + id)
			if colleague.Status != http.StatusOK || colleague.Has(`[data-testid="said"]`) != may || strings.Contains(colleague.TestID("silence"), "does not let you read") == may {
				t.Errorf("%s: status %d, %q", role, colleague.Status, colleague.TestID("fault"))
			}
			if colleague.Has(`[data-testid="place"]`) != role.May(tenants.ReadSessions) {
				t.Errorf("%s: the way to the session", role)
			}
		}
	}
	if page := b.Get("/requests/" + unkept); page.Has(`[data-testid="said"]`) || !strings.Contains(page.TestID("silence"), "is not kept") || page.Has(`[data-testid="place"]`) {
		t.Errorf("of what was not to be kept: %q", page.TestID("fault"))
	}
	// What is stored of it is sealed.
	var stored int
	err := b.Database.Owner(t).QueryRow(t.Context(), "SELECT count(*) FROM exchanges WHERE error_text IS NOT NULL AND position('verloaded' in encode(error_text, 'escape')) = 0").Scan(&stored)
	if err != nil || stored != 2 {
		t.Errorf("%d errors are stored sealed, %v", stored, err)
	}
}

// A request's page begins with what was asked and answered, for those who may read the session.
func TestOpenedRequestShowsWhatWasAskedAndAnswered(t *testing.T) {
	t.Parallel()
	b := requestsSetup(t)
	id, _ := b.ask(asked)
	refused, _ := b.ask(strings.Replace(asked, "a private question", "another question", 1), providerdouble.MisbehaveHeader, providerdouble.MisbehaveOverloaded)
	unkept, _ := b.ask(asked, "X-Palimpsest-No-Store", "true")
	for id, want := range map[string][2]string{
		id:      {"a private question", "You said: a private question"},
		refused: {"another question", "No answer: the request failed."},
		unkept:  {"is not kept", "is not kept"},
	} {
		page := b.Get("/requests/" + id)
		if asked, answered := page.TestID("asked"), page.TestID("answered"); !strings.Contains(asked, want[0]) || !strings.Contains(answered, want[1]) {
			t.Errorf("asked %q, answered %q, want %q", asked, answered, want)
		}
		for role, may := range map[tenants.Role]bool{tenants.Admin: true, tenants.Billing: false} {
			page := b.Colleague(role).Get("/requests/" + id)
			if text := page.TestID("asked") + page.TestID("answered"); strings.Contains(text, "question") && !may || strings.Contains(text, "does not let you read") == may {
				t.Errorf("%s reads %q", role, text)
			}
		}
	}
	if between := b.Get("/requests/" + id).TestID("between"); !strings.Contains(between, "was sent unchanged") {
		t.Errorf("in between: %q", between)
	}
}

// A request is repeated by commands that hold no secret, and in which nothing that a
// client sent is anything but a word.
func TestARequestIsRepeatedWithoutASecret(t *testing.T) {
	t.Parallel()
	b := requestsSetup(t)
	hostile := `x'; rm -rf ~ #$(id)`
	body, err := json.Marshal(map[string]any{"model": hostile, "max_tokens": 9, "messages": []any{map[string]string{"role": "user", "content": "hi"}}})
	if err != nil {
		t.Fatal(err)
	}
	id, _ := b.ask(string(body))
	page := b.Get("/requests/" + id)
	text := page.Find(`[data-testid="repeat"]`).Text()
	for _, part := range []string{webtest.PublicURL + "/v1/messages", "$PALIMPSEST_KEY", "/archive/$i?lane=", "anthropic-version", `'x'\''; rm -rf ~ #$(id)'`, "seq 0 0"} {
		if !strings.Contains(text, part) {
			t.Errorf("the commands do not say %q: %s", part, text)
		}
	}
	if strings.Contains(page.HTML, b.secret) || strings.Contains(page.HTML, webtest.ProviderKey) {
		t.Error("the page holds a key")
	}
	unread := blind(b.Person).Get("/requests/" + id)
	if text := unread.Find(`[data-testid="repeat"]`).Text(); strings.Contains(text, "/archive/") || !strings.Contains(text, "--data @body.json") {
		t.Errorf("who may not read it: %s", text)
	}
}

func TestFreshWorkspaceIsShownHowToBegin(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "newcomer")
	page := person.Get("/requests")
	if !strings.Contains(page.TestID("empty"), "No requests yet") || !page.Has(`a[href="/keys#clients"]`) || page.Has("form[role=search]") {
		t.Errorf("says %q", page.TestID("empty"))
	}
	if page := person.Colleague(tenants.Billing).Get("/requests"); page.Has(`.empty a`) {
		t.Error("someone who may not see keys is sent to them")
	}
}

// requestsFailing cannot list.
type requestsFailing struct{ list }

type list interface{ tenants.Exchanges }

func (requestsFailing) Exchanges(context.Context, tenants.WorkspaceID, tenants.ExchangeFilter) ([]tenants.Exchange, string, error) {
	return nil, "", errors.New("connection reset by peer")
}

func TestAFailedListSaysSoAndLeavesThePage(t *testing.T) {
	t.Parallel()
	b := requestsSetup(t, func(_ *webtest.Product, deps *web.Deps) {
		deps.Traffic.Exchanges = requestsFailing{deps.Traffic.Exchanges}
	})
	page := b.Get("/requests?client=codex")
	if page.Status != http.StatusOK || !strings.Contains(page.TestID("failed"), "Reference") || strings.Contains(page.HTML, "connection reset") {
		t.Errorf("status %d: %s", page.Status, page.TestID("failed"))
	}
	if retry := page.Find(`[data-testid="failed"] a`).AttrOr("href", ""); retry != "/requests?client=codex" || !page.Has("form[role=search]") {
		t.Errorf("tries again at %s", retry)
	}
}

func TestRangesEndNowAndDaysAreTheReaders(t *testing.T) {
	t.Parallel()
	b := requestsSetup(t)
	dbtest.FillExchanges(t, b.Database.Owner(t), b.Workspace.ID, 10)
	b.Post("/settings", "time_zone", "Pacific/Kiritimati", "managers_read", "all", "members_read", "own", "viewers_read", "none")
	zone, err := time.LoadLocation("Pacific/Kiritimati")
	if err != nil {
		t.Fatal(err)
	}
	today := time.Now().In(zone).Format(time.DateOnly)
	page := b.Get("/requests?range=7d&to=" + today)
	if page.Find(`[data-testid="requests"] tbody tr`).Length() != 10 || page.Has(`.seg [aria-current]`) || !page.Has("details[open]") {
		t.Error("days do not take the place of a range, or are not the workspace's while the reader's are not known")
	}
	// In Kiritimati a day begins 24 hours before it does in Honolulu.
	if page := b.Get("/requests?from="+today, "Cookie", "zone=Pacific%2FHonolulu"); page.Find(`[data-testid="requests"] tbody tr`).Length() != 0 ||
		!strings.Contains(page.Text("form[role=search]"), "Days of Pacific/Honolulu") {
		t.Error("days are not the reader's, or do not say so")
	}
	if page := b.Get("/requests?range=1h"); page.Find(`.seg [aria-current]`).Text() != "1h" || page.Find(`[data-testid="requests"] tbody tr`).Length() != 10 {
		t.Error("the last hour is another")
	}
}
