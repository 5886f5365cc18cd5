package pages_test

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/PuerkitoBio/goquery"
	"github.com/google/uuid"

	"palimpsest/api/upstream/providerdouble"
	"palimpsest/migrations/dbtest"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/wire/sessiontest"
	"palimpsest/tenants"
	"palimpsest/web/components"
	"palimpsest/web/webtest"
)

const (
	sessionWindow = 75_000 // tokens
	claudeCode    = "claude-cli/2.1.0 (external, cli)"
)

// cutSession is the database of compressed.
var cutSession dbtest.Template

// cutTalk returns what was said in the session of compressed.
var cutTalk = sync.OnceValue(func() *sessiontest.Session {
	return sessiontest.Generate(7, sessiontest.Options{Format: conversation.Anthropic, Turns: 40, TargetTokens: 80_000, SessionID: "one"})
})

// compressed returns a person with a session that went past the window, and what
// was said in it.
func compressed(t *testing.T) (*webtest.Person, *sessiontest.Session, session.Overview) {
	t.Helper()
	product := webtest.StartFrom(t, &cutSession, func(t testing.TB, product *webtest.Product) {
		t.Helper()
		person := product.SignUp(t, "northbeam")
		cutAtL1(t, person)
		person.Talk(person.Connect(webtest.Provider(t, sessionWindow), "laptop"), sessionWindow, cutTalk(), claudeCode)
	})
	person := product.LogIn(t, "northbeam@example.com")
	return person, cutTalk(), person.Newest()
}

// cutAtL1 has the person's workspace compress so little that turns stay at L1.
func cutAtL1(t testing.TB, person *webtest.Person) {
	t.Helper()
	config := tenants.PipelineConfig{YAML: "ipc: {targetUtilization: 0.75, compressTo: 0.40}\n", SavedBy: person.User.ID}
	if _, err := person.DB.Pipelines.SavePipeline(t.Context(), person.Workspace.ID, 0, config); err != nil {
		t.Fatal(err)
	}
}

