package migrations_test

import (
	"testing"

	"palimpsest/migrations"
	"palimpsest/migrations/dbtest"
)

// ownParent is the migration that frees lanes that are their own parents.
const ownParent = 440

func TestLanesThatAreTheirOwnParentsAreFreedAndNoMoreAreStored(t *testing.T) {
	t.Parallel()
	database := dbtest.New(t)
	owner := database.Owner(t)
	for version := int64(ownParent); version >= ownParent; {
		if _, err := migrations.Down(t.Context(), database.OwnerURL); err != nil {
			t.Fatal(err)
		}
		if err := owner.QueryRow(t.Context(), "SELECT max(version_id) FROM goose_db_version").Scan(&version); err != nil {
			t.Fatal(err)
		}
	}
	for _, statement := range []string{
		"INSERT INTO workspaces (workspace_id, name) SELECT md5(w::text)::uuid, 'w' FROM generate_series(1, 2) w",
		`INSERT INTO sessions (workspace_id, id, api_key_id, format, source, started_at, last_at)
			SELECT md5(w::text)::uuid, md5('s')::uuid, md5('key')::uuid, 'anthropic', 'client', now(), now() FROM generate_series(1, 2) w`,
		`INSERT INTO lanes (workspace_id, id, session_id, parent_id, fork_at, fork_epoch, fork_insert, created_at, last_at)
			SELECT md5(w::text)::uuid, md5(l)::uuid, md5('s')::uuid, md5(p)::uuid, 3, 2, 1, now(), now()
			FROM generate_series(1, 2) w, (VALUES ('own', 'own'), ('fork', 'first'), ('first', NULL)) lanes (l, p)`,
	} {
		if _, err := owner.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := migrations.Up(t.Context(), database.OwnerURL); err != nil {
		t.Fatal(err)
	}

	var freed, kept int
	err := owner.QueryRow(t.Context(), `SELECT count(*) FILTER (WHERE id = md5('own')::uuid AND parent_id IS NULL AND fork_at + fork_epoch + fork_insert = 0),
		count(*) FILTER (WHERE id = md5('fork')::uuid AND parent_id = md5('first')::uuid AND fork_at = 3) FROM lanes`).Scan(&freed, &kept)
	if err != nil || freed != 2 || kept != 2 {
		t.Errorf("%d lanes freed and %d forks kept (%v), want 2 and 2", freed, kept, err)
	}
	if _, err := owner.Exec(t.Context(), "UPDATE lanes SET parent_id = id"); err == nil {
		t.Error("a lane is stored as its own parent")
	}
}
