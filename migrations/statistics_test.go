package migrations_test

import (
	"slices"
	"testing"

	"palimpsest/migrations"
	"palimpsest/migrations/dbtest"
)

// What statistics knew of workspaces before is gone, and does not come back.
func TestStatisticsOfWorkspacesAreDropped(t *testing.T) {
	t.Parallel()
	database := dbtest.New(t)
	owner := database.Owner(t)
	known := func() (tables []string) {
		t.Helper()
		err := owner.QueryRow(t.Context(), `SELECT array_agg(tablename ORDER BY tablename) FROM pg_stats
			WHERE attname = 'workspace_id' AND tablename IN ('archive_objects', 'archive_documents')`).Scan(&tables)
		if err != nil {
			t.Fatal(err)
		}
		return tables
	}
	exec := func(statement string) {
		t.Helper()
		if _, err := owner.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	for version := 40; version >= 37; {
		if _, err := migrations.Down(t.Context(), database.OwnerURL); err != nil {
			t.Fatal(err)
		}
		if err := owner.QueryRow(t.Context(), "SELECT max(version_id) FROM goose_db_version").Scan(&version); err != nil {
			t.Fatal(err)
		}
	}
	exec("INSERT INTO workspaces (workspace_id, name) VALUES (md5('w')::uuid, 'w')")
	exec("INSERT INTO sessions (workspace_id, id, api_key_id, format, name, source, title, client, started_at, last_at) VALUES (md5('w')::uuid, md5('s')::uuid, md5('k')::uuid, 'anthropic', '', '', '', '', now(), now())")
	exec("INSERT INTO lanes (workspace_id, id, session_id, created_at, last_at) VALUES (md5('w')::uuid, md5('l')::uuid, md5('s')::uuid, now(), now())")
	exec("INSERT INTO archive_objects (workspace_id, hash, size, encoding, bytes) VALUES (md5('w')::uuid, 'h', 1, 0, 'x')")
	exec(`INSERT INTO archive_documents (workspace_id, lane_id, first, part, after, session_id, api_key_id, at, sampled, terms)
		VALUES (md5('w')::uuid, md5('l')::uuid, 0, 0, 1, md5('s')::uuid, md5('k')::uuid, now(), 0, '{1}')`)
	exec("ANALYZE archive_objects, archive_documents")
	if got := known(); !slices.Equal(got, []string{"archive_documents", "archive_objects"}) {
		t.Fatalf("before, statistics know workspaces of %v: the test proves nothing", got)
	}
	if _, err := migrations.Up(t.Context(), database.OwnerURL); err != nil {
		t.Fatal(err)
	}
	exec("ANALYZE archive_objects, archive_documents")
	if got := known(); len(got) > 0 {
		t.Errorf("statistics still know workspaces of %v", got)
	}
}
