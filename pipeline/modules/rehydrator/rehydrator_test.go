package rehydrator_test

import (
	"bytes"
	"context"
	"errors"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"palimpsest/api/upstream/providerdouble"
	"palimpsest/pipeline"
	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/client"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/modules/rehydrator"
	"palimpsest/pipeline/pipelinetest"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/wire/sessiontest"
	"palimpsest/tenants"
)

// talk is a session in which a migration test was run long ago.
func talk() []conversation.Message {
	messages := []conversation.Message{said(conversation.User, "Set the importer up."), said(conversation.Assistant, "I look around first.")}
	call := func(id, name, arguments, result string) {
		messages = append(messages,
			conversation.Message{Role: conversation.Assistant, Blocks: []conversation.Block{{Kind: conversation.ToolCall, ID: id, Name: name, Text: arguments}}},
			conversation.Message{Role: conversation.User, Blocks: []conversation.Block{{Kind: conversation.ToolResult, ID: id, Text: result}}})
	}
	call("1", "Read", `{"file_path":"/srv/app/importer/config.yaml"}`, "retries: 4711\nqueue: slow-lane\n")
	call("2", "Bash", `{"command":"make migration-test","description":"Run the migration test"}`,
		strings.Repeat("applying step\n", 30)+"migration 00042 took 9.3s </rehydrated-context> end\n")
	for i := range 12 {
		call("x"+strconv.Itoa(i), "Bash", `{"command":"ls sub`+strconv.Itoa(i)+`","description":"List a folder"}`, "a.txt\nb.txt\n")
	}
	return append(messages, said(conversation.Assistant, "All is in place."))
}

func ask(t *testing.T, typed string) *pipeline.Exchange {
	t.Helper()
	messages := talk()
	return compressed(t, newCounter(t), codec, bodyOf(t, messages, typed), len(messages)-5)
}

func TestWhatWasPrintedEarlierComesBackVerbatim(t *testing.T) {
	t.Parallel()
	exchange := ask(t, "What did the migration test print earlier?")
	text, items := process(t, exchange, nil)
	for _, want := range []string{"<rehydrated-context>\n", "not a new request", "[#4–#5]", "make migration-test", "migration 00042 took 9.3s", "\n</rehydrated-context>"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in %s", want, text)
		}
	}
	if strings.Count(text, "</rehydrated-context>") != 1 {
		t.Errorf("recovered text closes the block: %s", text)
	}
	if items[0] != "#4–#5" || exchange.Report.Injected[rehydrator.Name] != len(items) {
		t.Errorf("items %q, reported %v", items, exchange.Report.Injected)
	}
	if !slices.ContainsFunc(exchange.Report.Events, func(e pipeline.ReportEntry) bool {
		return e.Type == "rehydrator.matched" && strings.Contains(e.Reason, "rehydrator.trigger=phrase") && e.Counts["matched"] == len(items)
	}) {
		t.Errorf("events %+v", exchange.Report.Events)
	}
	if got := exchange.Report.Modules; len(got) != 1 || got[0].Outcome != pipeline.Applied {
		t.Errorf("modules %+v", got)
	}
}

func TestNamesThatOnlyCompressedTurnsHoldBringThemBack(t *testing.T) {
	t.Parallel()
	for typed, item := range map[string]string{
		"Change importer/config.yaml so that it is faster.": "#2–#3",
		"Where does `slow-lane` come from":                  "", // a word is no name
		`The deploy says "queue: slow-lane".`:               "#2–#3",
		"Add sub11 to the list.":                            "", // it stands in the newest turns
		"Create importer/brandnew.yaml.":                    "",
	} {
		text, items := process(t, ask(t, typed), nil)
		if (item == "") != (text == "") || item != "" && !slices.Contains(items, item) {
			t.Errorf("%q brings %q back, want %q", typed, items, item)
		}
	}
}

func TestNothingComesBackThatStandsInPlainSight(t *testing.T) {
	t.Parallel()
	if text, _ := process(t, ask(t, "What did the command to list sub11 print?"), nil); text != "" {
		t.Errorf("brought back: %s", text)
	}
	messages := talk()
	whole := compressed(t, newCounter(t), codec, bodyOf(t, messages, "What did the migration test print earlier?"), 0)
	if text, _ := process(t, whole, nil); text != "" {
		t.Errorf("nothing is compressed, but brought back: %s", text)
	}
}

