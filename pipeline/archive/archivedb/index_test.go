package archivedb_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"palimpsest/migrations/dbtest"
	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/archive/archivedb"
	"palimpsest/pipeline/archive/archivetest"
	"palimpsest/pipeline/archive/search"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/wire/anthropic"
	"palimpsest/tenants"
)

// at places messages in a lane from an index on.
func at(first int, messages ...[]byte) []archive.Entry {
	list := make([]archive.Entry, len(messages))
	for i, raw := range messages {
		list[i] = entry(first+i, raw)
	}
	return list
}

// S28
func TestIndexingTwiceChangesNothing(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.put(t, entries(talk()...)...)
	index := f.indexed(t)
	before := f.count(t, "archive_documents")
	if before != 5 || f.count(t, "archive_unindexed") != 0 {
		t.Fatalf("%d documents, %d lanes wait", before, f.count(t, "archive_unindexed"))
	}
	if done, err := index.Index(t.Context(), f.workspace, f.lane); err != nil || done != 0 {
		t.Errorf("indexed again: %d messages (%v)", done, err)
	}
	f.put(t, entries(talk()...)...) // the same messages, sent again
	if done, err := index.IndexPending(t.Context(), 10); err != nil || done != 0 {
		t.Errorf("sent again: %d messages (%v)", done, err)
	}
}

func TestACallWaitsForItsResult(t *testing.T) {
	t.Parallel()
	f := setup(t)
	messages := talk()
	f.put(t, at(0, messages[:4]...)...)
	index := f.indexed(t)
	if got := span(f.search(t, index, archive.Query{Text: "migration tests"})); got != "" {
		t.Errorf("the call without its result is found: %s", got)
	}
	f.put(t, at(4, messages[4:]...)...)
	if done, err := index.IndexPending(t.Context(), 10); err != nil || done != 4 {
		t.Errorf("%d messages (%v), want the waiting call and three more", done, err)
	}
	if got := span(f.search(t, index, archive.Query{Text: "migration tests", Tool: "Bash"})); got != "3-5" {
		t.Errorf("%s, want the pair", got)
	}
}

// A session's next turn is read alone, unless it answers a call of before.
func TestOnlyWhatIsNewIsReadToIndexIt(t *testing.T) {
	t.Parallel()
	f := setup(t)
	read := 0
	index := archivedb.NewIndex(f.archive, func(format conversation.Format, raw []byte) (conversation.Message, error) {
		read++
		return parse(format, raw)
	})
	next := func(first int, messages ...[]byte) int {
		t.Helper()
		read = 0
		f.put(t, at(first, messages...)...)
		if _, err := index.IndexPending(t.Context(), 10); err != nil {
			t.Fatal(err)
		}
		return read
	}
	next(0, talk()...)
	if got := next(7, call("c7", "Bash", map[string]any{"command": "make part7"}), result("c7", "outcome7")); got != 2 {
		t.Errorf("%d messages are read to index a call and its result", got)
	}
	next(9, call("c9", "Bash", map[string]any{"command": "make part9"}), say("user", "Something else."))
	if got := next(11, result("c9", "outcome9")); got != 1+12 {
		t.Errorf("%d messages are read to index a result that came late", got)
	}
	if got := span(f.search(t, index, archive.Query{Text: "outcome9", Limit: 1})); got != "9-12" {
		t.Errorf("the late result is found at %q, want it with its call", got)
	}
}

// A worker that was stopped anywhere leaves the rest to the next one.
func TestAnotherWorkerGoesOnWhereOneStopped(t *testing.T) {
	t.Parallel()
	f := setup(t)
	var messages [][]byte
	for i := range 450 { // more than two batches
		id := fmt.Sprintf("c%d", i)
		messages = append(messages, call(id, "Bash", map[string]any{"command": fmt.Sprintf("make part%d", i)}), result(id, fmt.Sprintf("outcome%d", i)))
	}
	f.put(t, entries(messages...)...)
	ctx, stop := context.WithCancel(t.Context())
	parsed := 0
	stopping := archivedb.NewIndex(f.archive, func(format conversation.Format, raw []byte) (conversation.Message, error) {
		if parsed++; parsed == 500 {
			stop()
		}
		return parse(format, raw)
	})
	if done, err := stopping.IndexPending(ctx, 10); !errors.Is(err, context.Canceled) || done != 400 {
		t.Fatalf("%d messages, %v; want two batches and the stop", done, err)
	}
	if stored := f.count(t, "archive_documents"); stored != 200 || f.count(t, "archive_unindexed") != 1 {
		t.Fatalf("%d documents, %d lanes wait", stored, f.count(t, "archive_unindexed"))
	}
	index := f.indexed(t)
	if got := f.count(t, "archive_documents"); got != 450 || f.count(t, "archive_unindexed") != 0 {
		t.Errorf("%d documents, want 450", got)
	}
	for _, i := range []int{0, 99, 100, 101, 250, 449} {
		hits := f.search(t, index, archive.Query{Text: fmt.Sprintf("outcome%d", i), Limit: 1})
		if want := fmt.Sprintf("%d-%d", 2*i, 2*i+2); span(hits) != want {
			t.Errorf("outcome%d is found at %q, want %s", i, span(hits), want)
		}
	}
}

