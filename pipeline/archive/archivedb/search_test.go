package archivedb_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/archive/archivedb"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/wire/anthropic"
)

func parse(_ conversation.Format, raw []byte) (conversation.Message, error) {
	return anthropic.New().Parse(raw)
}

func (f *fixture) index() *archivedb.Index {
	return archivedb.NewIndex(f.archive, parse)
}

// indexed indexes everything that waits.
func (f *fixture) indexed(t testing.TB) *archivedb.Index {
	t.Helper()
	index := f.index()
	if _, err := index.IndexPending(t.Context(), 1000); err != nil {
		t.Fatal(err)
	}
	return index
}

func (f *fixture) search(t testing.TB, index *archivedb.Index, query archive.Query) []archive.Hit {
	t.Helper()
	hits, err := index.Search(t.Context(), f.workspace, query)
	if err != nil {
		t.Fatal(err)
	}
	return hits
}

// say, call and result are messages as a client sends them.
func say(role, text string) []byte {
	raw, _ := json.Marshal(map[string]any{"role": role, "content": text})
	return raw
}

func call(id, tool string, arguments map[string]any) []byte {
	raw, _ := json.Marshal(map[string]any{"role": "assistant", "content": []any{
		map[string]any{"type": "tool_use", "id": id, "name": tool, "input": arguments},
	}})
	return raw
}

func result(id, text string) []byte {
	raw, _ := json.Marshal(map[string]any{"role": "user", "content": []any{
		map[string]any{"type": "tool_result", "tool_use_id": id, "content": text},
	}})
	return raw
}

// talk is a lane about a small proxy.
func talk() [][]byte {
	return [][]byte{
		say("user", "The session times out after five minutes, find out why."),
		call("a", "Read", map[string]any{"file_path": "/src/internal/proxy/handler.go"}),
		result("a", "package proxy\n\nfunc (h *Handler) ServeHTTP() {\n\tretryBudget := 3\n}"),
		call("b", "Bash", map[string]any{"command": "go test ./internal/...", "description": "Run the migration tests"}),
		result("b", "--- FAIL: TestMigration\n    migrate_test.go:12: SQLSTATE 23505 duplicate key\nFAIL"),
		say("assistant", "The migration inserts a row twice."),
		say("user", "Good, commit it."),
	}
}

func span(hits []archive.Hit) string {
	var spans []string
	for _, hit := range hits {
		spans = append(spans, fmt.Sprintf("%d-%d", hit.From, hit.To))
	}
	return strings.Join(spans, " ")
}

func TestACallIsFoundWithItsResultByTheWordsOfEither(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.put(t, entries(talk()...)...)
	index := f.indexed(t)
	for query, want := range map[string]string{
		"handler.go": "1-3", "internal/proxy/handler.go": "1-3", "retry_budget": "1-3", "retryBudget": "1-3", "budget": "1-3",
		"what did the migration test print earlier?": "3-5", "23505": "3-5", "duplicate key": "3-5",
		"Earlier you ran a command to: Run the migration tests. What exactly did it print?": "3-5",
		"timing out": "0-1", "nothing of this kind": "",
	} {
		got := span(f.search(t, index, archive.Query{Text: query, Limit: 1}))
		if got != want {
			t.Errorf("%q finds %q, want %q", query, got, want)
		}
	}
	hit := f.search(t, index, archive.Query{Text: "duplicate key", Limit: 1})[0]
	if hit.Session != f.session || hit.Lane != f.lane || !slices.Equal(hit.Tools, []string{"Bash"}) ||
		!strings.Contains(hit.Snippet, "SQLSTATE 23505") || hit.Score < 0.9 || hit.Score > 1 || time.Since(hit.At) > time.Hour {
		t.Errorf("hit: %+v", hit)
	}
}

// What was indexed before the rule that recalls are not found is not found either, and takes
// no other hit's place.
func TestRecallsThatAnOlderIndexHasAreNotFound(t *testing.T) {
	t.Parallel()
	f := setup(t)
	recall := func(id, tool string) [][]byte {
		return [][]byte{
			call(id, tool, map[string]any{"query": "duplicate key SQLSTATE 23505"}), result(id, "1. #3-#4\nSQLSTATE 23505 duplicate key"),
		}
	}
	messages := slices.Concat(talk(), recall("r1", "mcp__palimpsest__recall_search"), recall("r2", "recall_get"))
	both, _ := json.Marshal(map[string]any{"role": "assistant", "content": []any{
		map[string]any{"type": "tool_use", "id": "r3", "name": "recall_search", "input": map[string]any{"query": "duplicate key"}},
		map[string]any{"type": "tool_use", "id": "b1", "name": "Bash", "input": map[string]any{"command": "psql -c 'drop index duplicate'"}},
	}})
	answers, _ := json.Marshal(map[string]any{"role": "user", "content": []any{
		map[string]any{"type": "tool_result", "tool_use_id": "r3", "content": "SQLSTATE 23505 duplicate key, as recalled"},
		map[string]any{"type": "tool_result", "tool_use_id": "b1", "content": "DROP INDEX duplicate"},
	}})
	f.put(t, entries(append(messages, both, answers)...)...)
	older := archivedb.NewIndex(f.archive, func(format conversation.Format, raw []byte) (conversation.Message, error) {
		return parse(format, bytes.ReplaceAll(raw, []byte("recall_"), []byte("reread_")))
	})
	if _, err := older.IndexPending(t.Context(), 10); err != nil {
		t.Fatal(err)
	}
	query := archive.Query{Text: "duplicate key SQLSTATE 23505"}
	if got := span(f.search(t, older, query)); !strings.Contains(got, "7-9") || !strings.Contains(got, "9-11") {
		t.Fatalf("the older index does not find recalls: %s", got)
	}

	hits := f.search(t, f.index(), query)
	if got := span(hits); got != "3-5 11-13" && got != "11-13 3-5" {
		t.Errorf("found %s, want the test and the other call", got)
	}
	for _, hit := range hits {
		if strings.Contains(hit.Snippet, "recalled") || slices.ContainsFunc(hit.Tools, func(tool string) bool { return tool != "Bash" }) {
			t.Errorf("hit of %v: %s", hit.Tools, hit.Snippet)
		}
	}
	query.Limit = 2
	if got := f.search(t, f.index(), query); len(got) != 2 {
		t.Errorf("%d hits, want 2: recalls take places", len(got))
	}
}

