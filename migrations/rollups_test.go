package migrations_test

import (
	"testing"

	"palimpsest/migrations"
	"palimpsest/migrations/dbtest"
)

// S27: what was recorded before there were rollups is in them as if it had been
// recorded after, whether its sums were folded before or while the schema went back.
func TestRollupsHoldWhatWasRecordedBeforeThem(t *testing.T) {
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
	read := func() (all string) {
		t.Helper()
		err := owner.QueryRow(t.Context(), "SELECT string_agg(r::text, E'\n' ORDER BY r::text) FROM rollups r").Scan(&all)
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	var version int64
	recorded := ""
	for {
		if _, err := migrations.Down(t.Context(), database.OwnerURL); err != nil {
			t.Fatal(err)
		}
		if err := owner.QueryRow(t.Context(), "SELECT coalesce(max(version_id), 0) FROM goose_db_version").Scan(&version); err != nil {
			t.Fatal(err)
		}
		if version < 29 {
			break
		}
		if version < 122 { // since then there are other columns
			continue
		}
		now := read()
		if version < 145 && recorded == "" {
			recorded = now // what was folded before, and what going back has folded
		}
		if version < 145 && now != recorded {
			t.Fatalf("version %d holds other sums", version)
		}
	}
	if _, err := migrations.Up(t.Context(), database.OwnerURL); err != nil {
		t.Fatal(err)
	}
	if len(recorded) < 100_000 {
		t.Fatalf("the rollups hold %d characters: the test proves nothing", len(recorded))
	}
	if added := read(); added != recorded {
		t.Error("what is added up later differs from what was added up as it came")
	}
}