func TestALaneThatFailsLetsTheOthersGoOn(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.put(t, entries(talk()...)...)
	other := f.sibling(t)
	other.put(t, entries(talk()...)...)
	index := archivedb.NewIndex(archivedb.New(f.runner, archive.NewKeys(failingKeys{of: f.workspace})), parse)
	if done, err := index.IndexPending(t.Context(), 10); err == nil || done != 7 {
		t.Errorf("%d messages, %v; want those of the other workspace and an error", done, err)
	}
	if f.count(t, "archive_unindexed") != 1 || other.count(t, "archive_documents") != 5 {
		t.Errorf("%d wait, %d documents", f.count(t, "archive_unindexed"), other.count(t, "archive_documents"))
	}
}

// A lane that fails goes to the end of the queue, and waits as long as before.
func TestIndexLagGrowsWhileALaneFails(t *testing.T) {
	t.Parallel()
	f := setup(t)
	index := archivedb.NewIndex(archivedb.New(f.runner, archive.NewKeys(failingKeys{of: f.workspace})), parse)
	if since, err := index.WaitsSince(t.Context()); err != nil || !since.IsZero() {
		t.Errorf("with nothing to index: %s, %v", since, err)
	}
	f.put(t, entries(talk()...)...)
	before, err := index.WaitsSince(t.Context())
	if err != nil || before.IsZero() {
		t.Fatalf("%s, %v", before, err)
	}
	if _, err := index.IndexPending(t.Context(), 10); err == nil {
		t.Fatal("the lane does not fail")
	}
	if after, err := index.WaitsSince(t.Context()); err != nil || !after.Equal(before) {
		t.Errorf("after a failure it waits since %s, before %s, %v", after, before, err)
	}
	if since, err := f.indexed(t).WaitsSince(t.Context()); err != nil || !since.IsZero() {
		t.Errorf("once it is indexed: %s, %v", since, err)
	}
}

// threeTalks returns three lanes of the session with the same messages.
func (f *fixture) threeTalks(t *testing.T) []uuid.UUID {
	t.Helper()
	lanes := []uuid.UUID{f.lane, f.addLane(t, time.Now()), f.addLane(t, time.Now())}
	for _, lane := range lanes {
		f.in(t, func(tx *gorm.DB) error { return f.archive.Put(tx, f.workspace, f.session, lane, entries(talk()...)) })
	}
	return lanes
}

func (f *fixture) deleteLane(t *testing.T, lane uuid.UUID) {
	t.Helper()
	f.in(t, func(tx *gorm.DB) error {
		return tx.Exec("DELETE FROM lanes WHERE workspace_id = ? AND id = ?", f.workspace, lane).Error
	})
}

// What is stored together is not lost together: a lane that is deleted while it is read
// fails alone.
func TestALaneThatGoesWhileItIsIndexedFailsAlone(t *testing.T) {
	t.Parallel()
	f := setup(t)
	lanes := f.threeTalks(t)
	read := 0
	index := archivedb.NewIndex(f.archive, func(format conversation.Format, raw []byte) (conversation.Message, error) {
		if read++; read == 2*len(talk()) { // the second lane has been read
			f.deleteLane(t, lanes[1])
		}
		return parse(format, raw)
	})
	if done, err := index.IndexPending(t.Context(), 10); err == nil || done != 2*len(talk()) {
		t.Errorf("%d messages, %v; want those of two lanes and an error", done, err)
	}
	if got := f.count(t, "archive_documents"); got != 2*5 || f.count(t, "archive_unindexed") != 0 {
		t.Errorf("%d documents, %d lanes wait; want those of two lanes, and none", got, f.count(t, "archive_unindexed"))
	}
}

// A lane that is gone when the work begins keeps the others from nothing: they are stored together.
func TestALaneThatIsGoneLeavesTheOthersTogether(t *testing.T) {
	t.Parallel()
	f := setup(t)
	lanes := f.threeTalks(t)
	index := archivedb.NewIndex(archivedb.New(f.runner, archive.NewKeys(keysAfter(func() { f.deleteLane(t, lanes[1]) }))), parse)
	if done, err := index.IndexPending(t.Context(), 10); err == nil || done != 2*len(talk()) {
		t.Errorf("%d messages, %v; want those of two lanes and an error", done, err)
	}
	var transactions int
	f.in(t, func(tx *gorm.DB) error {
		return tx.Raw("SELECT count(DISTINCT xmin::text) FROM archive_documents WHERE workspace_id = ?", f.workspace).Scan(&transactions).Error
	})
	if got := f.count(t, "archive_documents"); got != 2*5 || transactions != 1 {
		t.Errorf("%d documents by %d transactions; want those of two lanes by one", got, transactions)
	}
}

