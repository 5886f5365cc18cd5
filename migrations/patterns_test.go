package migrations_test

import (
	"testing"

	"palimpsest/migrations"
	"palimpsest/migrations/dbtest"
)

// noFixes is the migration that deletes what was stored of the kind "fix".
const noFixes = 190

func TestStoredFixesAreDeletedAndOtherPatternsStay(t *testing.T) {
	t.Parallel()
	database := dbtest.New(t)
	owner := database.Owner(t)
	for version := int64(noFixes); version >= noFixes; {
		if _, err := migrations.Down(t.Context(), database.OwnerURL); err != nil {
			t.Fatal(err)
		}
		if err := owner.QueryRow(t.Context(), "SELECT coalesce(max(version_id), 0) FROM goose_db_version").Scan(&version); err != nil {
			t.Fatal(err)
		}
	}
	for _, statement := range []string{
		"INSERT INTO workspaces (workspace_id, name) SELECT md5(w::text)::uuid, 'w' FROM generate_series(1, 2) w",
		`INSERT INTO patterns (workspace_id, id, kind, text, words, status, source, created_at, edited_at, last_seen)
			SELECT workspace_id, gen_random_uuid(), kind, 'text', 'text', 'approved', 'mined', now(), current_timestamp, 'now'
			FROM workspaces, unnest(ARRAY['fix', 'convention', 'directive']) kind`,
	} {
		if _, err := owner.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := migrations.Up(t.Context(), database.OwnerURL); err != nil {
		t.Fatal(err)
	}
	var left string
	if err := owner.QueryRow(t.Context(), "SELECT string_agg(kind || ' in ' || workspaces, ', ' ORDER BY kind) FROM (SELECT kind, count(*) AS workspaces FROM patterns GROUP BY kind) p").Scan(&left); err != nil {
		t.Fatal(err)
	}
	if left != "convention in 2, directive in 2" {
		t.Errorf("left are: %s", left)
	}
	var forced bool
	if err := owner.QueryRow(t.Context(), "SELECT relforcerowsecurity FROM pg_class WHERE oid = 'patterns'::regclass").Scan(&forced); err != nil || !forced {
		t.Errorf("row-level security is forced: %v, %v", forced, err)
	}
}
