-- +goose Up
-- The place (IPv4 address, or IPv6 /64 network) that a person logged in from: an attack
-- on their account from elsewhere does not slow them down there. '' where it is not known.
ALTER TABLE logins ADD COLUMN place text NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE logins DROP COLUMN place;
