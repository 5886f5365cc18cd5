-- +goose Up

-- A request whose prompt the provider would have refused for its length, and which it
-- answered because we shortened it, is counted and saves no money. What the provider takes
-- and the size above which the prompt was to be compressed stand with each request.
ALTER TABLE exchanges
  ADD COLUMN reach         boolean NOT NULL DEFAULT false,
  ADD COLUMN takes_tokens  int     NOT NULL DEFAULT 0, -- 0 if not recorded: window_tokens comes closest
  ADD COLUMN target_tokens int     NOT NULL DEFAULT 0; -- 0 if never, or not recorded
ALTER TABLE rollups  ADD COLUMN reach bigint NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN reach bigint NOT NULL DEFAULT 0;

-- What adds exchanges to the rollups adds one figure more.
-- +goose StatementBegin
DO $$
DECLARE
  body text := (SELECT prosrc FROM pg_proc WHERE oid = 'add_rollups'::regproc);
  more text := body;
BEGIN
  more := replace(more, 'own_microusd, ttl_expiry, ', 'own_microusd, reach, ttl_expiry, ');
  more := replace(more, 'coalesce(sum(cost_microusd) FILTER (WHERE own), 0), ', 'coalesce(sum(cost_microusd) FILTER (WHERE own), 0), count(*) FILTER (WHERE reach), ');
  more := replace(more, 'own_microusd = rollups.own_microusd + EXCLUDED.own_microusd, ',
    'own_microusd = rollups.own_microusd + EXCLUDED.own_microusd, reach = rollups.reach + EXCLUDED.reach, ');
  IF length(more) <> length(body) + length('reach, count(*) FILTER (WHERE reach), reach = rollups.reach + EXCLUDED.reach, ') THEN
    RAISE EXCEPTION 'add_rollups is not the function that this migration knows';
  END IF;
  EXECUTE 'CREATE OR REPLACE FUNCTION add_rollups() RETURNS trigger LANGUAGE plpgsql AS ' || quote_literal(more);
END $$;
-- +goose StatementEnd

-- What was recorded before is corrected, in the sums too. Requests of deleted sessions are
-- in the sums only: they stay as they were counted.
ALTER TABLE exchanges NO FORCE ROW LEVEL SECURITY;
ALTER TABLE sessions  NO FORCE ROW LEVEL SECURITY;
ALTER TABLE rollups   NO FORCE ROW LEVEL SECURITY;
LOCK TABLE exchanges IN SHARE ROW EXCLUSIVE MODE;
CREATE TEMPORARY TABLE unpriced ON COMMIT DROP AS
  SELECT workspace_id, id, session_id, at, client, model, api_key_id, net_microusd, unread_microusd, rewritten_microusd,
    (tokens_after <= window_tokens)::int AS reach
  FROM exchanges WHERE window_tokens > 0 AND tokens_before > window_tokens
    AND input_tokens + cache_read_tokens + cache_write_tokens > 0 AND class NOT IN ('summary', 'embedding');
UPDATE rollups r SET net_microusd = r.net_microusd - u.net, unread_microusd = r.unread_microusd - u.unread,
    rewritten_microusd = r.rewritten_microusd - u.rewritten, reach = r.reach + u.reach
  FROM (
    SELECT workspace_id, part, minutes, date_bin(make_interval(mins => minutes), at, 'epoch'::timestamptz) AS at,
      CASE WHEN part THEN left(client, 100) ELSE '' END AS client, CASE WHEN part THEN left(model, 200) ELSE '' END AS model,
      CASE WHEN part THEN api_key_id ELSE '00000000-0000-0000-0000-000000000000' END AS api_key_id,
      sum(net_microusd) AS net, sum(unread_microusd) AS unread, sum(rewritten_microusd) AS rewritten, sum(reach) AS reach
    FROM unpriced CROSS JOIN (VALUES (false), (true)) AS parts (part) CROSS JOIN (VALUES (30), (360), (1440)) AS widths (minutes)
    GROUP BY 1, 2, 3, 4, 5, 6, 7
  ) u WHERE r.workspace_id = u.workspace_id AND r.part = u.part AND r.minutes = u.minutes AND r.at = u.at
    AND r.client = u.client AND r.model = u.model AND r.api_key_id = u.api_key_id;
UPDATE sessions s SET net_microusd = s.net_microusd - u.net, reach = u.reach
  FROM (SELECT workspace_id, session_id, sum(net_microusd) AS net, sum(reach) AS reach FROM unpriced GROUP BY 1, 2) u
  WHERE s.workspace_id = u.workspace_id AND s.id = u.session_id;
UPDATE exchanges e SET net_microusd = 0, unread_microusd = 0, rewritten_microusd = 0, reach = u.reach = 1
  FROM unpriced u WHERE e.workspace_id = u.workspace_id AND e.id = u.id;
ALTER TABLE exchanges FORCE ROW LEVEL SECURITY;
ALTER TABLE sessions  FORCE ROW LEVEL SECURITY;
ALTER TABLE rollups   FORCE ROW LEVEL SECURITY;

-- +goose Down
-- +goose StatementBegin
DO $$
DECLARE
  body text := (SELECT prosrc FROM pg_proc WHERE oid = 'add_rollups'::regproc);
BEGIN
  body := replace(body, 'own_microusd, reach, ttl_expiry, ', 'own_microusd, ttl_expiry, ');
  body := replace(body, 'count(*) FILTER (WHERE reach), ', '');
  body := replace(body, 'reach = rollups.reach + EXCLUDED.reach, ', '');
  EXECUTE 'CREATE OR REPLACE FUNCTION add_rollups() RETURNS trigger LANGUAGE plpgsql AS ' || quote_literal(body);
END $$;
-- +goose StatementEnd
ALTER TABLE sessions  DROP COLUMN reach;
ALTER TABLE rollups   DROP COLUMN reach;
ALTER TABLE exchanges DROP COLUMN target_tokens, DROP COLUMN takes_tokens, DROP COLUMN reach;
