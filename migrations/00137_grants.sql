-- +goose Up

-- The app login keeps the rights that a statement of the program needs, and no others. Rows of
-- most of these tables are deleted with their workspace, session or lane, by foreign keys, which
-- need no right of the login.
REVOKE SELECT, UPDATE, DELETE ON mails, subscription_ends FROM palimpsest_app; -- jobs use the worker login
REVOKE SELECT, DELETE ON account_requests FROM palimpsest_app;
REVOKE UPDATE, DELETE ON pipeline_configs, archive_entries, epochs, summaries, data_keys FROM palimpsest_app;
REVOKE UPDATE ON billing_events, users FROM palimpsest_app;
REVOKE DELETE ON archive_documents, archive_indexed, archive_vectors, joined_lanes, lane_heads, pattern_lanes, pattern_uses FROM palimpsest_app;
REVOKE DELETE ON alert_settings FROM palimpsest_app;
GRANT UPDATE (session_id) ON archive_entries TO palimpsest_app;
GRANT UPDATE (projection) ON epochs TO palimpsest_app;
GRANT UPDATE (session_id, text, sealed) ON summaries TO palimpsest_app;
GRANT UPDATE (wrapped, wrapped_at) ON data_keys TO palimpsest_app;
GRANT UPDATE (done_at) ON billing_events TO palimpsest_app;
GRANT UPDATE (email, password_hash, verified_at) ON users TO palimpsest_app;

-- +goose Down
GRANT DELETE ON alert_settings TO palimpsest_app;
GRANT SELECT, UPDATE, DELETE ON mails, subscription_ends TO palimpsest_app;
GRANT SELECT, DELETE ON account_requests TO palimpsest_app;
GRANT UPDATE, DELETE ON pipeline_configs, archive_entries, epochs, summaries, data_keys TO palimpsest_app;
GRANT UPDATE ON billing_events, users TO palimpsest_app;
GRANT DELETE ON archive_documents, archive_indexed, archive_vectors, joined_lanes, lane_heads, pattern_lanes, pattern_uses TO palimpsest_app;