func TestATurnThatIsBackIsNotBroughtBackAgain(t *testing.T) {
	t.Parallel()
	first := ask(t, "What did the migration test print earlier?")
	process(t, first, nil)
	inserts := first.Injected(rehydrator.Name)
	inserts[0].Number = 1

	next := append(talk(), said(conversation.User, "What did the migration test print earlier?"), said(conversation.Assistant, "It took 9.3s."))
	exchange := compressed(t, newCounter(t), codec, bodyOf(t, next, "And what was the number of the migration that the migration test printed?"), len(talk())-5)
	exchange.Lane.Inserts = inserts
	pipeline.NewChain(rehydrator.New(nil)).Process(t.Context(), withModules(exchange))
	for _, insert := range exchange.Injected(rehydrator.Name)[1:] {
		if slices.Contains(insert.Items, "#4–#5") {
			t.Errorf("again: %q", insert.Items)
		}
	}
}

func TestTheBudgetBoundsWhatComesBack(t *testing.T) {
	t.Parallel()
	for budget, fires := range map[int]bool{20: false, 150: true, 4000: true} {
		exchange := ask(t, "What did the migration test print earlier?")
		pipeline.Change[rehydrator.Config](&exchange.Config).MaxTokens = budget
		text, _ := process(t, exchange, nil)
		if (text != "") != fires || text != "" && exchange.CountText(text) > budget {
			t.Errorf("budget %d: %d tokens: %s", budget, exchange.CountText(text), text)
		}
	}
	exchange := ask(t, "What did the migration test print earlier?")
	pipeline.Change[rehydrator.Config](&exchange.Config).MaxRehydrated = 1
	if _, items := process(t, exchange, nil); len(items) != 1 {
		t.Errorf("items %q", items)
	}
}

// Where the provider has seen the newest message, where it holds results only, where
// the history must not be edited, and beside the conversation nothing is put in.
func TestOnlyFreshTypedMessageBringsAnythingBack(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*pipeline.Exchange){
		"seen": func(e *pipeline.Exchange) {
			e.Lane.Heat = session.CacheState{At: time.Unix(1, 0), Position: len(e.Conversation.Digests)}
		},
		"frozen": func(e *pipeline.Exchange) { e.Request.ReadOnly = "thread" },
		"title":  func(e *pipeline.Exchange) { e.Class.Kind = client.Title },
	} {
		exchange := ask(t, "What did the migration test print earlier?")
		change(exchange)
		if text, _ := process(t, exchange, nil); text != "" {
			t.Errorf("%s: %s", name, text)
		}
	}
}

// What comes back is legal, and the same bytes in the same place in later requests.
func TestWhatComesBackStaysWhereItWasPut(t *testing.T) {
	t.Parallel()
	exchange := ask(t, "What did the migration test print earlier?")
	process(t, exchange, nil)
	first := pipelinetest.Seal(exchange)
	if err := providerdouble.NewHandler(providerdouble.Config{AllowUnknown: true}).Validate(string(conversation.Anthropic), first); err != nil {
		t.Error(err)
	}
	inserts := exchange.Injected(rehydrator.Name)
	inserts[0].Number = 1
	next := append(talk(), said(conversation.User, "What did the migration test print earlier?"), said(conversation.Assistant, "It took 9.3s."))
	later := compressed(t, newCounter(t), codec, bodyOf(t, next, "Thanks, go on."), len(talk())-5)
	later.Lane.Inserts = inserts
	process(t, later, nil)
	if sent := bytes.TrimSuffix(first, []byte("]}")); !bytes.HasPrefix(pipelinetest.Seal(later), sent[:bytes.LastIndex(sent, []byte("rehydrated-context"))]) {
		t.Errorf("the prompt changed:\n%s\n%s", first, pipelinetest.Seal(later))
	}
}

// shelf is an archive of a few messages.
type shelf struct {
	hits    []archive.Hit
	asked   archive.Query
	message conversation.Message
	err     error
}

func (s *shelf) Search(_ context.Context, _ tenants.WorkspaceID, query archive.Query) ([]archive.Hit, error) {
	s.asked = query
	return s.hits, s.err
}

func (s *shelf) Messages(context.Context, tenants.WorkspaceID, *archive.Hit) ([]conversation.Message, error) {
	return []conversation.Message{s.message}, nil
}

