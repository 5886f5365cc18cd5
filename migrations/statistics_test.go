package migrations_test

import (
	"slices"
	"testing"

	"palimpsest/migrations/dbtest"
)

// Rows of these tables are read by their exact keys. What statistics know of workspaces is
// old for those that are new, and would lead the planner to any index that begins with the
// workspace. Of lanes, which are also joined by the thousand, they are needed.
func TestStatisticsKnowNoWorkspacesOfTablesReadByKey(t *testing.T) {
	t.Parallel()
	owner := dbtest.New(t).Owner(t)
	for _, statement := range []string{
		"INSERT INTO workspaces (workspace_id, name) VALUES (md5('w')::uuid, 'w')",
		`INSERT INTO sessions (workspace_id, id, api_key_id, format, source, started_at, last_at)
			VALUES (md5('w')::uuid, md5('s')::uuid, md5('k')::uuid, 'anthropic', '', now(), now())`,
		"INSERT INTO lanes (workspace_id, id, session_id, created_at, last_at) VALUES (md5('w')::uuid, md5('l')::uuid, md5('s')::uuid, now(), now())",
		"INSERT INTO lane_heads (workspace_id, head, lane_id, position, seen_at) VALUES (md5('w')::uuid, 'h', md5('l')::uuid, 1, now())",
		"INSERT INTO archive_objects (workspace_id, hash, size, encoding, bytes) VALUES (md5('w')::uuid, 'h', 1, 0, 'x')",
		`INSERT INTO archive_entries (workspace_id, lane_id, index, session_id, hash, role, tokens)
			VALUES (md5('w')::uuid, md5('l')::uuid, 0, md5('s')::uuid, 'h', 'user', 1)`,
		`INSERT INTO archive_documents (workspace_id, lane_id, first, part, after, session_id, api_key_id, at, sampled, terms)
			VALUES (md5('w')::uuid, md5('l')::uuid, 0, 0, 1, md5('s')::uuid, md5('k')::uuid, now(), 0, '{1}')`,
		`INSERT INTO cached_answers (workspace_id, key, model, content_type, question, answer, size, cost_microusd, created_at, expires_at)
			VALUES (md5('w')::uuid, 'k', 'm', 'c', 'q', 'a', 1, 1, now(), now())`,
		"ANALYZE lanes, lane_heads, archive_objects, archive_entries, archive_documents, cached_answers",
	} {
		if _, err := owner.Exec(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	var known []string
	err := owner.QueryRow(t.Context(), "SELECT array_agg(tablename ORDER BY tablename) FROM pg_stats WHERE attname = 'workspace_id' AND schemaname = 'public'").Scan(&known)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"lanes"}; !slices.Equal(known, want) {
		t.Errorf("statistics know workspaces of %v, want %v", known, want)
	}
}
