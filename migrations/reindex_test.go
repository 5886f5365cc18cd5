package migrations_test

import (
	"context"
	"net/url"
	"testing"
	"time"

	"palimpsest/migrations"
	"palimpsest/migrations/dbtest"
)

// S27: all lanes of all workspaces wait to be indexed again, by an owner whom the policies bind, and a
// recorder that is at work on lanes meanwhile is not waited for.
func TestLanesAreIndexedAgainWithoutALockOnThem(t *testing.T) {
	t.Parallel()
	database := dbtest.Empty(t)
	admin := connect(t, database.OwnerURL)
	name := "bound_" + database.Name
	execute(t, admin, "CREATE ROLE "+name+" LOGIN PASSWORD 'pass'", "ALTER DATABASE "+database.Name+" OWNER TO "+name)
	owner, err := url.Parse(database.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	owner.User = url.UserPassword(name, "pass")
	number := func(statement string) (found int) {
		t.Helper()
		if err := admin.QueryRow(t.Context(), statement).Scan(&found); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
		return found
	}
	step := func(ctx context.Context) {
		t.Helper()
		if did, err := migrations.UpByOne(ctx, owner.String()); err != nil || !did {
			t.Fatalf("up: %v (%v)", did, err)
		}
	}
	const newest = "SELECT max(version_id) FROM goose_db_version"
	for step(t.Context()); number(newest) != 170; {
		step(t.Context())
	}
	const many = 4100 // more than two batches
	execute(t, admin,
		"INSERT INTO workspaces (workspace_id, name) VALUES (md5('a')::uuid, 'a'), (md5('b')::uuid, 'b'), (md5('c')::uuid, 'c')",
		`INSERT INTO sessions (workspace_id, id, api_key_id, format, source, started_at, last_at)
			SELECT workspace_id, workspace_id AS session, md5('key')::uuid, '', '', now(), now() FROM workspaces`,
		`INSERT INTO lanes (workspace_id, id, session_id, position, created_at, last_at)
			SELECT workspace_id, md5(name || n)::uuid, workspace_id, 1, now(), now() FROM workspaces, generate_series(1, CASE name WHEN 'b' THEN 4100 ELSE 3 END) n`,
		"INSERT INTO archive_indexed (workspace_id, lane_id, position) SELECT workspace_id, id, 1 FROM lanes WHERE id <> md5('c1')::uuid",
		"INSERT INTO archive_unindexed (workspace_id, lane_id, number) VALUES (md5('a')::uuid, md5('a1')::uuid, 7)",
	)
	recorder, err := connect(t, database.OwnerURL).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{
		"UPDATE lanes SET last_at = now()",
		"INSERT INTO archive_unindexed (workspace_id, lane_id) VALUES (md5('c')::uuid, md5('c1')::uuid)",
	} {
		if _, err := recorder.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	patience, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for number(newest) != 220 {
		step(patience)
	}
	if err := recorder.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left, waits := number("SELECT count(*) FROM archive_indexed"), number("SELECT count(*) FROM archive_unindexed"); left != 0 || waits != many+6 {
		t.Errorf("%d lanes are left, and %d wait, want none and %d", left, waits, many+6)
	}
	if found := number("SELECT number FROM archive_unindexed WHERE lane_id = md5('a1')::uuid"); found != 8 {
		t.Errorf("a lane that waited already has the number %d, want 8", found)
	}
	if open := number("SELECT count(*) FROM pg_class WHERE relname IN ('lanes', 'archive_indexed', 'archive_unindexed') AND NOT relforcerowsecurity"); open != 0 {
		t.Errorf("%d tables no longer bind their owner", open)
	}
}
