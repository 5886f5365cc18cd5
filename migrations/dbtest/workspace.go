package dbtest

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"palimpsest/tenants"
)

// LargeSpan is the span of FillWorkspace's exchanges.
const LargeSpan = 90 * 24 * time.Hour

// FillWorkspace gives a workspace so many exchanges of 90 days, with a session for every ten of them: with a
// title, a lane, epochs, and an insert after a compaction in one of fifty; ten API keys, a rule for every
// thousand exchanges and an entry of the audit log for every hundred. All tables are analyzed. A million
// takes some minutes. The sessions have no messages, so their projections, inserts and archive contain no
// text to show.
//
// Titles are of forty words each in three places and end with the number of the session, counted from the
// newest: "Fix the parser of the gateway 17". Each has the number in its id, too: it is md5('session17').
func FillWorkspace(t testing.TB, owner *pgxpool.Pool, workspace tenants.WorkspaceID, exchanges int) {
	t.Helper()
	const ofSession = 10
	sessions := (exchanges + ofSession - 1) / ofSession
	apart := LargeSpan / time.Duration(exchanges)
	run(t, owner, fillSessions, workspace, sessions, (apart * ofSession).Seconds())
	run(t, owner, `INSERT INTO lanes (workspace_id, id, session_id, position, created_at, last_at)
		SELECT workspace_id, id AS lane, id AS session, 40, started_at, last_at FROM sessions WHERE workspace_id = $1`, workspace)
	run(t, owner, `INSERT INTO epochs (workspace_id, lane_id, number, covers, chain, projection, reason, tokens_before, tokens_after, created_at)
		SELECT workspace_id, id, number, 20 * number, 'c', 'p', 'target', 90000, 60000, last_at
		FROM sessions CROSS JOIN generate_series(1, 2) number WHERE workspace_id = $1 AND number <= epochs`, workspace)
	run(t, owner, `INSERT INTO lane_inserts (workspace_id, lane_id, number, message, chain, module, tokens)
		SELECT $1, md5('session' || n)::uuid, 1, 7, 'c', 'compaction-bridge', 100 FROM generate_series(0, $2::int - 1, 50) n`, workspace, sessions)
	fillExchanges(t, owner, workspace, exchanges, apart, ofSession)
	run(t, owner, `INSERT INTO api_keys (workspace_id, id, name, prefix, suffix, hash, scopes, created_by)
		SELECT $1::uuid, lpad(to_hex(n), 32, '0')::uuid, 'key ' || n, 'pk_live_' || n, 'abcd', sha256(convert_to($1::uuid::text || n, 'UTF8')), 'proxy', gen_random_uuid()
		FROM generate_series(0, 9) n`, workspace)
	run(t, owner, `INSERT INTO patterns (workspace_id, id, kind, text, words, status, source, created_at, edited_at, last_seen)
		SELECT $1, gen_random_uuid(), 'convention', 'We use tool ' || n || ' for it.', 'use tool ' || n, CASE n % 3 WHEN 0 THEN 'candidate' ELSE 'approved' END,
			'mined', now() - n * interval '1 hour', now(), now() FROM generate_series(1, $2::int) n`, workspace, exchanges/1000)
	run(t, owner, `INSERT INTO audit_entries (workspace_id, id, at, user_id, actor, action, target)
		SELECT $1, (lpad(to_hex((extract(epoch FROM at) * 1000)::bigint), 12, '0') || '7' || substr(md5(n::text), 1, 3) || '8' || substr(md5(n::text), 4, 15))::uuid,
			at, md5('user' || n % 20)::uuid, 'colleague' || n % 20, CASE n % 4 WHEN 0 THEN 'key.created' ELSE 'session.exported' END, 'target ' || n
		FROM (SELECT n, now() - n * interval '10 minutes' AS at FROM generate_series(1, $2::int) n) made`, workspace, exchanges/100)
	run(t, owner, "SELECT fold_sums($1), fold_tag_sums($1)", workspace) // as a job does every minute
	run(t, owner, "VACUUM ANALYZE")
}

const fillSessions = `INSERT INTO sessions (workspace_id, id, api_key_id, format, name, source, title, client, model, started_at, last_at,
		exchanges, epochs, tokens_before, tokens_after, net_microusd)
	SELECT $1, md5('session' || n)::uuid, lpad(to_hex(n % 10), 32, '0')::uuid, 'anthropic', CASE n % 2 WHEN 0 THEN 'run-' || md5('name' || n) ELSE '' END, 'header',
		verbs[1 + n % 40] || ' the ' || things[1 + n / 40 % 40] || ' of the ' || places[1 + n / 1600 % 40] || ' ' || n,
		CASE WHEN n % 500 = 7 THEN 'rare' ELSE 'client-' || n % 3 END, CASE WHEN n % 500 = 3 THEN 'rare' ELSE 'model-' || n % 4 END,
		now() - make_interval(secs => (n + 1) * $3::float8), now() - make_interval(secs => n * $3::float8),
		10, CASE WHEN n % 5 < 2 THEN 1 + n % 2 ELSE 0 END, 1000000, 600000, n % 7000 - 500
	FROM generate_series(0, $2::int - 1) n,
		string_to_array('Fix Add Remove Rename Review Explain Test Speed Move Split Merge Document Trace Profile Guard Retry Cache Sort Index Paint Print Parse Seal Open Close Count Draw Load Save Lock Watch Mend Ship Break Clean Bound Queue Route Sign Wrap Pin', ' ') verbs,
		string_to_array('parser webhook migration router dialog chart ledger archive token bucket mailer session planner cursor index trigger template stylesheet invoice checkout login passkey worker scheduler queue retry limiter proxy stream snippet palette header footer table filter export import backup restore quota', ' ') things,
		string_to_array('gateway dashboard billing service library client server console importer exporter website installer compiler linter formatter notebook pipeline cluster registry mirror crawler indexer renderer player editor shell browser daemon broker bridge adapter driver kernel loader resolver verifier signer watcher monitor simulator', ' ') places`
