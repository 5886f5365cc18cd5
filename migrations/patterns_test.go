package migrations_test

import (
	"testing"

	"palimpsest/migrations"
	"palimpsest/migrations/dbtest"
)

// noFixes is the migration that deletes what was stored of the kind "fix"; a later one deletes what no one approved.
const noFixes = 190

func TestFixesAndWhatNoOneApprovedAreDeletedAndOtherPatternsStay(t *testing.T) {
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
		`INSERT INTO patterns (workspace_id, id, kind, text, words, status, source, created_at, edited_at, edited_by, last_seen)
			SELECT workspace_id, gen_random_uuid(), kind, 'text', status || source || (by IS NULL), status, source, now(), now(), by, now()
			FROM workspaces, (VALUES ('fix', 'approved', 'mined', gen_random_uuid()), ('convention', 'approved', 'mined', gen_random_uuid()),
				('convention', 'approved', 'mined', NULL), ('directive', 'candidate', 'mined', NULL), ('directive', 'seen', 'mined', NULL),
				('directive', 'disabled', 'mined', gen_random_uuid()), ('directive', 'rejected', 'typed', gen_random_uuid())) p (kind, status, source, by)`,
	} {
		if _, err := owner.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := migrations.Up(t.Context(), database.OwnerURL); err != nil {
		t.Fatal(err)
	}
	var left string
	if err := owner.QueryRow(t.Context(), "SELECT string_agg(kind || ' ' || status || ' in ' || workspaces, ', ' ORDER BY kind) FROM (SELECT kind, status, count(*) AS workspaces FROM patterns GROUP BY kind, status) p").Scan(&left); err != nil {
		t.Fatal(err)
	}
	if left != "convention approved in 2, directive disabled in 2" {
		t.Errorf("left are: %s", left)
	}
	var forced bool
	if err := owner.QueryRow(t.Context(), "SELECT relforcerowsecurity FROM pg_class WHERE oid = 'patterns'::regclass").Scan(&forced); err != nil || !forced {
		t.Errorf("row-level security is forced: %v, %v", forced, err)
	}
}
