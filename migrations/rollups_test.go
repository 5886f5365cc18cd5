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
	goBelow(t, database, appendedSums)
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

// Tokens of requests that only went through because they were shortened are known of earlier requests, too, whether their sums
// were folded or not, and once however often the migration runs.
func TestReachTokensOfEarlierRequestsAreFilledIn(t *testing.T) {
	t.Parallel()
	database := dbtest.New(t)
	goBelow(t, database, reachTokens)
	owner := database.Owner(t)
	for _, statement := range []string{
		"INSERT INTO workspaces (workspace_id, name) SELECT md5(w::text)::uuid, 'w' FROM generate_series(1, 2) w",
		`INSERT INTO sessions (workspace_id, id, api_key_id, format, source, started_at, last_at, reach)
			SELECT md5(w::text)::uuid, md5('session' || s)::uuid, md5('key')::uuid, 'anthropic', 'client', now(), now(), s FROM generate_series(1, 2) w, generate_series(0, 2) s`,
		`INSERT INTO exchanges (workspace_id, id, at, api_key_id, provider, endpoint, model, client, class, stream, status, position, compression,
				tokens_before, tokens_after, window_tokens, level_0, level_1, level_2, level_3, input_tokens, cache_read_tokens, cache_write_tokens,
				output_tokens, cost_microusd, net_microusd, overhead_us, ttfb_us, duration_us, attempts, miss_cause, missed_tokens, projection, reach, session_id)
			SELECT md5((1 + n % 2)::text)::uuid, gen_random_uuid(), '2026-01-30'::timestamptz + n * interval '7 minutes', md5('key')::uuid, 'anthropic', '/v1/messages',
				repeat('m', 250), 'client', 'main', false, 200, 1, 'frozen', n, n / 2, 5000, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, '', 0, 1, n % 3 = 0, md5('session' || n % 4)::uuid
			FROM generate_series(1, 100) n`,
		"SELECT fold_sums(md5('1')::uuid)",
	} {
		if _, err := owner.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if _, err := migrations.Up(t.Context(), database.OwnerURL); err != nil {
			t.Fatal(err)
		}
		for what, query := range map[string]string{
			"sums": `SELECT coalesce(string_agg(concat_ws(' ', workspace_id, at, b, a), ',' ORDER BY workspace_id, at), '') FROM (
				SELECT workspace_id, date_bin('30 minutes', at, 'epoch'::timestamptz) AS at, sum(tokens_before) AS b, sum(tokens_after) AS a FROM exchanges WHERE reach GROUP BY 1, 2
				EXCEPT SELECT workspace_id, at, sum(reach_before), sum(reach_after) FROM rollups_now WHERE part AND minutes = 30 GROUP BY 1, 2) wrong`,
			"days": `SELECT CASE WHEN (SELECT sum(reach_before) FROM rollups_now WHERE NOT part AND minutes = 1440) = (SELECT sum(tokens_before) FROM exchanges WHERE reach) THEN '' ELSE 'other sums' END`,
			"sessions": `SELECT coalesce(string_agg(concat_ws(' ', s.id, s.reach_before, s.reach_after, b, a), ','), '') FROM sessions s JOIN (
				SELECT workspace_id, session_id, sum(tokens_before) AS b, sum(tokens_after) AS a FROM exchanges WHERE reach GROUP BY 1, 2) e
				ON e.workspace_id = s.workspace_id AND e.session_id = s.id WHERE s.reach > 0 AND (s.reach_before, s.reach_after) <> (b, a)`,
		} {
			var wrong string
			if err := owner.QueryRow(t.Context(), query).Scan(&wrong); err != nil || wrong != "" {
				t.Errorf("%s: %s (%v)", what, wrong, err)
			}
		}
		if _, err := migrations.Down(t.Context(), database.OwnerURL); err != nil {
			t.Fatal(err)
		}
	}
}

// goBelow takes a schema back to what was before a migration.
func goBelow(t *testing.T, database *dbtest.Database, below int64) {
	t.Helper()
	for version := below; version >= below; {
		if _, err := migrations.Down(t.Context(), database.OwnerURL); err != nil {
			t.Fatal(err)
		}
		if err := database.Owner(t).QueryRow(t.Context(), "SELECT coalesce(max(version_id), 0) FROM goose_db_version").Scan(&version); err != nil {
			t.Fatal(err)
		}
	}
}

// appendedSums is the migration that has sums appended and folded later, reachTokens the one that adds up tokens of reach.
const (
	appendedSums = 145
	reachTokens  = 380
)
