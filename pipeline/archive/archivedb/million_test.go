package archivedb_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"palimpsest/migrations/dbtest"
	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/archive/archivedb"
	"palimpsest/pipeline/archive/archivetest"
	"palimpsest/pipeline/fulltest"
)

// rareWords are words of which each document of a large workspace has some: the n-th
// in one of n documents, about.
const rareWords = 200_000

// BenchmarkSearch searches a workspace of many documents of some 150 terms each, whose
// words are as frequent as those of speech (Zipf). PALIMPSEST_BENCH_DOCUMENTS says how
// many; 20,000 without it. To reach: each search in less than 100 ms with a million.
func BenchmarkSearch(b *testing.B) {
	documents := 20_000
	if text := os.Getenv("PALIMPSEST_BENCH_DOCUMENTS"); text != "" {
		var err error
		if documents, err = strconv.Atoi(text); err != nil {
			b.Fatal(err)
		}
	}
	database := dbtest.New(b)
	f := newFixture(b, database.DB)
	index := f.index()
	f.put(b, entries(talk()...)...)
	if _, err := index.IndexPending(b.Context(), 10); err != nil {
		b.Fatal(err)
	}
	lane := fillIndex(b, database.Owner(b), f, documents)
	for _, c := range []struct {
		name  string
		query archive.Query
	}{
		{"a rare word", archive.Query{Text: "SQLSTATE 23505"}},
		{"words of all kinds", archive.Query{Text: "w3 w50 w700 w9000 w60000"}},
		{"words in hundreds of documents", archive.Query{Text: "w8000 w9000 w11000"}},
		{"common words", archive.Query{Text: "w1 w2 w3 w5"}},
		{"one common word", archive.Query{Text: "w2"}},
		{"a rare and common words", archive.Query{Text: "w1 w2 w3 duplicate key"}},
		{"a path", archive.Query{Text: "internal/proxy/handler.go"}},
		{"a long question", archive.Query{Text: longQuestion()}},
		{"words of all kinds of one tool", archive.Query{Text: "w3 w50 w700 w9000", Tool: "Bash"}},
		{"words of all kinds of one key", archive.Query{Text: "w3 w50 w700 w9000", APIKey: f.session}},
		{"words of all kinds of one session", archive.Query{Text: "w3 w50 w700 w9000", Session: f.session}},
		{"words of all kinds of one lane", archive.Query{Text: "w3 w50 w700 w9000", Lane: lane}},
		{"words of all kinds since an hour", archive.Query{Text: "w3 w50 w700 w9000", Since: time.Now().Add(-time.Hour)}},
		{"words of all kinds and a day", archive.Query{Text: "w3 w50 w700 w9000 three days ago"}},
		{"words of all kinds and a session", archive.Query{Text: "in the session about the parser, w3 w50 w700 w9000"}},
	} {
		b.Run(c.name, func(b *testing.B) {
			var times []time.Duration
			before := cpuOf(b, database)
			for b.Loop() {
				start := time.Now()
				if _, err := archivedb.Find(b.Context(), index, f.workspace, c.query); err != nil {
					b.Fatal(err)
				}
				times = append(times, time.Since(start))
			}
			used := cpuOf(b, database).minus(before)
			slices.Sort(times)
			b.ReportMetric(float64(used.ours+used.database)/1e6/float64(len(times)), "cpu-ms")
			b.ReportMetric(float64(times[len(times)/2])/1e6, "p50-ms")
			b.ReportMetric(float64(times[len(times)*99/100])/1e6, "p99-ms")
		})
	}
}

func longQuestion() string {
	var text strings.Builder
	for i := range 40 {
		fmt.Fprintf(&text, "w%d ", 1+i*i*i)
	}
	return text.String()
}

// sampleOf returns the sample of a document that has drawn one of 1024 lots.
func sampleOf(lot int) int16 {
	switch {
	case lot == 0:
		return 2
	case lot%64 == 0:
		return 1
	}
	return 0
}

