-- +goose Up

-- With which provider key the newest prompt of a lane went out: its account has the cache. The zero value
-- stands for none that is known, or one that a client brought along.
ALTER TABLE lanes ADD COLUMN IF NOT EXISTS warm_key uuid NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000';

-- Whether requests go to another provider key when one fails: '' (never), 'accounts' (keys are of different
-- accounts), 'account' (all keys with one base URL are of one account).
ALTER TABLE workspaces ADD COLUMN IF NOT EXISTS failover text NOT NULL DEFAULT '';

-- Whether requests may bring the provider's credential of their own, beside our key in X-Palimpsest-Key.
ALTER TABLE workspaces ADD COLUMN IF NOT EXISTS own_credentials boolean NOT NULL DEFAULT false;

-- +goose Down
ALTER TABLE workspaces DROP COLUMN IF EXISTS own_credentials;
ALTER TABLE workspaces DROP COLUMN IF EXISTS failover;
ALTER TABLE lanes DROP COLUMN IF EXISTS warm_key;
