package semanticcachedb_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"palimpsest/migrations/dbtest"
	"palimpsest/pipeline/modules/semanticcache"
	"palimpsest/pipeline/modules/semanticcache/semanticcachedb"
	"palimpsest/tenants/vault"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// at is when the tests' answers were kept.
func at() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }

func sealer(t *testing.T, secret string) *vault.Sealer {
	t.Helper()
	safe, err := vault.New([][]byte{[]byte(strings.Repeat(secret, 32))})
	if err != nil {
		t.Fatal(err)
	}
	sealer, err := safe.Sealer("cached answers")
	if err != nil {
		t.Fatal(err)
	}
	return sealer
}

func entry(n byte, when time.Time) semanticcache.Entry {
	return semanticcache.Entry{
		Key: semanticcache.Key{1, n}, Alike: semanticcache.Key{2}, Text: fmt.Sprint("question ", n), Answer: []byte(fmt.Sprint("answer ", n)),
		ContentType: "application/json", Model: "m", At: when, MicroUSD: int64(n),
	}
}

func put(t *testing.T, db *semanticcachedb.DB, workspace uuid.UUID, entries ...semanticcache.Entry) {
	t.Helper()
	for _, entry := range entries {
		if err := db.Put(t.Context(), workspace, entry, entry.At.Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
}

// find returns the answers to question n.
func find(t *testing.T, db *semanticcachedb.DB, workspace uuid.UUID, question semanticcache.Question, since time.Time) []semanticcache.Entry {
	t.Helper()
	found, err := db.Find(t.Context(), workspace, question, since)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestTheVerySameQuestionComesFirstThenTheNewest(t *testing.T) {
	t.Parallel()
	database := dbtest.New(t)
	db, workspace, now := semanticcachedb.New(database.DB, sealer(t, "a")), uuid.New(), at()
	exact := entry(4, now.Add(-time.Minute))
	exact.Alike, exact.Text = semanticcache.Key{}, ""
	put(t, db, workspace, entry(1, now.Add(-3*time.Second)), entry(2, now.Add(-2*time.Second)), entry(3, now.Add(-time.Second)), exact)

	question := semanticcache.Question{Key: semanticcache.Key{1, 1}, Alike: semanticcache.Key{2}}
	found := find(t, db, workspace, question, now.Add(-time.Hour))
	if len(found) != 3 || found[0].Key[1] != 1 || found[1].Key[1] != 3 || found[2].Key[1] != 2 {
		t.Fatalf("found %+v", found)
	}
	want := entry(1, now.Add(-3*time.Second))
	if got := found[0]; got.Text != want.Text || !bytes.Equal(got.Answer, want.Answer) || got.MicroUSD != 1 || got.ContentType != want.ContentType || got.Model != "m" || got.Alike != want.Alike || !got.At.Equal(want.At) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	// A question that takes exact hits only finds nothing alike, and no answer of such
	// a question is found for another.
	if found := find(t, db, workspace, semanticcache.Question{Key: semanticcache.Key{9}}, now.Add(-time.Hour)); len(found) != 0 {
		t.Errorf("found %+v", found)
	}
	if found := find(t, db, workspace, semanticcache.Question{Key: exact.Key}, now.Add(-time.Hour)); len(found) != 1 || found[0].Text != "" {
		t.Errorf("found %+v", found)
	}
	if found := find(t, db, workspace, question, now.Add(-2*time.Second)); len(found) != 1 || found[0].Key[1] != 3 {
		t.Errorf("after a shorter time to live found %+v", found)
	}
}

// S5, S2: a twin of another workspace is not found, whoever asks.
func TestAnotherWorkspacesAnswerIsNotFound(t *testing.T) {
	t.Parallel()
	database := dbtest.New(t)
	db, a, b, now := semanticcachedb.New(database.DB, sealer(t, "a")), uuid.New(), uuid.New(), at()
	put(t, db, b, entry(1, now))
	question := semanticcache.Question{Key: semanticcache.Key{1, 1}, Alike: semanticcache.Key{2}}
	if found := find(t, db, a, question, now.Add(-time.Hour)); len(found) != 0 {
		t.Fatalf("found %+v", found)
	}
	// A row that was moved does not open.
	if _, err := database.Owner(t).Exec(t.Context(), "UPDATE cached_answers SET workspace_id = $1", a); err != nil {
		t.Fatal(err)
	}
	if found := find(t, db, a, question, now.Add(-time.Hour)); len(found) != 0 {
		t.Fatalf("moved: found %+v", found)
	}
}

func TestAnswersLieSealed(t *testing.T) {
	t.Parallel()
	database := dbtest.New(t)
	db, workspace, now := semanticcachedb.New(database.DB, sealer(t, "a")), uuid.New(), at()
	put(t, db, workspace, entry(1, now))
	var row string
	err := database.Owner(t).QueryRow(t.Context(), "SELECT convert_from(question, 'SQL_ASCII') || convert_from(answer, 'SQL_ASCII') FROM cached_answers").Scan(&row)
	if err == nil && (strings.Contains(row, "question") || strings.Contains(row, "answer")) {
		t.Errorf("the row says %q", row)
	}
	other := semanticcachedb.New(database.DB, sealer(t, "b"))
	if found := find(t, other, workspace, semanticcache.Question{Key: semanticcache.Key{1, 1}}, now.Add(-time.Hour)); len(found) != 0 {
		t.Errorf("with another master key found %+v", found)
	}
}

func TestTheOldestAnswersGoFirst(t *testing.T) {
	t.Parallel()
	database := dbtest.New(t)
	neighbour, now := uuid.New(), at()
	size := len("answer 1") + len("question 1")
	for name, db := range map[string]*semanticcachedb.DB{
		"entries": semanticcachedb.NewBounded(database.DB, sealer(t, "a"), 3, 1<<20),
		"bytes":   semanticcachedb.NewBounded(database.DB, sealer(t, "a"), 100, 3*size),
	} {
		workspace := uuid.New()
		put(t, db, neighbour, entry(9, now.Add(-time.Minute)))
		for n := byte(1); n <= 5; n++ {
			put(t, db, workspace, entry(n, now.Add(time.Duration(n)*time.Second)))
		}
		put(t, db, workspace, entry(5, now.Add(6*time.Second))) // again: in place of the first
		found := find(t, db, workspace, semanticcache.Question{Alike: semanticcache.Key{2}}, now.Add(-time.Hour))
		if len(found) != 3 || found[0].Key[1] != 5 || found[2].Key[1] != 3 {
			t.Errorf("%s: kept %+v", name, found)
		}
		if found := find(t, db, neighbour, semanticcache.Question{Alike: semanticcache.Key{2}}, now.Add(-time.Hour)); len(found) != 1 {
			t.Errorf("%s: the neighbour has %d answers", name, len(found))
		}
	}
}

func TestExpiredAnswersAreDeleted(t *testing.T) {
	t.Parallel()
	database := dbtest.New(t)
	db, workspace, now := semanticcachedb.New(database.DB, sealer(t, "a")), uuid.New(), at()
	put(t, db, workspace, entry(1, now), entry(2, now.Add(time.Hour)))
	var rows int
	if err := database.Owner(t).QueryRow(t.Context(), "SELECT count(*) FROM cached_answers").Scan(&rows); err != nil || rows != 1 {
		t.Errorf("%d rows, %v", rows, err)
	}
}
