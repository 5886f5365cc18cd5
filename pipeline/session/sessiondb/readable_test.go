package sessiondb_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/klauspost/compress/zstd"

	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/archive/archivedb"
	"palimpsest/pipeline/modules/patterns"
	"palimpsest/pipeline/modules/patterns/patternsdb"
	"palimpsest/pipeline/modules/semanticcache"
	"palimpsest/pipeline/modules/semanticcache/semanticcachedb"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/session/sessiondb"
	"palimpsest/tenants/datakeys"
	"palimpsest/tenants/vault"
)

// canary begins every text that the test has someone write.
const canary = "kanarienvogel"

// newKeys returns the data keys as a process has them that has just started.
func (f *fixture) newKeys(t *testing.T) *archive.Keys {
	t.Helper()
	safe, err := vault.New([][]byte{bytes.Repeat([]byte("m"), 32)})
	if err != nil {
		t.Fatal(err)
	}
	return archive.NewKeys(datakeys.New(f.db.DB.DataKeys, safe))
}

// writeCanaries has every table that keeps something of a conversation keep a canary.
func (f *fixture) writeCanaries(t *testing.T, store *sessiondb.Store) *client {
	t.Helper()
	ctx, workspace := t.Context(), f.scope.Workspace
	f.store = store
	c := f.newClient()
	// As long as text that is worth compressing.
	c.say(canary+" typed "+strings.Repeat("and more ", 50), canary+" said", canary+" returned by a tool", canary+" typed again")
	c.recordExchange(t, canary+" answered")
	projection := c.projection(1, 3)
	projection.Parts[1].Raw = json.RawMessage(`{"role":"user","content":"` + canary + ` compressed"}`)
	c.commit(t, projection)
	c.plan(t, store, projection)
	insert := c.insert(1, 3, canary+" recovered")
	insert.Items = []string{canary + ".go"}
	attempt := session.SummaryAttempt{
		Session: c.session, Lane: c.lane, Form: "own", Model: "m", At: time.Now(),
		Summary: session.Summary{Covers: 3, Chain: c.chain[3], Text: canary + " summarized"},
	}
	learned := patterns.Pattern{
		Kind: patterns.Directive, Text: canary + " learned", CreatedBy: uuid.New(),
		When: patterns.When{Terms: []string{canary}, Paths: []string{canary + ".go"}, Signatures: []string{canary}},
	}
	_, addErr := patternsdb.New(f.runner).Add(ctx, workspace, learned, time.Now())
	for what, err := range map[string]error{
		"insert":  store.Inject(ctx, c.update(), []session.Insert{insert}),
		"summary": store.SaveSummary(ctx, workspace, attempt),
		"order":   store.Browser().Ask(ctx, workspace, c.lane, session.Order{At: time.Now(), By: uuid.New(), Instructions: canary + " ordered"}),
		"pattern": addErr,
	} {
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	return c
}

// keepAnswer keeps an answer with a canary.
func (f *fixture) keepAnswer(t *testing.T, keys *archive.Keys) semanticcache.Key {
	t.Helper()
	entry := semanticcache.Entry{
		Key: semanticcache.Key{1}, Answer: []byte(canary + " kept"),
		ContentType: "application/json", Model: "m", At: time.Now(),
	}
	if err := semanticcachedb.New(f.runner, keys).Put(t.Context(), f.scope.Workspace, entry, entry.At.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	return entry.Key
}

// readable returns the columns of all tables, as table.column, in which a canary can
// be read, be it compressed.
func (f *fixture) readable(t *testing.T) []string {
	t.Helper()
	rows, err := f.db.Owner(t).Query(t.Context(), `SELECT n.nspname || '.' || c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast') AND c.relkind IN ('r', 'p', 'm')`)
	if err != nil {
		t.Fatal(err)
	}
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(tables) < 25 {
		t.Fatalf("tables %v, %v: the test does not see the schema", tables, err)
	}
	found := map[string]bool{}
	for _, table := range tables {
		rows, err := f.db.Owner(t).Query(t.Context(), "SELECT row_to_json(r)::text FROM "+table+" r")
		if err != nil {
			t.Fatal(err)
		}
		dumped, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range dumped {
			var columns map[string]json.RawMessage
			if err := json.Unmarshal([]byte(row), &columns); err != nil {
				t.Fatal(err)
			}
			for column, value := range columns {
				if says(t, value) {
					found[strings.TrimPrefix(table, "public.")+"."+column] = true
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// says reports whether a canary can be read in a value of a row.
func says(t *testing.T, value json.RawMessage) bool {
	t.Helper()
	if bytes.Contains(value, []byte(canary)) {
		return true
	}
	var text string
	if json.Unmarshal(value, &text) != nil || !strings.HasPrefix(text, `\x`) {
		return false
	}
	raw, err := hex.DecodeString(text[2:])
	if err != nil {
		return false
	}
	decoder, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer decoder.Close()
	if at := bytes.Index(raw, []byte{0x28, 0xb5, 0x2f, 0xfd}); at >= 0 {
		if plain, err := decoder.DecodeAll(raw[at:], nil); err == nil {
			raw = append(raw, plain...)
		}
	}
	return bytes.Contains(raw, []byte(canary))
}

// notSealed are the columns that docs/decisions.md names under "What is not sealed".
func notSealed() []string {
	return []string{
		"lanes.asked_instructions",
		"patterns.paths", "patterns.signatures", "patterns.terms", "patterns.text", "patterns.words",
		"session_words.word", "sessions.title",
	}
}

// S31: without the row of its data key nothing that anybody wrote in a workspace can
// be read from a dump of the database, but for what is documented.
func TestWithoutItsDataKeyNothingOfAWorkspaceCanBeRead(t *testing.T) {
	t.Parallel()
	f := setup(t)
	keys := f.newKeys(t)
	c := f.writeCanaries(t, sessiondb.New(f.runner, keys).WithJobs(idleQueue{}))
	f.retitle(t)
	question := f.keepAnswer(t, keys)
	restarted := sessiondb.New(f.runner, f.newKeys(t))
	workspace := f.scope.Workspace
	if found, err := restarted.Find(t.Context(), workspace, c.chain[1:]); err != nil ||
		len(found.Projections) != 1 || len(found.Inserts) != 1 || len(found.Summaries) != 1 {
		t.Fatalf("with the key found %+v, %v", found, err)
	}
	if kept, found, err := semanticcachedb.New(f.runner, f.newKeys(t)).Find(t.Context(), workspace, question, time.Time{}); err != nil || !found {
		t.Fatalf("with the key found %+v, %v", kept, err)
	}

	tag, err := f.db.Owner(t).Exec(t.Context(), "DELETE FROM data_keys WHERE workspace_id = $1", workspace)
	if err != nil || tag.RowsAffected() != 1 {
		t.Fatalf("%s, %v", tag, err)
	}
	if got := f.readable(t); !slices.Equal(got, notSealed()) {
		t.Errorf("readable are\n%v, want only\n%v", got, notSealed())
	}
	// Nor is it by the program itself, which makes a new key.
	restarted = sessiondb.New(f.runner, f.newKeys(t))
	if found, err := restarted.Find(t.Context(), workspace, c.chain[1:]); err == nil {
		t.Errorf("found %+v", found)
	}
	if inserts, err := restarted.Browser().Inserts(t.Context(), workspace, c.lane); err == nil {
		t.Errorf("read inserts %+v", inserts)
	}
	if summaries, err := restarted.Summaries(t.Context(), workspace, c.lane); err == nil {
		t.Errorf("read summaries %+v", summaries)
	}
	if entries, err := archivedb.New(f.runner, f.newKeys(t)).Originals(t.Context(), workspace, c.lane, 0, 1); err == nil {
		t.Errorf("read originals %+v", entries)
	}
	if kept, found, err := semanticcachedb.New(f.runner, f.newKeys(t)).Find(t.Context(), workspace, question, time.Time{}); err != nil || found {
		t.Errorf("answers %+v, %v; want a miss", kept, err)
	}
}

// The test above sees what lies open: text, bytes, and compressed bytes.
func TestWhatLiesOpenIsFound(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.writeCanaries(t, sessiondb.New(f.runner, f.newKeys(t)).WithJobs(idleQueue{}))
	f.retitle(t)
	encoder, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	for column, value := range map[string]any{
		"lane_inserts SET text": canary, "archive_objects SET bytes": []byte(canary),
		"epochs SET projection": encoder.EncodeAll([]byte(strings.Repeat(canary, 50)), nil),
	} {
		if _, err := f.db.Owner(t).Exec(t.Context(), "UPDATE "+column+" = $1", value); err != nil {
			t.Fatal(err)
		}
	}
	open := append(notSealed(), "archive_objects.bytes", "epochs.projection", "lane_inserts.text")
	slices.Sort(open)
	if got := f.readable(t); !slices.Equal(got, open) {
		t.Errorf("readable are\n%v, want\n%v", got, open)
	}
}

// S31: of a deleted workspace no row of any table is left.
func TestDeletedWorkspaceLeavesNoRows(t *testing.T) {
	t.Parallel()
	f := setup(t)
	keys := f.newKeys(t)
	f.writeCanaries(t, sessiondb.New(f.runner, keys).WithJobs(idleQueue{}))
	f.keepAnswer(t, keys)
	owner := f.db.Owner(t)
	tables := columnsOf(t, f, "workspace_id")
	if len(tables) < 20 {
		t.Fatalf("%v: the test does not see the schema", tables)
	}
	for _, table := range []string{"sessions", "workspaces"} { // entries refuse that messages go before them
		if _, err := owner.Exec(t.Context(), "DELETE FROM "+table+" WHERE workspace_id = $1", f.scope.Workspace); err != nil {
			t.Fatal(err)
		}
	}
	for _, table := range tables {
		var left int
		err := owner.QueryRow(t.Context(), "SELECT count(*) FROM "+table+" WHERE workspace_id = $1", f.scope.Workspace).Scan(&left)
		if err != nil || left != 0 {
			t.Errorf("%s has %d rows, %v", table, left, err)
		}
	}
}

// columnsOf returns the tables that have a column.
func columnsOf(t *testing.T, f *fixture, column string) []string {
	t.Helper()
	rows, err := f.db.Owner(t).Query(t.Context(), `SELECT table_schema || '.' || table_name FROM information_schema.columns
		WHERE column_name = $1 AND table_schema NOT IN ('pg_catalog', 'information_schema')`, column)
	if err != nil {
		t.Fatal(err)
	}
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return tables
}

// retitle gives the sessions a title that holds a canary.
func (f *fixture) retitle(t *testing.T) {
	t.Helper()
	_, err := f.db.Owner(t).Exec(t.Context(), "UPDATE sessions SET title = $1", canary+" typed")
	if err != nil {
		t.Fatal(err)
	}
}
