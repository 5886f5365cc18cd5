package semanticcachedb_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"palimpsest/migrations/dbtest"
	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/archive/archivetest"
	"palimpsest/pipeline/modules/semanticcache"
	"palimpsest/pipeline/modules/semanticcache/semanticcachedb"
	"palimpsest/tenants"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// at is when the tests' answers were kept.
func at() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }

func addWorkspace(t *testing.T, database *dbtest.Database) tenants.WorkspaceID {
	t.Helper()
	id := tenants.NewWorkspaceID()
	if _, err := database.Owner(t).Exec(t.Context(), "INSERT INTO workspaces (workspace_id, name) VALUES ($1, 'test')", id); err != nil {
		t.Fatal(err)
	}
	return id
}

func count(t *testing.T, database *dbtest.Database) int {
	t.Helper()
	var rows int
	if err := database.Owner(t).QueryRow(t.Context(), "SELECT count(*) FROM cached_answers").Scan(&rows); err != nil {
		t.Fatal(err)
	}
	return rows
}

func entry(n byte, when time.Time) semanticcache.Entry {
	return semanticcache.Entry{
		Key: semanticcache.Key{1, n}, Answer: []byte(fmt.Sprint("answer ", n)),
		ContentType: "application/json", Model: "m", At: when, MicroUSD: int64(n),
	}
}