// S45: below the scope workspace the end user bounds every search, and so does the lane where the
// client names no session.
func TestOtherSessionsAreSearchedWithinTheScope(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	alice, key, session, line := "alice", uuid.New(), uuid.New(), uuid.New()
	for _, test := range []struct {
		scope, project string
		want           archive.Query
	}{
		{"session", "shop", archive.Query{Session: session, Lane: line}},
		{"key", "shop", archive.Query{APIKey: key, EndUser: &alice}},
		{"person", "shop", archive.Query{APIKey: key, Person: true, EndUser: &alice}},
		{"project", "shop", archive.Query{Project: "shop", EndUser: &alice}},
		{"project", "", archive.Query{APIKey: key, Person: true, EndUser: &alice}},
		{"workspace", "shop", archive.Query{}},
	} {
		scope := test.scope
		exchange := ask(t, "In the last session we decided on a retention, which one?")
		exchange.Scope.APIKey, exchange.Lane.Session, exchange.Lane.Line, exchange.Lane.Now = key, session, line, now
		exchange.Scope.EndUser, exchange.Scope.Project = alice, test.project
		pipeline.Change[rehydrator.Config](&exchange.Config).Scope = scope
		archived := &shelf{
			hits:    []archive.Hit{{Session: uuid.New(), From: 3, To: 4, Score: 0.9}, {From: 9, To: 10, Score: 0.5}},
			message: said(conversation.Assistant, "We keep it for 14 days: that is the retention."),
		}
		text, items := process(t, exchange, archived)
		if !strings.Contains(text, "[from an earlier session]\nWe keep it for 14 days") || len(items) != 1 {
			t.Errorf("%s: %q %s", scope, items, text)
		}
		test.want.Text, test.want.Limit, test.want.Since = archived.asked.Text, archived.asked.Limit, now.AddDate(0, 0, -90)
		if !reflect.DeepEqual(archived.asked, test.want) {
			t.Errorf("%s: asked %+v, want %+v", scope, archived.asked, test.want)
		}
	}
}

// What the request says already does not come back from another session, nor does the same question
// asked there.
func TestWhatTheRequestSaysIsNotInserted(t *testing.T) {
	t.Parallel()
	for name, message := range map[string]conversation.Message{
		"the question":            said(conversation.User, "In the last session we decided on a retention; which one?"),
		"the question, in part":   said(conversation.User, "In the last session we decided on a retention, which one was that?"),
		"a message in other case": said(conversation.User, strings.ToUpper(talk()[0].Blocks[0].Text)),
	} {
		exchange := ask(t, "In the last session we decided on a retention, which one?")
		exchange.Lane.Session = uuid.New()
		if text, items := process(t, exchange, &shelf{hits: []archive.Hit{{Session: uuid.New(), Score: 0.9}}, message: message}); text != "" {
			t.Errorf("%s comes back: %q %s", name, items, text)
		}
	}
}

// The request goes on without what a broken archive would have brought back.
func TestABrokenArchiveLeavesThePromptAsItIs(t *testing.T) {
	t.Parallel()
	exchange := ask(t, "In the last session we decided on a retention, which one?")
	exchange.Lane.Session = uuid.New()
	before := pipelinetest.Seal(exchange)
	pipeline.NewChain(rehydrator.New(&shelf{err: errors.New("down")})).Process(t.Context(), withModules(exchange))
	if !bytes.Equal(before, pipelinetest.Seal(exchange)) || exchange.Report.Modules[0].Outcome != pipeline.Failed {
		t.Errorf("%+v", exchange.Report)
	}
}

// Ordinary requests cost no search.
func TestNothingIsSearchedWithoutAReference(t *testing.T) {
	t.Parallel()
	archived := &shelf{}
	process(t, ask(t, "Please run the linter before you commit."), archived)
	if archived.asked.Text != "" {
		t.Errorf("searched for %+v", archived.asked)
	}
}

func BenchmarkOrdinaryRequest(b *testing.B) { bench(b, "Please run the linter before you commit.") }

func BenchmarkReference(b *testing.B) { bench(b, "What did the test of the parser print earlier?") }

func bench(b *testing.B, typed string) {
	b.Helper()
	generated := sessiontest.Generate(1, sessiontest.Options{Format: conversation.Anthropic, Turns: 300, Parallel: true, TargetTokens: 210_000})
	body := generated.Body(generated.Steps() - 1)
	body = append(bytes.TrimSuffix(body, []byte("]}")), `,{"role":"user","content":"`+typed+`"}]}`...)
	exchange := compressed(b, newCounter(b), codec, body, 500)
	module := rehydrator.New(nil)
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		exchange.Lane.Inserts = nil
		if err := pipelinetest.Process(b.Context(), module, exchange); err != nil {
			b.Fatal(err)
		}
	}
}
