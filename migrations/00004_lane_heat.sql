-- +goose Up

ALTER TABLE lanes
  -- The last prompt that went to the provider and how long its cache lives.
  ADD COLUMN warm_at         timestamptz,               -- NULL: none is known of
  ADD COLUMN warm_seconds    int NOT NULL DEFAULT 0 CHECK (warm_seconds >= 0),    -- 0: nothing caches it
  ADD COLUMN warm_projection int NOT NULL DEFAULT 0,
  ADD COLUMN warm_position   int NOT NULL DEFAULT 0,
  ADD COLUMN warm_tokens     int NOT NULL DEFAULT 0,
  ADD COLUMN warm_model      text NOT NULL DEFAULT '',
  -- Epochs that came to nothing.
  ADD COLUMN tried_at     timestamptz,                  -- NULL: there was none
  ADD COLUMN fruitless    int NOT NULL DEFAULT 0 CHECK (fruitless >= 0),       -- in a row
  ADD COLUMN tried_reason text NOT NULL DEFAULT '',
  ADD COLUMN tried_tokens int NOT NULL DEFAULT 0,       -- size of the prompt
  ADD COLUMN tried_limit  int NOT NULL DEFAULT 0;       -- and what it might have

-- +goose Down
ALTER TABLE lanes
  DROP COLUMN warm_at, DROP COLUMN warm_seconds, DROP COLUMN warm_projection, DROP COLUMN warm_position,
  DROP COLUMN warm_tokens, DROP COLUMN warm_model,
  DROP COLUMN tried_at, DROP COLUMN fruitless, DROP COLUMN tried_reason, DROP COLUMN tried_tokens, DROP COLUMN tried_limit;