func TestFiltersNarrowASearch(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.put(t, entries(talk()...)...)
	index := f.indexed(t)
	var key uuid.UUID
	f.in(t, func(tx *gorm.DB) error { return tx.Raw("SELECT api_key_id FROM sessions").Row().Scan(&key) })
	f.in(t, func(tx *gorm.DB) error {
		return tx.Exec("UPDATE sessions SET end_user = 'alice', project = 'shop'").Error
	})
	member, mine, taken, others := uuid.New(), uuid.New(), uuid.New(), uuid.New()
	for _, of := range []struct{ key, creator, person any }{{key, member, nil}, {mine, member, nil}, {taken, uuid.New(), member}, {others, member, uuid.New()}} {
		f.in(t, func(tx *gorm.DB) error {
			return tx.Exec("INSERT INTO api_keys (workspace_id, id, name, prefix, suffix, hash, scopes, created_by, person_id) SELECT workspace_id, ?, '', '', '', sha256(?::text::bytea), 'proxy', ?, ? FROM sessions",
				of.key, fmt.Sprint(of.key), of.creator, of.person).Error
		})
	}
	alice, nobody := "alice", ""
	for name, c := range map[string]struct {
		query archive.Query
		want  bool
	}{
		"its session":         {archive.Query{Session: f.session}, true},
		"another session":     {archive.Query{Session: uuid.New()}, false},
		"its lane":            {archive.Query{Lane: f.lane}, true},
		"another lane":        {archive.Query{Lane: uuid.New()}, false},
		"its lane, before":    {archive.Query{Lane: f.lane, Before: 4}, false},
		"its lane, behind":    {archive.Query{Lane: f.lane, Before: 5}, true},
		"its key":             {archive.Query{APIKey: key}, true},
		"another key":         {archive.Query{APIKey: uuid.New()}, false},
		"its key and session": {archive.Query{APIKey: key, Session: f.session}, true},
		"a key of its person": {archive.Query{APIKey: mine, Person: true}, true},
		"one that was taken":  {archive.Query{APIKey: taken, Person: true}, true},
		"one given away":      {archive.Query{APIKey: others, Person: true}, false},
		"its person alone":    {archive.Query{APIKey: mine}, false},
		"its end user":        {archive.Query{EndUser: &alice}, true},
		"no end user":         {archive.Query{EndUser: &nobody}, false},
		"its project":         {archive.Query{Project: "shop", EndUser: &alice}, true},
		"its project, nobody": {archive.Query{Project: "shop", EndUser: &nobody}, false},
		"another project":     {archive.Query{Project: "bank"}, false},
		"its tool":            {archive.Query{Tool: "bash"}, true},
		"another tool":        {archive.Query{Tool: "Read"}, false},
		"another path":        {archive.Query{Path: "handler.go"}, false},
		"since":               {archive.Query{Since: time.Now().Add(-time.Hour)}, true},
		"since later":         {archive.Query{Since: time.Now().Add(time.Hour)}, false},
		"until":               {archive.Query{Until: time.Now().Add(-time.Hour)}, false},
	} {
		c.query.Text = "SQLSTATE 23505"
		hits := f.search(t, index, c.query)
		if got := span(hits) == "3-5"; got != c.want {
			t.Errorf("%s: %s", name, span(hits))
		}
	}
	if got := span(f.search(t, index, archive.Query{Path: "proxy/handler.go"})); got != "1-3" {
		t.Errorf("a path alone finds %q", got)
	}
}

// Files of the same words differ in which of their numbers stand side by side.
func TestAnExactPhraseComesBeforeTheSameWords(t *testing.T) {
	t.Parallel()
	f := setup(t)
	var raw [][]byte
	numbers := []int{2, 7, 12, 40}
	for _, part := range numbers {
		id, text := fmt.Sprintf("c%d", part), &strings.Builder{}
		for line := 1; line <= 45; line++ {
			fmt.Fprintf(text, "Part %d, line %d: the copper weighs %d grams.\n", part, line, line*part*17%9973)
		}
		raw = append(raw, call(id, "Bash", map[string]any{"command": "cat next"}), result(id, text.String()))
	}
	f.put(t, entries(raw...)...)
	index := f.indexed(t)
	for query, part := range map[string]int{"Part 2, line 40": 2, "What does part 40, line 2 say?": 40, `where is "Part 7, line 12:" now`: 7} {
		for _, limit := range []int{1, 8} {
			hits := f.search(t, index, archive.Query{Text: query, Limit: limit})
			at := 2 * slices.Index(numbers, part)
			if want := fmt.Sprintf("%d-%d", at, at+2); span(hits[:1]) != want || !hits[0].Quoted {
				t.Errorf("%q, %d hits: %s, want %s first", query, limit, span(hits), want)
			}
		}
	}
}
