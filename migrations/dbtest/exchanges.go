package dbtest

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"palimpsest/tenants"
)

// fill makes a workspace's exchanges from one number to another, the newest now and at equal intervals: of
// three clients, four models and ten keys, with a rare one of each; some failed, some with a miss; most with
// tags.
const fill = `WITH made AS (
	SELECT g, date_trunc('second', now()) - make_interval(secs => g * $4::float8) AS at, md5(g::text) AS random, md5('session' || g / $5::int)::uuid AS session
	FROM generate_series($2::int, $3::int - 1) g
), inserted AS (
	INSERT INTO exchanges (workspace_id, id, at, session_id, lane_id, api_key_id, provider, endpoint, model, client, class, stream, status,
		error_from, error_type, position, compression, tokens_before, tokens_after, window_tokens, level_0, level_1, level_2, level_3,
		input_tokens, cache_read_tokens, cache_write_tokens, output_tokens, cost_microusd, net_microusd, overhead_us, ttfb_us, duration_us,
		attempts, report, miss_cause, missed_tokens, projection, tags)
	SELECT $1, (lpad(to_hex((extract(epoch FROM at) * 1000)::bigint), 12, '0') || '7' || substr(random, 1, 3) || '8' || substr(random, 4, 15))::uuid,
		at, session, session AS lane, lpad(to_hex(g % 10), 32, '0')::uuid, 'anthropic', '/v1/messages',
		CASE WHEN g % 500 = 3 THEN 'rare' ELSE 'model-' || g % 4 END, CASE WHEN g % 500 = 7 THEN 'rare' ELSE 'client-' || g % 3 END, 'main', true,
		CASE WHEN g % 50 = 9 THEN 529 WHEN g % 500 = 11 THEN 429 ELSE 200 END,
		CASE WHEN g % 50 = 9 THEN 'provider' WHEN g % 500 = 11 THEN 'proxy' ELSE '' END,
		CASE WHEN g % 50 = 9 THEN 'overloaded_error' WHEN g % 500 = 11 THEN 'rate_limit_error' ELSE '' END,
		g % 60 * 2 + 1, CASE WHEN g % 60 = 20 THEN 'epoch' WHEN g % 60 > 20 THEN 'none' ELSE 'frozen' END, 90000 + g % 60000, 60000, 200000,
		20, 5, 3, 1, 900, 58000, 1100, 700, 41000 + g % 1000, g % 7000 - 500, 1500 + g % 4000, 900000, 9000000, 1,
		jsonb_build_object('compression', 'frozen', 'before', 90000, 'after', 60000, 'limit', 200000, 'levels', '[20,5,3,1]'::jsonb, 'archived', 0,
			'modules', jsonb_build_array(
				jsonb_build_object('name', 'ipc', 'outcome', 'applied'), jsonb_build_object('name', 'compaction-bridge', 'outcome', 'noop'),
				jsonb_build_object('name', 'rehydrator', 'outcome', 'noop'),
				jsonb_build_object('name', 'patterns', 'outcome', CASE WHEN g % 1000 = 0 THEN 'applied' ELSE 'noop' END)),
			'events', jsonb_build_array(jsonb_build_object('module', 'ipc', 'type', 'skipped', 'reason', 'below the target'))),
		CASE WHEN g % 60 = 59 THEN 'cold_start' WHEN g % 100 = 13 THEN 'provider' ELSE '' END, CASE WHEN g % 100 = 13 THEN 20000 ELSE 0 END, 1,
		CASE WHEN g % 5 <> 1 THEN jsonb_build_object('env', 'prod', 'team', 'team-' || g % 20, 'run', (g / 1000)::text) END
	FROM made RETURNING at, id, tags
)
INSERT INTO exchange_tags (workspace_id, tag, at, exchange_id)
	SELECT $1, t.key || '=' || t.value, i.at, i.id FROM inserted i, jsonb_each_text(i.tags) t`

const (
	// together is how many exchanges one statement makes.
	together = 100_000

	exchangesOfSession = 60
)

// FillExchanges gives a workspace so many exchanges, one a second, in sessions of sixty without rows of their
// own, and runs VACUUM ANALYZE.
func FillExchanges(t testing.TB, owner *pgxpool.Pool, workspace tenants.WorkspaceID, count int) {
	t.Helper()
	fillExchanges(t, owner, workspace, count, time.Second, exchangesOfSession)
	run(t, owner, "VACUUM ANALYZE exchanges, exchange_tags")
}

func fillExchanges(t testing.TB, owner *pgxpool.Pool, workspace tenants.WorkspaceID, count int, apart time.Duration, ofSession int) {
	t.Helper()
	for from := 0; from < count; from += together {
		run(t, owner, fill, workspace, from, min(from+together, count), apart.Seconds(), ofSession)
	}
}

func run(t testing.TB, owner *pgxpool.Pool, statement string, arguments ...any) {
	t.Helper()
	if _, err := owner.Exec(t.Context(), statement, arguments...); err != nil {
		t.Fatalf("%.100s: %v", statement, err)
	}
}
