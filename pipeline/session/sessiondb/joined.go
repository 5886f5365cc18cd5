package sessiondb

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"palimpsest/pipeline/batchdb"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/session"
	"palimpsest/tenants"
)

const (
	sqlJoin = `INSERT INTO joined_lanes (workspace_id, lane_id, into_id)
		SELECT $1, lane, into_lane FROM unnest($2::uuid[], $3::uuid[]) AS t (lane, into_lane)
		ON CONFLICT DO NOTHING`
	sqlClaim = `INSERT INTO lane_heads (workspace_id, head, lane_id, position, seen_at)
		SELECT $1, head, lane_id, position, seen_at
		FROM unnest($2::bytea[], $3::uuid[], $4::int[], $5::timestamptz[]) AS t (head, lane_id, position, seen_at)
		ON CONFLICT DO NOTHING`
	// Announced ends of a joined lane move to the other lane if they may belong to its history. Locked rows
	// are left to the next record.
	sqlReclaim = `UPDATE lane_heads h SET lane_id = t.into_lane FROM unnest($2::uuid[], $3::uuid[]) AS t (lane, into_lane)
		WHERE h.workspace_id = $1 AND h.head = ANY (ARRAY(
			SELECT head FROM lane_heads WHERE workspace_id = $1 AND lane_id = ANY($2::uuid[]) ORDER BY head FOR NO KEY UPDATE SKIP LOCKED
		)) AND h.lane_id = t.lane AND NOT EXISTS (
			SELECT FROM lane_heads o WHERE o.workspace_id = $1 AND o.lane_id = t.into_lane AND o.position >= h.position
		)`
	sqlClearLanes = `DELETE FROM lanes WHERE workspace_id = $1 AND id = ANY (ARRAY(
			SELECT id FROM lanes l WHERE workspace_id = $1 AND id = ANY($2::uuid[])
				AND NOT EXISTS (SELECT FROM archive_entries WHERE workspace_id = $1 AND lane_id = l.id)
				AND NOT EXISTS (SELECT FROM exchanges WHERE workspace_id = $1 AND lane_id = l.id)
				AND NOT EXISTS (SELECT FROM epochs WHERE workspace_id = $1 AND lane_id = l.id)
				AND NOT EXISTS (SELECT FROM lane_inserts WHERE workspace_id = $1 AND lane_id = l.id)
				AND NOT EXISTS (SELECT FROM lanes f WHERE f.workspace_id = $1 AND f.session_id = l.session_id AND f.parent_id = l.id)
			FOR UPDATE SKIP LOCKED
		))`
	sqlClearSessions = `DELETE FROM sessions WHERE workspace_id = $1 AND id = ANY (ARRAY(
			SELECT id FROM sessions s WHERE workspace_id = $1 AND id = ANY($2::uuid[]) AND exchanges = 0
				AND NOT EXISTS (SELECT FROM lanes WHERE workspace_id = $1 AND session_id = s.id)
				AND NOT EXISTS (SELECT FROM exchanges WHERE workspace_id = $1 AND session_id = s.id)
			FOR UPDATE SKIP LOCKED
		))`
)

// beginningKey is the lock key of histories with a first message, which are recorded one by one.
func beginningKey(workspace tenants.WorkspaceID, first conversation.Hash) int64 {
	return int64(binary.BigEndian.Uint64(first[:]) ^ binary.BigEndian.Uint64(workspace[8:])) //nolint:gosec // any number does
}

// keep stores which lanes have joined others and the earlier ends of opened lanes, and removes empty lanes
// and sessions. The exchanges of the updates have already been moved to their lanes.
func (j *joins) keep(tx *gorm.DB, workspace tenants.WorkspaceID, updates []session.Update) error {
	if err := j.claim(tx, workspace, updates); err != nil {
		return fmt.Errorf("ends of requests: %w", err)
	}
	if len(j.left) == 0 {
		return nil
	}
	var lanes, into, sessions []uuid.UUID
	for lane, session := range j.left {
		lanes, sessions = append(lanes, lane), append(sessions, session)
	}
	slices.SortFunc(lanes, func(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) })
	lanes = slices.DeleteFunc(lanes, func(lane uuid.UUID) bool { _, joined := j.into[lane]; return !joined })
	for _, lane := range lanes {
		into = append(into, j.into[lane].lane)
	}
	return errors.Join(
		batchdb.Later(tx, sqlJoin, workspace, lanes, into), batchdb.Later(tx, sqlReclaim, workspace, lanes, into),
		batchdb.Later(tx, sqlClearLanes, workspace, lanes), batchdb.Later(tx, sqlClearSessions, workspace, sessions))
}

// claim stores the earlier ends of the histories that opened a lane, so that later records of them find the
// lane.
func (j *joins) claim(tx *gorm.DB, workspace tenants.WorkspaceID, updates []session.Update) error {
	var (
		heads     [][]byte
		lanes     []uuid.UUID
		positions []int
		times     []time.Time
	)
	for _, place := range slices.Sorted(maps.Keys(j.claims)) {
		one := &updates[place]
		for _, known := range j.claims[place] {
			if one.Parent == uuid.Nil || known.position > one.ForkAt { // otherwise the end belongs to its parent
				heads, lanes = append(heads, known.link[:]), append(lanes, one.Lane)
				positions, times = append(positions, known.position), append(times, one.At)
			}
		}
	}
	if len(heads) == 0 {
		return nil
	}
	return batchdb.Later(tx, sqlClaim, workspace, heads, lanes, positions, times)
}
