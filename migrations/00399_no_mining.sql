-- +goose Up

-- Patterns are no longer found in sessions. Those that no one approved hold words of sessions and
-- go; what someone approved or wrote stays. The tables pattern_lanes and pattern_uses stay for
-- the version before, which may still write them while this one comes up; pattern_evidence also
-- says whose words an approved pattern holds, for the erasure of an end user.
ALTER TABLE patterns NO FORCE ROW LEVEL SECURITY;
DELETE FROM patterns WHERE source = 'mined' AND (status <> 'approved' OR edited_by IS NULL);
UPDATE patterns SET status = 'disabled' WHERE status IN ('candidate', 'rejected');
ALTER TABLE patterns FORCE ROW LEVEL SECURITY;

-- +goose Down
SELECT 1;
