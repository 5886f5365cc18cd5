package migrations_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"palimpsest/migrations/dbtest"
)

// grantsSQL lists what the app login may change: a table, and what it may do with rows or with
// one of their columns.
const grantsSQL = `
	SELECT table_name || ' ' || lower(privilege_type) FROM information_schema.role_table_grants
		WHERE grantee = 'palimpsest_app' AND table_schema = 'public' AND privilege_type <> 'SELECT'
	UNION SELECT table_name || ' update' FROM information_schema.column_privileges
		WHERE grantee = 'palimpsest_app' AND table_schema = 'public' AND privilege_type = 'UPDATE'`

// neededElsewhere are rights whose statements do not name the table: lists of tables in the code,
// and triggers.
func neededElsewhere() map[string]string {
	return map[string]string{
		"api_keys delete":         "closing a workspace",
		"archive_entries update":  "joining sessions",
		"epochs update":           "the version before migration 240",
		"exchange_tags delete":    "erasing a workspace",
		"exchanges delete":        "erasing a workspace",
		"lane_inserts update":     "the version before migration 240",
		"pattern_evidence delete": "the version before migration 399",
		"pattern_evidence insert": "the version before migration 399",
		"pattern_lanes insert":    "the version before migration 399",
		"pattern_lanes update":    "the version before migration 399",
		"pattern_uses insert":     "the version before migration 399",
		"pattern_uses update":     "the version before migration 399",
		"views insert":            "the version before migration 399",
		"views update":            "the version before migration 399",
		"views delete":            "the version before migration 399",
		"pattern_evidence update": "joining sessions",
		"rollup_deltas insert":    "the trigger that adds up exchanges",
		"rollup_deltas delete":    "folding sums",
		"rollups insert":          "folding sums",
		"rollups update":          "folding sums",
		"session_words delete":    "the trigger that keeps a session's words",
		"session_words insert":    "the trigger that keeps a session's words",
		"summaries update":        "joining sessions",

		"tag_sum_deltas insert": "the trigger that adds up exchanges with tags",
		"tag_sum_deltas delete": "folding sums",
		"tag_sums insert":       "folding sums",
		"tag_sums update":       "folding sums",

		"usage_meter insert":        "folding sums",
		"usage_meter_deltas delete": "folding sums",
	}
}

// S2: the app login serves requests. What an attacker could do with it is bounded by what it may do,
// so it may do only what the program does.
func TestAppLoginHasNoRightThatNoStatementNeeds(t *testing.T) {
	t.Parallel()
	rows, err := dbtest.New(t).Owner(t).Query(t.Context(), grantsSQL)
	if err != nil {
		t.Fatal(err)
	}
	granted, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	needed := neededElsewhere()
	statements := statementsOf(t, "..")
	for _, right := range granted {
		if _, known := needed[right]; known {
			delete(needed, right)
		} else if !statements[right] {
			t.Errorf("no statement needs the right %q of palimpsest_app: revoke it", right)
		}
	}
	for right := range needed {
		t.Errorf("palimpsest_app does not have the right %q, which is listed as needed", right)
	}
}

// statementsOf returns the rights that the statements in a program's sources need.
func statementsOf(t *testing.T, root string) map[string]bool {
	t.Helper()
	direct := regexp.MustCompile(`\b(INSERT INTO|UPDATE(?: ONLY)?|DELETE FROM) ([a-z_]+)`)
	locked := regexp.MustCompile("(?s)FROM ([a-z_]+)[^`\"]* FOR (?:NO KEY |KEY )?(?:UPDATE|SHARE)")
	written := regexp.MustCompile(`\b(create|update)\(tx, "([a-z_]+)"`) // of package tenantsdb
	created := regexp.MustCompile(`Table\("([a-z_]+)"\)\.Create\(`)
	lockedRow := regexp.MustCompile(`Table\("([a-z_]+)"\).*locked\(\)`)
	upserted := regexp.MustCompile("(?s)INSERT INTO ([a-z_]+)[^`\"]*ON CONFLICT[^`\"]*DO UPDATE")
	needed := map[string]bool{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, found := range direct.FindAllStringSubmatch(string(source), -1) {
			needed[found[2]+" "+strings.ToLower(strings.Fields(found[1])[0])] = true
		}
		for _, found := range written.FindAllStringSubmatch(string(source), -1) {
			needed[found[2]+" "+map[string]string{"create": "insert", "update": "update"}[found[1]]] = true
		}
		for _, found := range created.FindAllStringSubmatch(string(source), -1) {
			needed[found[1]+" insert"] = true
		}
		for _, pattern := range []*regexp.Regexp{locked, lockedRow, upserted} {
			for _, found := range pattern.FindAllStringSubmatch(string(source), -1) {
				needed[found[1]+" update"] = true
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return needed
}
