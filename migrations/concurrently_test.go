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
		"archive_documents", "archive_entries", "archive_indexed", "archive_objects", "archive_segments", "archive_unindexed", "archive_vectors", "audit_entries",
		"cached_answers", "epochs", "exchange_tags", "exchanges", "joined_lanes", "lane_heads", "lane_inserts", "lanes", "pattern_evidence", "pattern_lanes",
		"rollups", "session_words", "sessions", "summaries",
	}
}

// S27: indexes of large tables are built, and their rows changed, while requests are recorded.
func TestMigrationsLetOthersGoOn(t *testing.T) {
	t.Parallel()
	files, err := fs.Glob(migrations.Files, "*.sql")
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
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
		all.Write(text)
		if number < migrations.FirstStep {
			continue
		}
		for _, what := range append(blocking(string(text), number), locking(string(text))...) {
			t.Errorf("%s: %s", file, what)
		}
	}
	for _, table := range large() {
		if !strings.Contains(all.String(), "CREATE TABLE "+table+" (") {
			t.Errorf("there is no table %s", table)
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
		"CREATE TABLE sessions (at int);\nCREATE INDEX a ON sessions (at);":             0, // it is empty
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
		if isLarge(up, match[4]) && (!isConcurrent || !isRepeatable || !isAlone) {
			found = append(found, "build the index of "+match[4]+" with -- +goose NO TRANSACTION and CREATE INDEX CONCURRENTLY IF NOT EXISTS")
		}
	}
	for _, match := range key.FindAllStringSubmatch(up, -1) {
		if isLarge(up, match[1]) {
			found = append(found, "build a unique index of "+match[1]+" concurrently, and add the constraint USING INDEX")
		}
	}
	return found
}

// isLarge reports whether a table is large where a migration has not made it itself.
func isLarge(up, table string) bool {
	return slices.Contains(large(), table) && !strings.Contains(up, "CREATE TABLE "+table+" (")
}

func TestMigrationsThatLockLargeTablesAreSeen(t *testing.T) {
	t.Parallel()
	const (
		alone = "-- +goose NO TRANSACTION\n-- +goose Up\n"
		begin = "-- +goose StatementBegin\n"
		end   = "-- +goose StatementEnd\n"
	)
	for text, want := range map[string]int{
		"ALTER TABLE lanes ADD FOREIGN KEY (workspace_id) REFERENCES workspaces;":                              1,
		"ALTER TABLE lanes ADD CONSTRAINT a FOREIGN KEY (b) REFERENCES c ON DELETE CASCADE NOT VALID;":         0,
		"ALTER TABLE lanes ADD COLUMN b uuid REFERENCES c;":                                                    1,
		"ALTER TABLE lanes ADD CHECK (position >= 0);":                                                         1,
		"ALTER TABLE lanes ADD CONSTRAINT a CHECK (position >= 0) NOT VALID;":                                  0,
		"ALTER TABLE views ADD FOREIGN KEY (b) REFERENCES c;":                                                  0,
		"CREATE TABLE a (b uuid, FOREIGN KEY (b) REFERENCES lanes);":                                           0,
		"ALTER TABLE ONLY public.joined_lanes\n  ALTER COLUMN into_id SET NOT NULL;":                           1,
		alone + "ALTER TABLE lanes VALIDATE CONSTRAINT a;\nALTER TABLE lanes ALTER b SET NOT NULL;":            0, // the constraint says so
		"ALTER TABLE pattern_lanes ALTER lane_id TYPE text;":                                                   1,
		"ALTER TABLE archive_segments ALTER COLUMN bytes SET DATA TYPE bigint;":                                1,
		"ALTER TABLE lanes ADD COLUMN b int GENERATED ALWAYS AS (position + 1) STORED;":                        1,
		"ALTER TABLE lanes ADD COLUMN b int DEFAULT 0, ALTER position SET DEFAULT 0;":                          0,
		"ALTER TABLE lanes NO FORCE ROW LEVEL SECURITY;\nINSERT INTO archive_unindexed SELECT 1;":              1,
		"ALTER TABLE archive_indexed NO FORCE ROW LEVEL SECURITY;\nDELETE FROM archive_indexed;":               1,
		"ALTER TABLE sessions ADD COLUMN a int;\nUPDATE ONLY public.sessions SET a = 1;":                       1,
		alone + "ALTER TABLE sessions ADD COLUMN a int;\nUPDATE sessions SET a = 1;":                           0,
		alone + begin + "DO $$ BEGIN ALTER TABLE lanes ADD a int; UPDATE lanes SET a = 1; END $$;\n" + end:     1,
		alone + begin + "DO $$ BEGIN ALTER TABLE lanes ADD a int; COMMIT; UPDATE lanes SET a = 1; END $$;\n":   0,
		"ALTER TABLE lanes ADD CONSTRAINT a CHECK (b) NOT VALID;\nALTER TABLE lanes VALIDATE CONSTRAINT a;":    1,
		"LOCK TABLE lanes;\nDELETE FROM lanes;":                                                                1,
		"ALTER TABLE patterns NO FORCE ROW LEVEL SECURITY;\nDELETE FROM patterns;":                             0,
		"ALTER TABLE lanes ADD COLUMN a int;\nINSERT INTO views SELECT 1;":                                     0,
		"SELECT 1;\n-- +goose Down\nALTER TABLE lanes ALTER position TYPE int;":                                0,
		"-- ALTER TABLE lanes ALTER position TYPE int;":                                                        0,
		"ALTER TABLE lanes ADD COLUMN a int;\nCREATE FUNCTION b() RETURNS void AS $$ DELETE FROM lanes; $$ c;": 1, // move it to a file of its own
	} {
		if found := locking(text); len(found) != want {
			t.Errorf("%s: found %q, want %d", text, found, want)
		}
	}
}

