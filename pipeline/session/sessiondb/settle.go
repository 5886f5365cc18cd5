package sessiondb

import (
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"gorm.io/gorm"

	"palimpsest/pipeline/batchdb"
	"palimpsest/pipeline/sums"
	"palimpsest/tenants"
)

const (
	// Epochs, inserts and summaries have numbers in their lane, to which exchanges refer. A lane with any of
	// them stays unchanged.
	sqlSettles = `SELECT session_id FROM lanes l WHERE workspace_id = $1 AND id = $2 AND parent_id IS NULL
		AND NOT EXISTS (SELECT FROM epochs WHERE workspace_id = $1 AND lane_id = l.id)
		AND NOT EXISTS (SELECT FROM lane_inserts WHERE workspace_id = $1 AND lane_id = l.id)
		AND NOT EXISTS (SELECT FROM summaries WHERE workspace_id = $1 AND lane_id = l.id)`
	sqlDescends    = sqlDescent + `SELECT id FROM line WHERE id = $3`
	sqlLockTwo     = `SELECT id FROM sessions WHERE workspace_id = $1 AND id IN ($2, $3) ORDER BY id FOR UPDATE`
	sqlHeldBy      = `SELECT hash FROM archive_entries WHERE workspace_id = $1 AND lane_id = $2`
	sqlDropSession = `DELETE FROM sessions WHERE workspace_id = $1 AND id = $2`
	sqlUnindexedOf = `INSERT INTO archive_unindexed (workspace_id, lane_id) VALUES ($1, $2)
		ON CONFLICT (workspace_id, lane_id) DO UPDATE SET number = archive_unindexed.number + 1`
)

// sqlSumUp adds the sums of a session to those of the one that it joins.
func sqlSumUp() string {
	return `UPDATE sessions s SET ` + sums.SQL(sessionSums(), "% = s.% + o.%", ", ") + `, failed = s.failed OR o.failed, bridged = s.bridged OR o.bridged,
			started_at = least(s.started_at, o.started_at), last_at = greatest(s.last_at, o.last_at),
			title = CASE WHEN s.title = '' OR o.title <> '' AND o.started_at < s.started_at THEN o.title ELSE s.title END
		FROM sessions o WHERE s.workspace_id = $1 AND s.id = $3 AND o.workspace_id = $1 AND o.id = $2`
}

// ofSession returns the statements that replace a session's id with another one in all tables.
func ofSession() []string {
	var statements []string
	for _, table := range []string{"lanes", "archive_entries", "archive_documents", "summaries", "pattern_evidence", "exchanges", "session_comments"} {
		statements = append(statements, "UPDATE "+table+" SET session_id = $3 WHERE workspace_id = $1 AND session_id = $2")
	}
	return append(statements, `INSERT INTO session_stars (workspace_id, user_id, session_id, starred_at)
		SELECT workspace_id, user_id, $3, starred_at FROM session_stars WHERE workspace_id = $1 AND session_id = $2
		ON CONFLICT DO NOTHING`,
		`INSERT INTO session_labels (workspace_id, session_id, label, user_id, labeled_at)
		SELECT workspace_id, $3, label, user_id, labeled_at FROM session_labels WHERE workspace_id = $1 AND session_id = $2
		ON CONFLICT DO NOTHING`,
		`UPDATE session_scores s SET session_id = $3 WHERE workspace_id = $1 AND session_id = $2
		AND NOT EXISTS (SELECT FROM session_scores o WHERE o.workspace_id = $1 AND o.session_id = $3 AND o.user_id = s.user_id)`)
}

