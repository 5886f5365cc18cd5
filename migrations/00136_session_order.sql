-- +goose Up

-- The list of conversations by what was saved in them, and by what was received. Other lists are in the order of time.
CREATE INDEX sessions_net      ON sessions (workspace_id, net_microusd DESC, id DESC) WHERE NOT single;
CREATE INDEX sessions_received ON sessions (workspace_id, tokens_before DESC, id DESC) WHERE NOT single;

-- +goose Down
DROP INDEX sessions_received;
DROP INDEX sessions_net;