// In a large workspace no search looks at every document, and still what is rare is
// found among what is common, and filters hold.
func TestALargeWorkspaceIsSearchedByItsRareWords(t *testing.T) {
	t.Parallel()
	fulltest.Only(t, "it indexes 9,000 documents of 150 terms")
	database := dbtest.New(t)
	f := newFixture(t, database.DB)
	index := f.index()
	f.put(t, entries(talk()...)...)
	if _, err := index.IndexPending(t.Context(), 10); err != nil {
		t.Fatal(err)
	}
	other := f.sibling(t)
	lane := fillIndex(t, database.Owner(t), f, 9_000)
	fillIndex(t, database.Owner(t), other, 100)
	find := func(of *fixture, query archive.Query) []archive.Hit {
		t.Helper()
		hits, err := archivedb.Find(t.Context(), index, of.workspace, query)
		if err != nil {
			t.Fatal(err)
		}
		for _, hit := range hits {
			if hit.Session != of.session || hit.Score <= 0 || hit.Score > 1 {
				t.Errorf("%+v finds %+v", query, hit)
			}
		}
		return hits
	}
	for _, text := range []string{"SQLSTATE 23505", "w1 w2 w3 duplicate key", "w1 internal/proxy/handler.go w2"} {
		if hits := find(f, archive.Query{Text: text, Limit: 1}); len(hits) != 1 || hits[0].Lane != f.lane {
			t.Errorf("%q finds %+v", text, hits)
		}
		if hits := find(other, archive.Query{Text: text, Limit: 1}); len(hits) == 1 && hits[0].Lane == f.lane {
			t.Errorf("%q finds another workspace's %+v", text, hits)
		}
	}
	for name, query := range map[string]archive.Query{
		"common": {}, "of the session": {Session: f.session}, "of a lane": {Lane: lane}, "of a key": {APIKey: f.session}, "of a tool": {Tool: "Bash"},
		"before a message": {Lane: lane, Before: 500}, "since": {Since: time.Now().Add(-30*24*time.Hour + 8_000*time.Second)},
	} {
		for _, text := range []string{"w1 w2 w3", "w2", "w60 w70", "w9 w900 w9000"} {
			query.Text, query.Limit = text, 10
			hits := find(f, query)
			if len(hits) != 10 {
				t.Errorf("%s, %q: %d hits", name, text, len(hits))
			}
			for _, hit := range hits {
				if query.Lane == lane && hit.Lane != lane || query.Before > 0 && hit.To > query.Before || !query.Since.IsZero() && hit.At.Before(query.Since) {
					t.Errorf("%s, %q: %+v", name, text, hit)
				}
			}
			if again := find(f, query); !slices.EqualFunc(again, hits, func(a, b archive.Hit) bool { return a.Lane == b.Lane && a.From == b.From }) {
				t.Errorf("%s, %q: another order", name, text)
			}
		}
	}
	for name, query := range map[string]archive.Query{"another key": {APIKey: uuid.New()}, "another tool": {Tool: "Grep"}, "the other workspace's lane": {Lane: other.lane}} {
		query.Text = "w1 w2 w3"
		if hits := find(f, query); len(hits) != 0 {
			t.Errorf("%s: %+v", name, hits)
		}
	}
}

// fillIndex puts documents of random words into a workspace, 2,000 a lane, and returns
// one of the lanes.
func fillIndex(b testing.TB, owner *pgxpool.Pool, f *fixture, documents int) uuid.UUID {
	b.Helper()
	ctx := b.Context()
	hashes, err := archivedb.TermHashes(archivetest.Keys(), f.workspace, rareWords)
	if err != nil {
		b.Fatal(err)
	}
	const perLane = 2_000
	lanes := make([]uuid.UUID, documents/perLane+1)
	for i := range lanes {
		lanes[i] = f.addLane(b, time.Now())
	}
	// Built at the end, an index of a million documents takes minutes and not an hour.
	if _, err := owner.Exec(ctx, "DROP INDEX archive_documents_terms"); err != nil {
		b.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	words := rand.NewZipf(random, 1.1, 8, rareWords-1)
	bash, err := archivedb.ToolHash(archivetest.Keys(), f.workspace, "Bash")
	if err != nil {
		b.Fatal(err)
	}
	at := time.Now().Add(-30 * 24 * time.Hour)
	row := 0
	start := time.Now()
	_, err = owner.CopyFrom(ctx, pgx.Identifier{"archive_documents"},
		[]string{"workspace_id", "lane_id", "first", "part", "after", "session_id", "api_key_id", "at", "sampled", "terms"},
		pgx.CopyFromFunc(func() ([]any, error) {
			if row == documents {
				return nil, nil
			}
			terms := make([]int64, 0, 152)
			seen := make(map[uint64]bool, 152)
			for range 200 {
				if word := words.Uint64(); !seen[word] {
					seen[word] = true
					terms = append(terms, hashes[word]|int64(random.IntN(4)))
				}
			}
			if row%3 == 0 {
				terms = append(terms, bash)
			}
			place := row % perLane
			values := []any{
				[16]byte(f.workspace), [16]byte(lanes[row/perLane]), int32(10 + 2*place), int32(0), int32(12 + 2*place), [16]byte(f.session), [16]byte(f.session),
				at.Add(time.Duration(row) * time.Second), sampleOf(random.IntN(1024)), terms,
			}
			row++
			return values, nil
		}))
	if err != nil {
		b.Fatal(err)
	}
	b.Logf("%d documents in %s", documents, time.Since(start))
	if _, err := owner.Exec(ctx, "SET maintenance_work_mem = '1GB'; CREATE INDEX archive_documents_terms ON archive_documents USING gin (terms); RESET ALL"); err != nil {
		b.Fatal(err)
	}
	if _, err := owner.Exec(context.WithoutCancel(ctx), "VACUUM ANALYZE archive_documents"); err != nil {
		b.Fatal(err)
	}
	var size string
	if err := owner.QueryRow(ctx, `SELECT 'table ' || pg_size_pretty(pg_table_size('archive_documents')) || ', indexes ' || pg_size_pretty(pg_indexes_size('archive_documents'))`).Scan(&size); err != nil {
		b.Fatal(err)
	}
	b.Logf("%s after %s", size, time.Since(start))
	return lanes[0]
}