// What is written to a lane while it is indexed is not overlooked: the lane waits on, and
// the next claim may have it at once.
func TestALaneThatGrowsWhileItIsIndexedWaitsOn(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.put(t, entries(talk()...)...)
	read := 0
	index := archivedb.NewIndex(f.archive, func(format conversation.Format, raw []byte) (conversation.Message, error) {
		if read++; read == len(talk()) {
			f.put(t, at(len(talk()), say("user", "one more"))...)
		}
		return parse(format, raw)
	})
	for _, want := range []int{len(talk()), 1, 0} {
		if done, err := index.IndexPending(t.Context(), 10); err != nil || done != want {
			t.Errorf("%d messages, %v; want %d", done, err, want)
		}
	}
	if waiting := f.count(t, "archive_unindexed"); waiting != 0 {
		t.Errorf("%d lanes wait in the end", waiting)
	}
}

// failingKeys has keys of all workspaces but one.
type failingKeys struct{ of tenants.WorkspaceID }

func (k failingKeys) DataKey(ctx context.Context, workspace tenants.WorkspaceID) ([]byte, error) {
	if workspace == k.of {
		return nil, errors.New("no key")
	}
	return archivetest.DataKeys("").DataKey(ctx, workspace)
}

// keysAfter has keys once something was done.
type keysAfter func()

func (k keysAfter) DataKey(ctx context.Context, workspace tenants.WorkspaceID) ([]byte, error) {
	k()
	return archivetest.DataKeys("").DataKey(ctx, workspace)
}

func TestAForkIsSearchedWithWhatItShares(t *testing.T) {
	t.Parallel()
	f := setup(t)
	messages := talk()
	f.put(t, entries(messages...)...)
	fork := uuid.New()
	f.in(t, func(tx *gorm.DB) error {
		return tx.Exec(`INSERT INTO lanes (workspace_id, id, session_id, parent_id, fork_at, created_at, last_at) VALUES (?, ?, ?, ?, 4, now(), now())`,
			f.workspace, fork, f.session, f.lane).Error
	})
	f.in(t, func(tx *gorm.DB) error {
		return f.archive.Put(tx, f.workspace, f.session, fork, at(4, result("b", "PASS: every forkword is green"), say("user", "Thanks.")))
	})
	index := f.indexed(t)
	for query, want := range map[string]string{
		"handler.go":          "1-3", // shared
		"forkword":            "3-5", // the shared call with the fork's own result
		"SQLSTATE 23505":      "",    // the parent's own
		"inserts a row twice": "",
	} {
		if got := span(f.search(t, index, archive.Query{Text: query, Lane: fork, Limit: 1})); got != want {
			t.Errorf("%q in the fork: %q, want %q", query, got, want)
		}
	}
	if got := span(f.search(t, index, archive.Query{Text: "forkword", Lane: f.lane})); got != "" {
		t.Errorf("the parent finds the fork's message: %s", got)
	}
	if got := span(f.search(t, index, archive.Query{Text: "forkword handler", Lane: fork, Before: 4})); got != "1-3" {
		t.Errorf("before message 4: %q", got)
	}
}

// S6: the same words in another workspace are not found, whatever is filtered by.
func TestNoSearchFindsAnotherWorkspace(t *testing.T) {
	t.Parallel()
	f := setup(t)
	other := f.sibling(t)
	other.put(t, entries(talk()...)...)
	index := f.indexed(t)
	if len(other.search(t, index, archive.Query{Text: "SQLSTATE 23505"})) == 0 {
		t.Fatal("its own workspace does not find it: the test proves nothing")
	}
	for _, query := range []archive.Query{
		{}, {Session: other.session}, {Lane: other.lane}, {Lane: other.lane, Session: other.session}, {Path: "handler.go"}, {Tool: "Bash"},
	} {
		query.Text = "SQLSTATE 23505 handler.go"
		if hits := f.search(t, index, query); len(hits) != 0 {
			t.Errorf("%+v finds %+v", query, hits)
		}
	}
}