// ofLane returns the statements that move a lane's data to another one. Data derived from its messages is not
// moved, because it is made again.
func ofLane() []string {
	return []string{
		`INSERT INTO archive_entries (workspace_id, lane_id, index, session_id, hash, role, tokens, stored_at, flags)
			SELECT e.workspace_id, $3, e.index, l.session_id, e.hash, e.role, e.tokens, e.stored_at, e.flags
			FROM archive_entries e JOIN lanes l ON l.workspace_id = $1 AND l.id = $3
			WHERE e.workspace_id = $1 AND e.lane_id = $2 AND e.index >= l.fork_at ORDER BY e.index
			ON CONFLICT DO NOTHING`,
		`UPDATE exchanges SET lane_id = $3 WHERE workspace_id = $1 AND lane_id = $2`,
		`UPDATE lane_heads SET lane_id = $3 WHERE workspace_id = $1 AND lane_id = $2`,
		`UPDATE lanes SET parent_id = $3 WHERE workspace_id = $1 AND parent_id = $2`,
		`INSERT INTO lane_pins (workspace_id, lane_id, message, pinned_by, pinned_at)
			SELECT workspace_id, $3, message, pinned_by, pinned_at FROM lane_pins WHERE workspace_id = $1 AND lane_id = $2
			ON CONFLICT DO NOTHING`,
		`UPDATE session_comments SET lane_id = $3 WHERE workspace_id = $1 AND lane_id = $2`,
		`UPDATE lanes l SET position = greatest(l.position, o.position), created_at = least(l.created_at, o.created_at),
				last_at = greatest(l.last_at, o.last_at)
			FROM lanes o WHERE l.workspace_id = $1 AND l.id = $3 AND o.workspace_id = $1 AND o.id = $2`,
		`UPDATE joined_lanes SET into_id = $3 WHERE workspace_id = $1 AND into_id = $2`,
		`INSERT INTO joined_lanes (workspace_id, lane_id, into_id) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`,
	}
}

// settle moves all records of a lane to the lane that it turned out to be a part of, and reports whether it
// has. For messages in both lanes, the other lane's version stays. A lane never joins its own fork, which
// needs the messages before it.
func settle(tx *gorm.DB, workspace tenants.WorkspaceID, lane uuid.UUID, into *berth) (bool, error) {
	pool, ctx := tx.Statement.ConnPool, tx.Statement.Context
	sessions, err := column[uuid.UUID](tx, sqlSettles, workspace, lane)
	if err != nil || len(sessions) == 0 {
		return false, err
	}
	from := sessions[0]
	if _, err := pool.ExecContext(ctx, sqlLockTwo, workspace, from, into.session); err != nil {
		return false, fmt.Errorf("sessions of lane %s: %w", lane, err)
	}
	if forks, err := batchdb.Rows(tx, pgx.RowTo[uuid.UUID], sqlDescends, workspace, into.lane, lane); err != nil || len(forks) > 0 {
		return false, batchdb.Wrapf(err, "ancestors of lane %s", into.lane)
	}
	held, err := column[[]byte](tx, sqlHeldBy, workspace, lane)
	if err != nil {
		return false, fmt.Errorf("messages of lane %s: %w", lane, err)
	}
	if from != into.session {
		for _, statement := range append(ofSession(), sqlSumUp()) {
			if _, err := pool.ExecContext(ctx, statement, workspace, from, into.session); err != nil {
				return false, fmt.Errorf("join session %s to %s: %w", from, into.session, err)
			}
		}
	}
	for _, statement := range ofLane() {
		if _, err := pool.ExecContext(ctx, statement, workspace, lane, into.lane); err != nil {
			return false, fmt.Errorf("join lane %s to %s: %w", lane, into.lane, err)
		}
	}
	if _, err := pool.ExecContext(ctx, `DELETE FROM lanes WHERE workspace_id = $1 AND id = $2`, workspace, lane); err != nil {
		return false, fmt.Errorf("remove lane %s: %w", lane, err)
	}
	if from != into.session {
		if _, err := pool.ExecContext(ctx, sqlDropSession, workspace, from); err != nil {
			return false, fmt.Errorf("remove session %s: %w", from, err)
		}
	}
	if _, err := pool.ExecContext(ctx, sqlUnindexedOf, workspace, into.lane); err != nil {
		return false, fmt.Errorf("index lane %s: %w", into.lane, err)
	}
	for _, statement := range []string{sqlLockObjects, sqlDeleteObjects, sqlDoomObjects} { // other spellings of the same messages
		if _, err := pool.ExecContext(ctx, statement, workspace, held); err != nil {
			return false, fmt.Errorf("archived messages: %w", err)
		}
	}
	return true, notify(tx, workspace, lane, 0)
}
