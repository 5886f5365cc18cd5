-- +goose Up

-- Patterns of the kind "fix" are neither found nor offered anymore. The table's check still
-- allows the kind, because the version before may write it while this one comes up.
ALTER TABLE patterns NO FORCE ROW LEVEL SECURITY;
DELETE FROM patterns WHERE kind = 'fix';
ALTER TABLE patterns FORCE ROW LEVEL SECURITY;

-- +goose Down
SELECT 1;