func put(t *testing.T, db *semanticcachedb.DB, workspace tenants.WorkspaceID, entries ...semanticcache.Entry) {
	t.Helper()
	for _, entry := range entries {
		if err := db.Put(t.Context(), workspace, entry, entry.At.Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
}

// find returns the answer to question n, and whether there is one.
func find(t *testing.T, db *semanticcachedb.DB, workspace tenants.WorkspaceID, n byte, since time.Time) (semanticcache.Entry, bool) {
	t.Helper()
	entry, found, err := db.Find(t.Context(), workspace, semanticcache.Key{1, n}, since)
	if err != nil {
		t.Fatal(err)
	}
	return entry, found
}

func TestTheAnswerToTheVerySameQuestionIsFound(t *testing.T) {
	t.Parallel()
	database := dbtest.New(t)
	db, workspace, now := semanticcachedb.New(database.DB, archivetest.KeysOf("a")), addWorkspace(t, database), at()
	want := entry(1, now.Add(-3*time.Second))
	put(t, db, workspace, want, entry(2, now))
	got, found := find(t, db, workspace, 1, now.Add(-time.Hour))
	if !found || !bytes.Equal(got.Answer, want.Answer) || got.MicroUSD != 1 || got.ContentType != want.ContentType || got.Model != "m" || got.Key != want.Key || !got.At.Equal(want.At) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got, found := find(t, db, workspace, 9, now.Add(-time.Hour)); found {
		t.Errorf("another question gets %+v", got)
	}
	if got, found := find(t, db, workspace, 1, now.Add(-2*time.Second)); found {
		t.Errorf("after a shorter time to live found %+v", got)
	}
}

// S5, S2: a twin of another workspace is not found, no matter who asks.
func TestAnotherWorkspacesAnswerIsNotFound(t *testing.T) {
	t.Parallel()
	database := dbtest.New(t)
	db, a, b, now := semanticcachedb.New(database.DB, archivetest.KeysOf("a")), addWorkspace(t, database), addWorkspace(t, database), at()
	put(t, db, b, entry(1, now))
	if got, found := find(t, db, a, 1, now.Add(-time.Hour)); found {
		t.Fatalf("found %+v", got)
	}
	// A row that was moved does not open.
	if _, err := database.Owner(t).Exec(t.Context(), "UPDATE cached_answers SET workspace_id = $1", a); err != nil {
		t.Fatal(err)
	}
	if got, found := find(t, db, a, 1, now.Add(-time.Hour)); found {
		t.Fatalf("moved: found %+v", got)
	}
}

func TestAnswersLieSealed(t *testing.T) {
	t.Parallel()
	database := dbtest.New(t)
	db, workspace, now := semanticcachedb.New(database.DB, archivetest.KeysOf("a")), addWorkspace(t, database), at()
	put(t, db, workspace, entry(1, now))
	var sealed []byte
	if err := database.Owner(t).QueryRow(t.Context(), "SELECT answer FROM cached_answers").Scan(&sealed); err != nil {
		t.Fatal(err)
	}
	if len(sealed) != len("answer 1")+archive.SealedOverhead || bytes.Contains(sealed, []byte("answer")) {
		t.Errorf("the answer lies as %q", sealed)
	}
}

// S31: with another data key, as after the old one was deleted, and for what was
// sealed in another way, there is no answer, and none is kept on.
func TestWhatDoesNotOpenIsAMissAndGoes(t *testing.T) {
	t.Parallel()
	database := dbtest.New(t)
	db, workspace, now := semanticcachedb.New(database.DB, archivetest.KeysOf("a")), addWorkspace(t, database), at()
	put(t, db, workspace, entry(1, now), entry(2, now.Add(-time.Second)), entry(3, now.Add(-2*time.Second)))
	owner := database.Owner(t)
	for key, change := range map[byte]string{1: "answer = 'sealed by the master key'", 2: "answer = ''"} {
		if _, err := owner.Exec(t.Context(), "UPDATE cached_answers SET "+change+" WHERE substr(key, 2, 1) = $1", []byte{key}); err != nil {
			t.Fatal(err)
		}
	}
	for n := byte(1); n <= 3; n++ {
		if got, found := find(t, db, workspace, n, now.Add(-time.Hour)); found != (n == 3) {
			t.Errorf("question %d: found %+v", n, got)
		}
	}
	if left := count(t, database); left != 1 {
		t.Errorf("%d rows are left, want the one that opens", left)
	}
	fresh := semanticcachedb.New(database.DB, archivetest.KeysOf("b"))
	if got, found := find(t, fresh, workspace, 3, now.Add(-time.Hour)); found || count(t, database) != 0 {
		t.Errorf("with another data key found %+v, %d rows are left", got, count(t, database))
	}
	put(t, fresh, workspace, entry(1, now))
	if got, found := find(t, fresh, workspace, 1, now.Add(-time.Hour)); !found || string(got.Answer) != "answer 1" {
		t.Errorf("kept again: found %+v", got)
	}
}

// S31
func TestADeletedWorkspaceHasNoAnswers(t *testing.T) {
	t.Parallel()
	database := dbtest.New(t)
	db, gone, staying, now := semanticcachedb.New(database.DB, archivetest.KeysOf("a")), addWorkspace(t, database), addWorkspace(t, database), at()
	put(t, db, gone, entry(1, now), entry(2, now))
	put(t, db, staying, entry(1, now))
	if _, err := database.Owner(t).Exec(t.Context(), "DELETE FROM workspaces WHERE workspace_id = $1", gone); err != nil {
		t.Fatal(err)
	}
	if left := count(t, database); left != 1 {
		t.Errorf("%d rows are left, want that of the other workspace", left)
	}
	// An answer that was still on its way comes to nothing.
	if err := db.Put(t.Context(), gone, entry(3, now), now.Add(time.Hour)); err == nil || count(t, database) != 1 {
		t.Errorf("kept for a workspace that is gone: %v, %d rows", err, count(t, database))
	}
}

// A workspace whose key cannot be had is told so: nothing is kept open for it.
func TestWithoutAKeyNothingIsKept(t *testing.T) {
	t.Parallel()
	database := dbtest.New(t)
	workspace, now := addWorkspace(t, database), at()
	db := semanticcachedb.New(database.DB, archive.NewKeys(noKeys{}))
	if err := db.Put(t.Context(), workspace, entry(1, now), now.Add(time.Hour)); !errors.Is(err, errNoKey) {
		t.Errorf("put: %v", err)
	}
	if _, _, err := db.Find(t.Context(), workspace, semanticcache.Key{1, 1}, now); !errors.Is(err, errNoKey) {
		t.Errorf("find: %v", err)
	}
	if left := count(t, database); left != 0 {
		t.Errorf("%d rows", left)
	}
}

var errNoKey = errors.New("no key")

type noKeys struct{}

func (noKeys) DataKey(context.Context, tenants.WorkspaceID) ([]byte, error) { return nil, errNoKey }

func TestTheOldestAnswersGoFirst(t *testing.T) {
	t.Parallel()
	database := dbtest.New(t)
	neighbor, now := addWorkspace(t, database), at()
	size := len("answer 1")
	for name, db := range map[string]*semanticcachedb.DB{
		"entries": semanticcachedb.NewBounded(database.DB, archivetest.KeysOf("a"), 3, 1<<20),
		"bytes":   semanticcachedb.NewBounded(database.DB, archivetest.KeysOf("a"), 100, 3*size),
	} {
		workspace := addWorkspace(t, database)
		put(t, db, neighbor, entry(9, now.Add(-time.Minute)))
		for n := byte(1); n <= 5; n++ {
			put(t, db, workspace, entry(n, now.Add(time.Duration(n)*time.Second)))
		}
		put(t, db, workspace, entry(5, now.Add(6*time.Second))) // again: in place of the first
		for n := byte(1); n <= 5; n++ {
			if got, found := find(t, db, workspace, n, now.Add(-time.Hour)); found != (n >= 3) {
				t.Errorf("%s: question %d: found %+v", name, n, got)
			}
		}
		if _, found := find(t, db, neighbor, 9, now.Add(-time.Hour)); !found {
			t.Errorf("%s: the neighbor has no answer", name)
		}
	}
}

func TestExpiredAnswersAreDeleted(t *testing.T) {
	t.Parallel()
	database := dbtest.New(t)
	db, workspace, now := semanticcachedb.New(database.DB, archivetest.KeysOf("a")), addWorkspace(t, database), at()
	put(t, db, workspace, entry(1, now), entry(2, now.Add(time.Hour)))
	if rows := count(t, database); rows != 1 {
		t.Errorf("%d rows", rows)
	}
}
