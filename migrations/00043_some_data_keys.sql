-- +goose Up

-- A start tries whether its master keys open some data key of any workspace, before
-- it touches anything that is derived from them.
CREATE POLICY worker ON data_keys FOR SELECT USING ((SELECT current_setting('app.worker', true)) = 'rotation');

-- +goose Down
DROP POLICY worker ON data_keys;
