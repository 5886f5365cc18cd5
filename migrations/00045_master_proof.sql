-- +goose Up

-- What the first start has sealed with its master key, so that a start with another is
-- refused also where nothing else is sealed yet. One row; it belongs to nobody.
CREATE TABLE master_proof (
  one       boolean PRIMARY KEY DEFAULT true CHECK (one),
  sealed    bytea NOT NULL,
  sealed_at timestamptz NOT NULL DEFAULT now()
);
CREATE POLICY worker ON master_proof
  USING ((SELECT current_setting('app.worker', true)) = 'rotation') WITH CHECK ((SELECT current_setting('app.worker', true)) = 'rotation');
ALTER TABLE master_proof ENABLE ROW LEVEL SECURITY;
ALTER TABLE master_proof FORCE ROW LEVEL SECURITY;
GRANT SELECT, UPDATE (sealed, sealed_at) ON master_proof TO palimpsest_app;

-- +goose Down
DROP TABLE master_proof;
