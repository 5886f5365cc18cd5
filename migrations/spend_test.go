package migrations_test

import (
	"testing"

	"palimpsest/migrations"
	"palimpsest/migrations/dbtest"
)

// What earlier requests cost is known by their tags and sessions, and once, however often the migration runs.
func TestSpendOfEarlierRequestsIsFilledIn(t *testing.T) {
	t.Parallel()
	database := dbtest.New(t)
	owner := database.Owner(t)
	exec := func(statements ...string) {
		t.Helper()
		for _, statement := range statements {
			if _, err := owner.Exec(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
		}
	}
	read := func(question string) (all string) {
		t.Helper()
		if err := owner.QueryRow(t.Context(), question).Scan(&all); err != nil {
			t.Fatal(err)
		}
		return all
	}
	exec(
		"INSERT INTO workspaces (workspace_id, name) SELECT md5(w::text)::uuid, 'w' FROM generate_series(1, 2) w",
		`INSERT INTO sessions (workspace_id, id, api_key_id, format, source, started_at, last_at)
			SELECT md5(w::text)::uuid, md5('session' || s)::uuid, md5('key')::uuid, 'anthropic', 'client', now(), now() FROM generate_series(1, 2) w, generate_series(0, 1) s`,
		`INSERT INTO exchanges (workspace_id, id, at, api_key_id, provider, endpoint, model, client, class, stream, status, position, compression,
				tokens_before, tokens_after, window_tokens, level_0, level_1, level_2, level_3, input_tokens, cache_read_tokens, cache_write_tokens,
				output_tokens, cost_microusd, net_microusd, overhead_us, ttfb_us, duration_us, attempts, session_id, tags)
			SELECT md5((1 + n % 2)::text)::uuid, gen_random_uuid(), '2026-01-30'::timestamptz + n * interval '7 minutes', md5('key' || n % 3)::uuid,
				'anthropic', '/v1/messages', 'm', 'c', CASE n % 5 WHEN 0 THEN 'summary' ELSE 'main' END, false, 200, 1, 'none',
				n, n, 5000, 0, 0, 0, 0, n, 2 * n, 3 * n, 4 * n, 5 * n, n % 9 - 4, 1, 1, 1, 1, md5('session' || n % 3)::uuid,
				CASE n % 4 WHEN 0 THEN NULL ELSE jsonb_build_object('project', 'p' || n % 4, 'run', n::text) END
			FROM generate_series(1, 60) n`,
	)
	const sums = `SELECT string_agg(r::text, E'\n' ORDER BY r::text) FROM (SELECT workspace_id, name, minutes, at, value, api_key_id,
		sum(exchanges), sum(tokens_before), sum(output), sum(cost_microusd), sum(net_microusd), sum(own_microusd) FROM tag_sums_now GROUP BY 1, 2, 3, 4, 5, 6) r`
	const costs = `SELECT string_agg(workspace_id || ' ' || id || ' ' || cost_microusd, E'\n' ORDER BY workspace_id, id) FROM sessions`
	want := read(sums)
	if len(want) < 5000 {
		t.Fatalf("the sums hold %d characters: the test proves nothing", len(want))
	}
	const wantCosts = `SELECT string_agg(s.workspace_id || ' ' || s.id || ' ' || (SELECT sum(e.cost_microusd) FROM exchanges e
		WHERE e.workspace_id = s.workspace_id AND e.session_id = s.id), E'\n' ORDER BY s.workspace_id, s.id) FROM sessions s`
	for _, lost := range []string{"SELECT 1", "DELETE FROM tag_sum_deltas", "DELETE FROM tag_sum_deltas WHERE id % 2 = 0", "SELECT fold_tag_sums(workspace_id) FROM workspaces"} {
		exec(lost)
		for version := int64(earlierSpend); version >= earlierSpend; {
			if _, err := migrations.Down(t.Context(), database.OwnerURL); err != nil {
				t.Fatal(err)
			}
			if err := owner.QueryRow(t.Context(), "SELECT max(version_id) FROM goose_db_version").Scan(&version); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := migrations.Up(t.Context(), database.OwnerURL); err != nil {
			t.Fatal(err)
		}
		if got := read(sums); got != want {
			t.Errorf("after %s the sums are\n%s\nwant\n%s", lost, got, want)
		}
		if got, want := read(costs), read(wantCosts); got != want {
			t.Errorf("after %s the sessions cost\n%s\nwant\n%s", lost, got, want)
		}
	}
}

// earlierSpend is the migration that adds up what earlier requests cost.
const earlierSpend = 392
