package migrations_test

import (
	"io/fs"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"palimpsest/migrations"
)

// large are the tables that grow with the requests of an installation. Building an index of
// one takes minutes there, and nothing may be written meanwhile unless it is built
// concurrently.
func large() []string {
	return []string{
		"archive_documents", "archive_entries", "archive_objects", "archive_vectors", "audit_entries", "cached_answers", "epochs", "exchange_tags", "exchanges",
		"lane_heads", "lane_inserts", "lanes", "pattern_evidence", "rollups", "session_words", "sessions", "summaries",
	}
}

// S27: indexes of large tables are built while requests are recorded.
func TestLargeIndexesAreBuiltConcurrently(t *testing.T) {
	t.Parallel()
	files, err := fs.Glob(migrations.Files, "*.sql")
	if err != nil {
		t.Fatal(err)
	}
	var baseline strings.Builder
	for _, file := range files {
		text, err := migrations.Files.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		digits, _, _ := strings.Cut(file, "_")
		number, err := strconv.ParseInt(digits, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		if number < migrations.FirstStep {
			baseline.Write(text)
			continue
		}
		for _, what := range blocking(string(text), number) {
			t.Errorf("%s: %s", file, what)
		}
	}
	for _, table := range large() {
		if !strings.Contains(baseline.String(), "CREATE TABLE "+table+" (") {
			t.Errorf("the baseline has no table %s", table)
		}
	}
}

func TestIndexesThatBlockWritersAreSeen(t *testing.T) {
	t.Parallel()
	const alone = "-- +goose NO TRANSACTION\n-- +goose Up\n"
	for text, want := range map[string]int{
		"CREATE INDEX a ON exchanges (at);":                                             1,
		"CREATE UNIQUE INDEX IF NOT EXISTS a\n  ON ONLY public.sessions (id);":          1,
		"create index on lanes (id);":                                                   1,
		"ALTER TABLE lanes ADD UNIQUE (workspace_id, last_at);":                         1,
		"ALTER TABLE lanes ADD COLUMN a int,\n  ADD CONSTRAINT b PRIMARY KEY (id);":     1,
		"CREATE INDEX CONCURRENTLY IF NOT EXISTS a ON exchanges (at);":                  1, // goose runs it in a transaction
		alone + "CREATE INDEX CONCURRENTLY a ON exchanges (at);":                        1, // a second try fails
		alone + "CREATE INDEX CONCURRENTLY IF NOT EXISTS a ON exchanges (at);":          0,
		alone + "CREATE INDEX a ON exchanges (at);":                                     1,
		"CREATE INDEX a ON alert_marks (at);":                                           0,
		"CREATE TABLE exchanges_new (at int);\nCREATE INDEX a ON exchanges_new (at);":   0,
		"-- CREATE INDEX a ON exchanges (at);":                                          0,
		"ALTER TABLE lanes ADD CONSTRAINT b UNIQUE USING INDEX lanes_b;":                0,
		"SELECT 1;\n-- +goose Down\nDROP INDEX a;\nCREATE INDEX a ON exchanges (at);\n": 0,
	} {
		if found := blocking(text, partitioned-1); len(found) != want {
			t.Errorf("%s: found %q, want %d", text, found, want)
		}
	}
	for text, want := range map[string]int{
		"CREATE INDEX a ON exchanges (at);":                                    1, // of all partitions in one go
		alone + "CREATE INDEX CONCURRENTLY IF NOT EXISTS a ON exchanges (at);": 1, // PostgreSQL does not do it
		"CREATE INDEX a ON ONLY exchanges (at);":                               0,
		"CREATE INDEX a ON ONLY sessions (at);":                                1,
	} {
		if found := blocking(text, partitioned+1); len(found) != want {
			t.Errorf("%s: found %q of a table in partitions, want %d", text, found, want)
		}
	}
}

// partitioned is the migration from which on exchanges is in partitions.
const partitioned = 230

// blocking returns what a migration with a number builds on a large table while nothing may be written to it.
func blocking(text string, number int64) []string {
	up, _, _ := strings.Cut(text, "-- +goose Down")
	isAlone := strings.Contains(up, "-- +goose NO TRANSACTION")
	up = regexp.MustCompile(`--.*`).ReplaceAllString(up, "")
	index := regexp.MustCompile(`(?is)\bCREATE\s+(?:UNIQUE\s+)?INDEX\s+(CONCURRENTLY\s+)?(IF\s+NOT\s+EXISTS\s+)?(?:\w+\s+)?ON\s+(ONLY\s+)?(?:public\.)?(\w+)`)
	key := regexp.MustCompile(`(?is)\bALTER\s+TABLE\s+(?:ONLY\s+)?(?:public\.)?(\w+)[^;]*?\bADD\s+(?:CONSTRAINT\s+\w+\s+)?(?:UNIQUE|PRIMARY\s+KEY)\s*\(`)
	var found []string
	for _, match := range index.FindAllStringSubmatch(up, -1) {
		isConcurrent, isRepeatable, isOnly := match[1] != "", match[2] != "", match[3] != ""
		if match[4] == "exchanges" && number >= partitioned {
			if !isOnly {
				found = append(found, "make the index with CREATE INDEX … ON ONLY exchanges: the job partitions builds it, partition by partition")
			}
			continue
		}
		if slices.Contains(large(), match[4]) && (!isConcurrent || !isRepeatable || !isAlone) {
			found = append(found, "build the index of "+match[4]+" with -- +goose NO TRANSACTION and CREATE INDEX CONCURRENTLY IF NOT EXISTS")
		}
	}
	for _, match := range key.FindAllStringSubmatch(up, -1) {
		if slices.Contains(large(), match[1]) {
			found = append(found, "build a unique index of "+match[1]+" concurrently, and add the constraint USING INDEX")
		}
	}
	return found
}
