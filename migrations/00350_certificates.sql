-- +goose Up

-- What an epoch has kept of what must not be lost: counts and message numbers, no text. NULL: from
-- before it was compared.
ALTER TABLE epochs ADD COLUMN certificate jsonb;
-- How much of that is lost: neither in the prompt nor one recall away.
ALTER TABLE epochs ADD COLUMN lost integer;

-- +goose Down
ALTER TABLE epochs DROP COLUMN lost;
ALTER TABLE epochs DROP COLUMN certificate;