// projection returns what stands for the session's first messages.
func projection(t *testing.T, person *webtest.Person, id uuid.UUID) session.Projection {
	t.Helper()
	detail, err := person.Sessions.Browser().Session(tenants.OwnWork(t.Context()), person.Workspace.ID, id)
	if err != nil {
		t.Fatal(err)
	}
	found, err := person.Sessions.Browser().Projection(t.Context(), person.Workspace.ID, detail.Lanes[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestOriginalStandsBesideWhatWasSent(t *testing.T) {
	t.Parallel()
	person, talk, overview := compressed(t)
	var cut session.Part
	for _, part := range projection(t, person, overview.ID).Parts {
		if part.Level == 1 && part.Raw != nil && part.To-part.From == 1 {
			cut = part
		}
	}
	if cut.Raw == nil {
		t.Fatal("no message was cut at L1")
	}

	// The archive is written behind the answer: on a busy machine its rows may be younger.
	if _, err := person.Database.Owner(t).Exec(t.Context(), "UPDATE archive_entries SET stored_at = stored_at - interval '1 hour'"); err != nil {
		t.Fatal(err)
	}
	page := person.Get("/sessions/" + overview.ID.String() + "?m=" + itoa(cut.From))
	pane := page.Find(`[data-testid="pane"]`)
	if said := page.TestID("kept"); !strings.Contains(said, "in the prompt") || strings.Contains(said, "missing") || !strings.Contains(page.TestID("events"), "nothing lost") {
		t.Errorf("the page says %q of what was kept, and %q of the events", said, page.TestID("events"))
	}
	if level := strings.TrimSpace(pane.Find(".bar .lv").Text()); level != "L1" {
		t.Errorf("the level is %q", level)
	}
	kept, whole := pane.Find(`[data-testid="original"] .kept`).Text(), pane.Find(`[data-testid="original"] .kept, [data-testid="original"] .gone`).Text()
	raw := string(talk.Messages(talk.Steps() - 1)[cut.From])
	if kept == "" || len(whole) <= len(kept) || !strings.Contains(unquoted(t, raw), whole) {
		t.Errorf("kept %q of %q is not the original", short(kept), short(whole))
	}
	if pane.Find(`[data-testid="rendering"]`).Length() > 0 {
		t.Error("there is a switch between two forms that are alike")
	}
	if sent := pane.Find(`[data-testid="sent"] .kept`).Text(); sent != kept {
		t.Errorf("sent was %q, marked as kept %q", short(sent), short(kept))
	}
	if stub := pane.Find(`[data-testid="sent"] .stub`).Text(); !strings.Contains(stub, "archived as") {
		t.Errorf("the rest stands as %q", stub)
	}
	provenance := page.TestID("provenance")
	for _, want := range []string{"matches", "before its shorter form was sent", "reason: target reached"} {
		if !strings.Contains(provenance, want) {
			t.Errorf("the provenance lacks %q: %s", want, provenance)
		}
	}
	entry, err := person.Archive.Original(t.Context(), person.Workspace.ID, laneOf(t, person, overview.ID), cut.From)
	if err != nil || !strings.Contains(provenance, hex.EncodeToString(entry.Hash[:])) {
		t.Errorf("the hash %x is not shown: %v", entry.Hash, err)
	}
}

func TestRunsOfDeepLevelsAreOneRow(t *testing.T) {
	t.Parallel()
	person, _, overview := compressed(t)
	var run session.Part
	for _, part := range projection(t, person, overview.ID).Parts {
		if part.Level >= 2 && part.Messages > 0 {
			run = part
		}
	}

	page := person.Get("/sessions/" + overview.ID.String() + "?m=" + itoa(run.From))
	row := page.Text(`[data-testid="turns"] [aria-current]`)
	if !strings.Contains(row, itoa(run.From)+"–"+itoa(run.To-1)) || !strings.Contains(row, "L"+itoa(run.Level)) {
		t.Errorf("messages %d to %d at L%d stand as %q", run.From, run.To-1, run.Level, row)
	}
	if sent := page.TestID("sent"); !strings.Contains(sent, "[AUTO CONTEXT COMPRESSION]") {
		t.Errorf("what was sent is %q", short(sent))
	}
	later := page.Find(`[data-testid="original"] .more a`).AttrOr("href", "")
	if run.To-run.From > 12 {
		if next := person.Get(later); !next.Has(`[data-testid="original"] h4`) || next.Text(`[data-testid="original"] h4`) == page.Text(`[data-testid="original"] h4`) {
			t.Errorf("later originals at %s are the same", later)
		}
	}
}

func TestMessageThatWasNotTouchedIsShownAsSuch(t *testing.T) {
	t.Parallel()
	person, talk, overview := compressed(t)

	last := len(talk.Messages(talk.Steps()-1)) - 1
	page := person.Get("/sessions/" + overview.ID.String() + "?m=" + itoa(last))
	if sent := page.TestID("sent"); !strings.Contains(sent, "Unchanged, byte for byte") {
		t.Errorf("the newest message was sent as %q", short(sent))
	}
	raw := person.Get("/sessions/" + overview.ID.String() + "?view=raw&all=1&m=" + itoa(last))
	if got, want := raw.Find(`[data-testid="original"] pre`).Text(), string(talk.Messages(talk.Steps() - 1)[last]); got != want {
		t.Errorf("the JSON is %q, want %q", short(got), short(want))
	}
}

func TestHtmxGetsTheTurnsAlone(t *testing.T) {
	t.Parallel()
	person, _, overview := compressed(t)

	part := person.Get("/sessions/"+overview.ID.String()+"?m=0", "HX-Request", "true", "HX-Request-Type", "partial")
	if part.Has("h1") || part.Has("[data-chart]") || !part.Has("#read [data-testid='pane']") {
		t.Errorf("the part holds %s", short(part.HTML))
	}
}

func TestChartHoldsEachRequestAndMarksEpochs(t *testing.T) {
	t.Parallel()
	person, talk, overview := compressed(t)

	page := person.Get("/sessions/" + overview.ID.String())
	var chart components.Chart
	if err := json.Unmarshal([]byte(page.Find("[data-chart]").AttrOr("data-chart", "")), &chart); err != nil {
		t.Fatal(err)
	}
	if len(chart.X) != talk.Steps() || len(chart.Marks) != overview.Sums.Epochs || overview.Sums.Epochs == 0 {
		t.Errorf("%d requests and %d marks for %d requests and %d epochs", len(chart.X), len(chart.Marks), talk.Steps(), overview.Sums.Epochs)
	}
	if len(chart.Series) < 6 || chart.Series[4].Label != "L3" {
		t.Fatalf("the chart has %d lines", len(chart.Series))
	}
	for i := range chart.X {
		held := int64(0)
		for _, level := range chart.Series[1:5] {
			held += *level.Values[i]
		}
		if sent := *chart.Series[5].Values[i]; held != sent {
			t.Errorf("request %d: L0 to L3 add up to %d of %d sent", i+1, held, sent)
		}
	}
	sum := int64(0)
	for _, value := range chart.Series[0].Values {
		sum += *value
	}
	if sum != overview.Sums.TokensBefore {
		t.Errorf("the chart adds up to %d received, the ledger to %d", sum, overview.Sums.TokensBefore)
	}
	table := person.Get("/sessions/" + overview.ID.String() + "?table=1")
	if rows := table.Find(`[data-testid="requests"] tbody tr`).Length(); rows != len(chart.X) || page.Has(`[data-testid="requests"]`) {
		t.Errorf("the table has %d rows", rows)
	}
}

func TestDamagedOriginalIsNeverReplacedByTheShortenedText(t *testing.T) {
	t.Parallel()
	person, _, overview := compressed(t)
	owner := person.Database.Owner(t)
	_, err := owner.Exec(t.Context(), `UPDATE archive_objects o SET bytes = (SELECT bytes FROM archive_objects x WHERE x.workspace_id = o.workspace_id AND x.hash <> o.hash LIMIT 1)
		WHERE hash = (SELECT hash FROM archive_entries WHERE lane_id = $1 AND index = 0)`, laneOf(t, person, overview.ID))
	if err != nil {
		t.Fatal(err)
	}

	page := person.Get("/sessions/" + overview.ID.String() + "?m=0")
	if page.Status != http.StatusOK || !strings.Contains(page.Text(`[role="alert"]`), "no longer match their stored hash") {
		t.Errorf("status %d: %s", page.Status, page.Text(`[role="alert"]`))
	}
	page.Find(`[data-testid="original"] h4`).Each(func(_ int, heading *goquery.Selection) {
		if strings.HasPrefix(strings.TrimSpace(heading.Text()), "0 ·") {
			t.Error("the damaged message is shown")
		}
	})
	if others := page.Find(`[data-testid="original"] h4`).Length(); others == 0 {
		t.Error("the messages beside it are gone")
	}
}

func TestMissingOriginalIsNeverReplacedByTheShortenedText(t *testing.T) {
	t.Parallel()
	person, _, overview := compressed(t)
	lane, cut := laneOf(t, person, overview.ID), -1
	for _, part := range projection(t, person, overview.ID).Parts {
		if part.Level == 1 && part.Raw != nil && part.To-part.From == 1 {
			cut = part.From
		}
	}
	address := "/sessions/" + overview.ID.String() + "?m=" + itoa(cut)
	sent := person.Get(address).TestID("sent")
	if _, err := person.Database.Owner(t).Exec(t.Context(), "DELETE FROM archive_entries WHERE lane_id = $1 AND index = $2", lane, cut); err != nil {
		t.Fatal(err)
	}

	page := person.Get(address)
	if said := page.Text(`[role="alert"]`); page.Status != http.StatusOK || !strings.Contains(said, "missing from the archive, although") || !page.Has(".callout.bad") {
		t.Errorf("status %d: %s", page.Status, said)
	}
	if original := page.TestID("original"); original != "" || page.TestID("sent") != sent || sent == "" {
		t.Errorf("as the original stands %q, as sent %q", short(original), short(page.TestID("sent")))
	}
	if row := page.Text(`[data-testid="turns"] [aria-current]`); !strings.Contains(row, "not in the archive") || page.Has("[data-check-hash]") {
		t.Errorf("the row says %q", row)
	}
}

// What is said with a key that keeps figures only makes no session; one that was begun
// before says that it is not gone on with.
func TestSessionOfAKeyThatKeepsFiguresOnlySaysSo(t *testing.T) {
	t.Parallel()
	product := webtest.Start(t)
	person := product.SignUp(t, "northbeam")
	secret := person.Connect(webtest.Provider(t, sessionWindow), "laptop")
	const body = `{"model":"claude-sonnet-4-5","max_tokens":100,"messages":[{"role":"user","content":"Hello"}]}`
	person.TalkOnce(secret, sessionWindow, "/v1/messages", body, claudeCode)
	overview := person.Newest()
	address := "/sessions/" + overview.ID.String()
	if page := person.Get(address); page.Has(`[data-testid="notice-unkept"]`) {
		t.Errorf("before, it says %q", page.TestID("notice-unkept"))
	}
	kept := tenants.APIKey{ID: overview.APIKey, Name: "laptop", Limits: tenants.Limits{NoStore: true}}
	if err := person.DB.APIKeys.ChangeAPIKey(t.Context(), person.Workspace.ID, kept); err != nil {
		t.Fatal(err)
	}
	product.Keys.Changed(person.Workspace.ID.String())
	person.TalkOnce(secret, sessionWindow, "/v1/messages", strings.Replace(body, "Hello", "Nobody keeps this", 1), claudeCode)

	if page := person.Get(address); !strings.Contains(page.TestID("notice-unkept"), "The key laptop keeps figures only") || !strings.Contains(page.TestID("notice-unkept"), "The messages below are from before.") {
		t.Errorf("the session says %q", page.TestID("notice-unkept"))
	}
	list := person.Get("/sessions?show=single")
	if list.Find(`[data-testid="sessions"] tbody tr`).Length() != 1 || !strings.Contains(list.TestID("notice-unkept"), "The key laptop keeps figures only") || strings.Contains(list.HTML, "Nobody keeps this") {
		t.Errorf("the list says %q", list.TestID("notice-unkept"))
	}
	if requests := person.Get("/requests"); requests.Find("table tbody tr").Length() < 2 || strings.Contains(requests.HTML, "Nobody keeps this") {
		t.Error("the requests are not both there as figures")
	}
	settings, err := person.DB.Data.DataSettings(t.Context(), person.Workspace.ID)
	settings.NoStore = true
	if err := errors.Join(err, person.DB.Data.SetDataSettings(t.Context(), person.Workspace.ID, settings)); err != nil {
		t.Fatal(err)
	}
	if said := person.Get("/sessions").TestID("notice-unkept"); !strings.HasPrefix(said, "This workspace keeps figures only") {
		t.Errorf("of the workspace the list says %q", said)
	}
}

func TestArchivedTextIsNeverMarkup(t *testing.T) {
	t.Parallel()
	product := webtest.Start(t)
	double := webtest.Provider(t, sessionWindow)
	person := product.SignUp(t, "northbeam")
	const hostile = `<script>alert(1)</script><img src=x onerror=alert(2)>`
	person.TalkOnce(person.Connect(double, hostile), sessionWindow, "/v1/messages",
		`{"model":"claude-sonnet-4-5","max_tokens":100,"messages":[{"role":"user","content":`+quoted(hostile)+`}]}`, hostile)

	for _, path := range []string{"/sessions", "/sessions/" + person.Newest().ID.String(), "/keys", "/overview?range=24h&by=key"} {
		page := person.Get(path)
		if page.Has("main script") || page.Has("img") || page.Has("[onerror]") {
			t.Errorf("%s runs what was archived", path)
		}
	}
	if page := person.Get("/sessions/" + person.Newest().ID.String()); !strings.Contains(page.TestID("original"), hostile) {
		t.Errorf("the text is %q", page.TestID("original"))
	}
}

// The session's page ends with what the model said last, in each format and once, until a
// client's next request brings it as a message.
func TestSessionEndsWithTheNewestAnswer(t *testing.T) {
	t.Parallel()
	product := webtest.Start(t)
	double := webtest.Provider(t, sessionWindow)
	person := product.SignUp(t, "northbeam")
	key := person.Connect(double, "laptop")
	body := `{"model":"claude-sonnet-4-5","max_tokens":100,"messages":[{"role":"user","content":"how many colors?"}]}`
	person.Exchange(key, sessionWindow, "/v1/messages", body)
	path := "/sessions/" + person.Newest().ID.String()
	if answer := person.Get(path).TestID("answer"); !strings.Contains(answer, "how many colors?") {
		t.Errorf("the page ends with %q", answer)
	}
	if page := person.Colleague(tenants.Viewer).Get(path); page.Has(`[data-testid="answer"]`) {
		t.Errorf("a viewer reads %q", page.TestID("answer"))
	}
	next := strings.Replace(body, `}]}`, `},{"role":"assistant","content":"three"},{"role":"user","content":"which?"}]}`, 1)
	person.Exchange(key, sessionWindow, "/v1/messages", next, providerdouble.MisbehaveHeader, providerdouble.MisbehaveOverloaded)
	if page := person.Get(path); page.Has(`[data-testid="answer"]`) {
		t.Errorf("of a request that failed: %q", page.TestID("answer"))
	}
	person.Exchange(key, sessionWindow, "/v1/messages", next)
	if answer := person.Get(path).TestID("answer"); !strings.Contains(answer, "which?") {
		t.Errorf("the page ends with %q", answer)
	}
}

func TestViewersSeeSizesAndNoTexts(t *testing.T) {
	t.Parallel()
	person, talk, overview := compressed(t)

	page := person.As(tenants.Viewer).Get("/sessions/" + overview.ID.String())
	if page.Has(`[data-testid="pane"]`) || page.Has(".pv") || !strings.Contains(page.Text("main"), "but no text") {
		t.Errorf("a viewer reads %q", short(page.Text("#read")))
	}
	if page.Find(`[data-testid="turns"] .lv`).Length() == 0 || talk.Steps() == 0 {
		t.Error("a viewer does not see the levels")
	}
}

// S3
func TestSessionsOfAnotherWorkspaceAreNotThere(t *testing.T) {
	t.Parallel()
	person, _, overview := compressed(t)
	stranger := person.SignUp(t, "stranger")

	for _, path := range []string{overview.ID.String(), "not-an-id", webtest.Nobody(), overview.ID.String() + "?m=0"} {
		if page := stranger.Get("/sessions/" + path); page.Status != http.StatusNotFound || page.TestID("problem") == "" {
			t.Errorf("%s: status %d", path, page.Status)
		}
	}
	if page := person.Get("/sessions/" + overview.ID.String() + "?lane=" + webtest.Nobody()); page.Status != http.StatusNotFound {
		t.Errorf("a lane that is not there: status %d", page.Status)
	}
}

// What a module has put into the prompt stands at its message, with the module's name;
// what an epoch has folded does not.
func TestInsertsAreShownAtTheirMessage(t *testing.T) {
	t.Parallel()
	person, talk, overview := compressed(t)
	lane, last := laneOf(t, person, overview.ID), len(talk.Messages(talk.Steps()-1))-1
	covered := projection(t, person, overview.ID).Covers
	seen := session.Update{
		Scope:   session.Scope{Workspace: person.Workspace.ID, APIKey: overview.APIKey, Format: overview.Format},
		Session: overview.ID, Lane: lane, At: time.Now(), Messages: session.Messages{Position: last + 1},
	}
	err := person.Sessions.Inject(t.Context(), seen, []session.Insert{
		{Number: 1, Message: last, Module: "rehydrator", Text: "[recovered] <b>the migration</b>", Tokens: 1234},
		{Number: 2, Message: session.InSystem, Module: "patterns", Text: "Use tabs.", Tokens: 3},
		{Number: 3, Message: covered - 1, Module: "compaction-bridge", Text: "folded away", Tokens: 5},
	})
	if err != nil {
		t.Fatal(err)
	}

	page := person.Get("/sessions/" + overview.ID.String() + "?m=" + itoa(last))
	put := page.TestID("insert")
	for _, want := range []string{"Recall of earlier turns", "added after the message, 1,23", "[recovered] <b>the migration</b>"} {
		if !strings.Contains(put, want) {
			t.Errorf("%q is not in %q", want, put)
		}
	}
	if sent := page.TestID("sent"); !strings.Contains(sent, "Unchanged, with an addition after it") || strings.Contains(sent, "Use tabs.") {
		t.Errorf("sent: %q", short(sent))
	}
	if row := page.Text(`[data-testid="turns"] [aria-current]`); !strings.Contains(row, "+ Recall of earlier turns") {
		t.Errorf("the row is %q", row)
	}
	first := person.Get("/sessions/" + overview.ID.String() + "?m=0").TestID("insert")
	if !strings.Contains(first, "Team rules added after the system prompt, ") || !strings.Contains(first, "Use tabs.") {
		t.Errorf("at the first message: %q", first)
	}
	if folded := person.Get("/sessions/" + overview.ID.String() + "?m=" + itoa(covered-1)); folded.Has(`[data-testid="insert"]`) && projection(t, person, overview.ID).Parts[len(projection(t, person, overview.ID).Parts)-1].Raw != nil {
		t.Error("an insert that an epoch has folded is shown")
	}
}

func laneOf(t testing.TB, person *webtest.Person, id uuid.UUID) uuid.UUID {
	t.Helper()
	detail, err := person.Sessions.Browser().Session(tenants.OwnWork(t.Context()), person.Workspace.ID, id)
	if err != nil {
		t.Fatal(err)
	}
	return detail.Lanes[0].ID
}