// locking returns what a migration does to large tables that holds a lock for as long as it works on many rows.
func locking(text string) []string {
	up, _, _ := strings.Cut(text, "-- +goose Down")
	const table = `(?:ONLY\s+)?(?:public\.)?(\w+)`
	alter := regexp.MustCompile(`(?is)\bALTER\s+TABLE\s+` + table + `([^;]*)`)
	reads := map[string]*regexp.Regexp{
		"add a foreign key or a check NOT VALID, and validate it in another transaction": regexp.MustCompile(`(?is)\b(REFERENCES|CHECK)\b`),
		"SET NOT NULL reads the whole table: validate a check before it":                 regexp.MustCompile(`(?is)\bSET\s+NOT\s+NULL\b`),
		"a change of type writes the whole table: add a column":                          regexp.MustCompile(`(?is)\bALTER\s+(COLUMN\s+)?\w+\s+(SET\s+DATA\s+)?TYPE\b`),
		"a stored column writes the whole table":                                         regexp.MustCompile(`(?is)\bSTORED\b`),
	}
	notValid, validates := regexp.MustCompile(`(?i)\bNOT\s+VALID\b`), regexp.MustCompile(`(?i)\bVALIDATE\s+CONSTRAINT\b`)
	locks := regexp.MustCompile(`(?is)\bLOCK\s+(?:TABLE\s+)?` + table)
	writes := regexp.MustCompile(`(?is)\b(?:INSERT\s+INTO|UPDATE|DELETE\s+FROM)\s+` + table)
	var found []string
	for _, transaction := range transactions(up) {
		var held, worked []string
		for _, match := range alter.FindAllStringSubmatch(transaction, -1) {
			name, change := match[1], match[2]
			switch {
			case !isLarge(up, name):
				continue
			case validates.MatchString(change):
				worked = append(worked, name)
				continue
			}
			held = append(held, name)
			for what, is := range reads {
				isProven := notValid.MatchString(change) || strings.HasPrefix(what, "SET NOT NULL") && validates.MatchString(up)
				if is.MatchString(change) && !isProven {
					found = append(found, name+": "+what)
				}
			}
		}
		for _, match := range locks.FindAllStringSubmatch(transaction, -1) {
			if isLarge(up, match[1]) {
				held = append(held, match[1])
			}
		}
		for _, match := range writes.FindAllStringSubmatch(transaction, -1) {
			if isLarge(up, match[1]) {
				worked = append(worked, match[1])
			}
		}
		if len(held) > 0 && len(worked) > 0 {
			found = append(found, "work on the rows of "+worked[0]+" in another transaction than the one that locks "+held[0])
		}
	}
	return found
}

// transactions returns the statements of a migration by the transactions that they run in, without comments.
func transactions(up string) []string {
	isAlone := strings.Contains(up, "-- +goose NO TRANSACTION")
	comment := regexp.MustCompile(`--.*`)
	if !isAlone {
		return []string{comment.ReplaceAllString(up, "")}
	}
	var all []string
	for i, part := range regexp.MustCompile(`-- \+goose Statement(?:Begin|End)`).Split(up, -1) {
		part = comment.ReplaceAllString(part, "")
		end := `;` // a statement is a transaction
		if i%2 == 1 {
			end = `(?i)\bCOMMIT\s*;` // one that ends in the middle of a block begins another
		}
		all = append(all, regexp.MustCompile(end).Split(part, -1)...)
	}
	return all
}