// The index holds no word that anybody wrote, and the same word is another hash in
// another workspace.
func TestTheIndexHoldsNoReadableText(t *testing.T) {
	t.Parallel()
	database := dbtest.New(t)
	f := newFixture(t, database.DB)
	f.put(t, entries(talk()...)...)
	other := f.sibling(t)
	other.put(t, entries(talk()...)...)
	f.indexed(t)
	rows, err := database.Owner(t).Query(t.Context(), "SELECT d::text FROM archive_documents d")
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		var row string
		if err := rows.Scan(&row); err != nil {
			t.Fatal(err)
		}
		for _, word := range []string{"handler", "migration", "proxy", "23505 ", "Bash", "Read"} {
			if strings.Contains(row, word) {
				t.Errorf("%q stands in %.80s", word, row)
			}
		}
	}
	var shared int
	err = database.Owner(t).QueryRow(t.Context(), `SELECT count(*) FROM archive_documents a JOIN archive_documents b ON a.terms && b.terms AND a.workspace_id <> b.workspace_id`).Scan(&shared)
	if err != nil || shared != 0 {
		t.Errorf("%d pairs of documents of two workspaces share a hash (%v)", shared, err)
	}
}

// S31: what is deleted is not found.
func TestDeletedSessionsAndWorkspacesAreNotFound(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.put(t, entries(talk()...)...)
	index := f.indexed(t)
	f.put(t, at(7, say("user", "one that waits"))...)
	tables := []string{"archive_documents", "archive_unindexed", "archive_indexed"}
	for _, table := range tables {
		if f.count(t, table) == 0 {
			t.Fatalf("%s is empty: the test proves nothing", table)
		}
	}
	f.in(t, func(tx *gorm.DB) error {
		return tx.Exec("DELETE FROM sessions WHERE workspace_id = ? AND id = ?", f.workspace, f.session).Error
	})
	for _, table := range tables {
		if left := f.count(t, table); left != 0 {
			t.Errorf("%s: %d rows are left", table, left)
		}
	}
	if hits := f.search(t, index, archive.Query{Text: "handler.go"}); len(hits) != 0 {
		t.Errorf("the deleted session is found: %+v", hits)
	}

	gone := f.sibling(t)
	gone.put(t, entries(talk()...)...)
	f.indexed(t)
	gone.in(t, func(tx *gorm.DB) error {
		if err := tx.Exec("DELETE FROM sessions WHERE workspace_id = ?", gone.workspace).Error; err != nil {
			return err
		}
		return tx.Exec("DELETE FROM workspaces WHERE workspace_id = ?", gone.workspace).Error
	})
	if left := gone.count(t, "archive_documents"); left != 0 {
		t.Errorf("the deleted workspace has %d documents", left)
	}
}

// The database and package search rank alike, so that what is measured without a
// database holds with it.
func TestTheDatabaseRanksAsMemoryDoes(t *testing.T) {
	t.Parallel()
	f := setup(t)
	var raw [][]byte
	for i := range 120 {
		id := fmt.Sprintf("c%d", i)
		raw = append(raw,
			call(id, []string{"Bash", "Read", "Grep"}[i%3], map[string]any{
				"command": fmt.Sprintf("run step%d of phase%d", i%40, i%7), "file_path": fmt.Sprintf("/src/part%d/file%d.go", i%5, i%11), "description": fmt.Sprintf("Do step %d", i%60),
			}),
			result(id, strings.Repeat(fmt.Sprintf("line about phase%d and value%d\n", i%13, i%17), 1+i%9)))
	}
	for i := range 35 { // neighbors lend to each other
		raw = append(raw, say("user", fmt.Sprintf("What about value%d of topic%d?", i%17, i%6)), say("assistant", strings.Repeat(fmt.Sprintf("It is topic%d, phase%d. ", i%5, i%13), 1+i%29)))
	}
	f.put(t, entries(raw...)...)
	index := f.indexed(t)
	var messages []conversation.Message
	for _, one := range raw {
		message, err := anthropic.New().Parse(one)
		if err != nil {
			t.Fatal(err)
		}
		messages = append(messages, message)
	}
	memory := search.NewMemory(search.Documents(0, messages))
	for _, text := range []string{
		"Earlier you ran a command to: Do step 31. What exactly did it print?", "src/part3/file7.go", "file7.go phase3", "phase3 value5 step12", "value9", "topic3 phase4", "what of topic5 and value16", `"phase12 and value2"`,
	} {
		var want []string
		for _, match := range memory.Search(search.Ask(text), 0, 10) {
			want = append(want, fmt.Sprintf("%d-%d %.3f", match.Document.From, match.Document.To, match.Score))
		}
		for name, query := range map[string]archive.Query{"lane": {Lane: f.lane}, "session": {Session: f.session}, "workspace": {}} {
			query.Text, query.Limit = text, 10
			var got []string
			for _, hit := range f.search(t, index, query) {
				got = append(got, fmt.Sprintf("%d-%d %.3f", hit.From, hit.To, hit.Score))
			}
			if !slices.Equal(got, want) {
				t.Errorf("%q in the %s:\n%v, in memory\n%v", text, name, got, want)
			}
		}
	}
}
