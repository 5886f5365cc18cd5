package migrations_test

import (
	"testing"

	"palimpsest/migrations"
	"palimpsest/migrations/dbtest"
)

// S27: a version without appended sums finds whole ones, whether they were folded before or
// while the schema went back.
func TestGoingBackFoldsAppendedSums(t *testing.T) {
	t.Parallel()
	database := dbtest.New(t)
	owner := database.Owner(t)
	const recordHalf = `INSERT INTO exchanges (workspace_id, id, at, api_key_id, provider, endpoint, model, client, class, stream, status, position, compression,
				tokens_before, tokens_after, window_tokens, level_0, level_1, level_2, level_3, input_tokens, cache_read_tokens, cache_write_tokens,
				output_tokens, cost_microusd, net_microusd, overhead_us, ttfb_us, duration_us, attempts, miss_cause, missed_tokens, projection,
				rewritten_microusd, report, bridged)
			SELECT md5((1 + n % 2)::text)::uuid, gen_random_uuid(), '2026-01-30'::timestamptz + n * interval '7 minutes', md5('key' || n % 3)::uuid,
				'anthropic', '/v1/messages', 'model-' || n % 4, 'client-' || n % 2, CASE n % 9 WHEN 0 THEN 'summary' WHEN 1 THEN 'compaction' ELSE 'main' END,
				false, CASE n % 11 WHEN 0 THEN 529 ELSE 200 END, 1, (ARRAY['none', 'frozen', 'epoch', 'truncated'])[1 + n % 4],
				n, n / 2, 5000, n % 5, n % 3, n % 2, 0, n, 2 * n, 3 * n, 4 * n, 5 * n, (n % 100) - 50, 31 * n, 1, 1, n % 2, '', 0, n % 2,
				CASE WHEN n % 9 > 0 THEN greatest(0, 50 - n % 100) ELSE 0 END,
				CASE n % 13 WHEN 0 THEN '{"events": [{"module": "compactionbridge", "type": "recovered"}]}'::jsonb END, n % 13 = 0
			FROM generate_series(1, 2000) n WHERE n / 3 % 2 = `
	for _, statement := range []string{
		"INSERT INTO workspaces (workspace_id, name) SELECT md5(w::text)::uuid, 'w' FROM generate_series(1, 2) w",
		recordHalf + "0", "SELECT fold_sums(workspace_id) FROM workspaces", recordHalf + "1",
	} {
		if _, err := owner.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	read := func(from string) (all string) {
		t.Helper()
		err := owner.QueryRow(t.Context(), `SELECT string_agg(r::text, E'\n' ORDER BY r::text) FROM (SELECT workspace_id, part, minutes, at, client, model, api_key_id,
			sum(exchanges), sum(failures), sum(tokens_before), sum(cost_microusd), sum(net_microusd), sum(evicted_tokens) FROM `+from+` GROUP BY 1, 2, 3, 4, 5, 6, 7) r`).Scan(&all)
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	recorded := read("rollups_now")
	if len(recorded) < 100_000 {
		t.Fatalf("the sums hold %d characters: the test proves nothing", len(recorded))
	}
	if folded := read("rollups"); folded == recorded {
		t.Fatal("all sums are folded before the schema goes back: the test proves nothing")
	}
	for version := int64(appendedSums); version >= appendedSums; {
		if _, err := migrations.Down(t.Context(), database.OwnerURL); err != nil {
			t.Fatal(err)
		}
		if err := owner.QueryRow(t.Context(), "SELECT coalesce(max(version_id), 0) FROM goose_db_version").Scan(&version); err != nil {
			t.Fatal(err)
		}
	}
	if kept := read("rollups"); kept != recorded {
		t.Error("the version before finds other sums")
	}
	if _, err := migrations.Up(t.Context(), database.OwnerURL); err != nil {
		t.Fatal(err)
	}
	if again := read("rollups_now"); again != recorded {
		t.Error("after going back and forth there are other sums")
	}
}

// appendedSums is the migration that has sums appended and folded later.
const appendedSums = 145
