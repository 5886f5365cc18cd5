-- +goose Up

-- The same as before, sooner: every batch of exchanges that is recorded calls them for each
-- of its rollups. As queries they were planned anew in every statement, and compared each
-- bucket with each exchange.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION overheads_of(buckets int[]) RETURNS int[] LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
  histogram int[] := '{}';
  bucket int;
BEGIN
  IF buckets IS NULL THEN RETURN NULL; END IF;
  FOREACH bucket IN ARRAY buckets LOOP
    WHILE cardinality(histogram) <= bucket LOOP
      histogram[cardinality(histogram) + 1] := 0;
    END LOOP;
    histogram[bucket + 1] := histogram[bucket + 1] + 1;
  END LOOP;
  RETURN histogram;
END $$;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION overheads_sum(a int[], b int[]) RETURNS int[] LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
  IF a IS NULL OR b IS NULL THEN RETURN coalesce(a, b); END IF;
  IF cardinality(a) < cardinality(b) THEN RETURN overheads_sum(b, a); END IF;
  FOR i IN 1..cardinality(b) LOOP
    a[i] := a[i] + b[i];
  END LOOP;
  RETURN a;
END $$;
-- +goose StatementEnd

-- +goose Down
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION overheads_of(buckets int[]) RETURNS int[] LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT array_agg(n ORDER BY i) FROM (
    SELECT i, count(b)::int AS n FROM generate_series(0, (SELECT max(m) FROM unnest(buckets) m)) i LEFT JOIN unnest(buckets) b ON b = i GROUP BY i
  ) counted
$$;
-- +goose StatementEnd
CREATE OR REPLACE FUNCTION overheads_sum(a int[], b int[]) RETURNS int[] LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
$$ SELECT array_agg(coalesce(x, 0) + coalesce(y, 0) ORDER BY i) FROM unnest(a, b) WITH ORDINALITY AS t (x, y, i) $$;
