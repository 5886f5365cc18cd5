package migrations_test

import (
	"fmt"
	"testing"

	"palimpsest/migrations"
	"palimpsest/migrations/dbtest"
)

// Requests recorded before there was reach are counted and priced as those after: in
// themselves, in their session and in all sums of their workspace.
func TestReachOfWhatWasRecordedBefore(t *testing.T) {
	t.Parallel()
	database := dbtest.New(t)
	owner := database.Owner(t)
	var version int64
	for version = 122; version >= 122; {
		if _, err := migrations.Down(t.Context(), database.OwnerURL); err != nil {
			t.Fatal(err)
		}
		if err := owner.QueryRow(t.Context(), "SELECT max(version_id) FROM goose_db_version").Scan(&version); err != nil {
			t.Fatal(err)
		}
	}
	// n is 1 for a prompt that fits, 2 for one that was shortened below the window, 3 for one
	// that was not, 4 for one that the provider did not answer.
	for _, statement := range []string{
		"INSERT INTO workspaces (workspace_id, name) VALUES (md5('w')::uuid, 'w')",
		`INSERT INTO sessions (workspace_id, id, api_key_id, format, source, started_at, last_at, exchanges, net_microusd)
			VALUES (md5('w')::uuid, md5('s')::uuid, md5('k')::uuid, 'anthropic', 'x', now() - interval '1 hour', now(), 4, 100)`,
		`INSERT INTO exchanges (workspace_id, id, at, session_id, lane_id, api_key_id, provider, endpoint, model, client, class, stream, status,
				position, compression, tokens_before, tokens_after, window_tokens, level_0, level_1, level_2, level_3, input_tokens,
				cache_read_tokens, cache_write_tokens, output_tokens, cost_microusd, net_microusd, unread_microusd, rewritten_microusd,
				overhead_us, ttfb_us, duration_us, attempts)
			SELECT md5('w')::uuid, gen_random_uuid(), '2026-01-30'::timestamptz + n * interval '7 hours', md5('s')::uuid, md5('l')::uuid, md5('k')::uuid,
				'anthropic', '/v1/messages', 'model', 'client', 'main', false, 200, n, 'frozen',
				(ARRAY[900, 1200, 1200, 1200])[n], (ARRAY[500, 500, 1100, 500])[n], 1000, 1, 0, 0, 0, CASE WHEN n < 4 THEN 10 ELSE 0 END,
				0, 0, 1, 7, (ARRAY[40, 30, 30, 0])[n], (ARRAY[9, 5, 5, 0])[n], (ARRAY[3, 2, 2, 0])[n], 1, 1, 1, 1
			FROM generate_series(1, 4) n`,
	} {
		if _, err := owner.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := migrations.Up(t.Context(), database.OwnerURL); err != nil {
		t.Fatal(err)
	}
	read := func(query string) (got string) {
		t.Helper()
		if err := owner.QueryRow(t.Context(), query).Scan(&got); err != nil {
			t.Fatal(err)
		}
		return got
	}
	requests := "SELECT string_agg(concat_ws(' ', reach, net_microusd, unread_microusd, rewritten_microusd), ', ' ORDER BY at) FROM exchanges"
	if got, want := read(requests), "f 40 9 3, t 0 0 0, f 0 0 0, f 0 0 0"; got != want {
		t.Errorf("requests are %s, want %s", got, want)
	}
	if got, want := read("SELECT concat_ws(' ', reach, net_microusd) FROM sessions"), "1 40"; got != want {
		t.Errorf("the session is %s, want %s", got, want)
	}
	sums := "SELECT concat_ws(' ', sum(reach), sum(net_microusd), sum(unread_microusd), sum(rewritten_microusd)) FROM rollups WHERE part = %t AND minutes = %d"
	for _, part := range []bool{false, true} {
		for _, minutes := range []int{30, 360, 1440} {
			if got, want := read(fmt.Sprintf(sums, part, minutes)), "1 40 9 3"; got != want {
				t.Errorf("sums over %d minutes, in parts %t: %s, want %s", minutes, part, got, want)
			}
		}
	}
}
