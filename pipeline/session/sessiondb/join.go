package sessiondb

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"gorm.io/gorm"

	"palimpsest/pipeline/batchdb"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/session"
	"palimpsest/tenants"
)

const (
	sqlLaneColumns = `l.id, l.session_id, coalesce(l.parent_id, '00000000-0000-0000-0000-000000000000'), l.fork_at, l.fork_epoch, l.fork_insert`
	sqlJoined      = `SELECT j.lane_id, ` + sqlLaneColumns + `
		FROM joined_lanes j CROSS JOIN LATERAL (
			SELECT id, session_id, parent_id, fork_at, fork_epoch, fork_insert FROM lanes WHERE workspace_id = $1 AND id = j.into_id OFFSET 0
		) l
		WHERE j.workspace_id = $1 AND j.lane_id = ANY($2::uuid[])`
	// These locks make one of two processes that record lanes with the same beginning see the other's record.
	// A transaction takes them before it locks rows.
	sqlLockBeginnings = `SELECT pg_advisory_xact_lock(key) FROM unnest($1::bigint[]) AS key`
	// The lanes with ends on the histories of exchanges of other lanes, the furthest first, with the data
	// that decides which of the two is a part of the other.
	sqlOnTheWay = `SELECT t.place, t.answer, h.position, ` + sqlLaneColumns + `, l.position, l.created_at,
			(SELECT count(*) FROM lane_entries($1, l.id, 0, h.position)) >= h.position,
			EXISTS (SELECT FROM lane_entries($1, l.id, t.answer, t.answer + 1) e WHERE e.hash = t.said),
			EXISTS (SELECT FROM archive_entries WHERE workspace_id = $1 AND lane_id = t.lane),
			coalesce((SELECT position FROM lanes WHERE workspace_id = $1 AND id = t.lane), 0)
		FROM unnest($2::int[], $3::uuid[], $4::text[], $5::bytea[], $6::int[], $7::bytea[]) AS t (place, lane, kind, head, answer, said)
		CROSS JOIN LATERAL (SELECT lane_id, position FROM lane_heads WHERE workspace_id = $1 AND head = t.head AND lane_id <> t.lane OFFSET 0) h
		CROSS JOIN LATERAL (SELECT * FROM lanes WHERE workspace_id = $1 AND id = h.lane_id OFFSET 0) l
		WHERE l.kind = t.kind
		ORDER BY t.place, h.position DESC`
)

// berth is a lane that another one has joined.
type berth struct {
	session.Ancestry

	lane, session uuid.UUID
}

func (b *berth) columns() []any {
	return []any{&b.lane, &b.session, &b.Parent, &b.ForkAt, &b.Inherited, &b.Taken}
}

// onTheWay is a lane with an end on the history of another lane's exchange.
type onTheWay struct {
	berth

	place    int       // of the exchange
	opens    bool      // the exchange is the first of its lane in this batch
	furthest bool      // no other lane has an end further along
	answer   int       // place of the first answer among the messages of the exchange, or -1
	met      int       // messages up to that end
	tip      int       // messages of the lane's request that went furthest
	created  time.Time // when the lane's first request came
	held     bool      // the archive has the messages up to that end
	said     bool      // it also has the first answer of the exchange's history
	stored   bool      // the exchange's own lane has messages in the archive
	ownTip   int       // messages of the longest request of the exchange's lane
}

// continues reports whether an exchange that opens a lane belongs to this one, as a process that knew both
// would have decided.
func (w *onTheWay) continues(one *session.Update) bool {
	switch {
	case one.Name != "" || w.answer >= 0 && w.answer < w.met:
		return true
	case w.answer < 0: // runs may begin with the same words, so the other must have gone on in the meantime
		return w.tip > w.met && w.created.After(one.At)
	}
	return w.tip == w.met || w.said
}

// joins holds the joined lanes of one record.
type joins struct {
	into   map[uuid.UUID]berth     // by the lane that has joined, now or earlier
	left   map[uuid.UUID]uuid.UUID // sessions of joined lanes with exchanges in the record
	claims map[int][]end           // by the index of the exchange that has opened its lane
}

// end is the end of an unknown request of a history.
type end struct {
	link     conversation.Hash
	position int
}

// joinLanes moves exchanges, in place, whose lane is a part of another one, because a replica that did not
// know a session has opened a second lane for it. The lane recorded later joins the other one, with all its
// later records. If the histories differ after their shared part, leaveStrays makes a fork.
func joinLanes(tx *gorm.DB, workspace tenants.WorkspaceID, updates []session.Update) (*joins, error) {
	j := &joins{left: make(map[uuid.UUID]uuid.UUID), claims: make(map[int][]end)}
	if err := j.known(tx, workspace, updates); err != nil {
		return nil, fmt.Errorf("lanes that have joined others: %w", err)
	}
	if err := j.find(tx, workspace, updates); err != nil {
		return nil, fmt.Errorf("lanes on the way: %w", err)
	}
	for i := range updates {
		one, was, session := &updates[i], updates[i].Lane, updates[i].Session
		if !j.move(one) {
			continue
		}
		if _, told := j.left[was]; told {
			continue
		}
		if j.left[was] = session; one.Lane != was {
			if err := notify(tx, workspace, was, 0); err != nil { // processes that remember it find the other lane
				return nil, err
			}
		}
	}
	return j, nil
}

// recordParts is record for exchanges of which several may open lanes with the same beginning. It splits the
// batch so that each such lane sees the records of those before it.
func (s *Store) recordParts(tx *gorm.DB, workspace tenants.WorkspaceID, updates []session.Update) error {
	var keys []int64
	var starts []int
	begun, opened := make(map[conversation.Hash]bool), make(map[uuid.UUID]bool)
	for i := range updates {
		one := &updates[i]
		if opened[one.Lane] || !isOpening(one) {
			continue
		}
		opened[one.Lane] = true
		if keys = append(keys, beginningKey(workspace, one.Messages.Links[1])); begun[one.Messages.Links[1]] {
			starts = append(starts, i)
		}
		begun[one.Messages.Links[1]] = true
	}
	if len(starts) > 0 { // all locks come before the rows of the first part
		if err := lockBeginnings(tx, keys); err != nil {
			return err
		}
	}
	from := 0
	for _, to := range append(starts, len(updates)) {
		if err := s.record(tx, workspace, updates[from:to]); err != nil {
			return err
		}
		from = to
	}
	return nil
}

// lockBeginnings makes others that record lanes with the same beginnings wait.
func lockBeginnings(tx *gorm.DB, keys []int64) error {
	slices.Sort(keys)
	return batchdb.Later(tx, sqlLockBeginnings, slices.Compact(keys))
}

// known reads which lanes of the exchanges have already joined others.
func (j *joins) known(tx *gorm.DB, workspace tenants.WorkspaceID, updates []session.Update) error {
	var lanes []uuid.UUID
	for i := range updates {
		lanes = append(lanes, updates[i].Lane)
		if updates[i].Parent != uuid.Nil {
			lanes = append(lanes, updates[i].Parent)
		}
	}
	slices.SortFunc(lanes, func(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) })
	j.into = make(map[uuid.UUID]berth)
	return batchdb.Each(tx, func(row pgx.CollectableRow) error {
		var lane uuid.UUID
		var into berth
		err := row.Scan(append([]any{&lane}, into.columns()...)...)
		j.into[lane] = into
		return err
	}, sqlJoined, workspace, slices.Compact(lanes))
}

// find finds the lanes that the exchanges' lanes are a part of, or the other way round, and notes where
// earlier requests of their histories ended.
func (j *joins) find(tx *gorm.DB, workspace tenants.WorkspaceID, updates []session.Update) error {
	var asked endsAsked
	var keys []int64
	known := make(map[uuid.UUID]bool)
	for i := range updates {
		one := &updates[i]
		isFirst := !known[one.Lane]
		known[one.Lane] = true
		if _, joined := j.into[one.Lane]; joined || one.Parent != uuid.Nil || one.Kind == session.Side || !one.HasHead() {
			continue
		}
		ends, answer := endsOf(one)
		if isOpening(one) && isFirst {
			keys = append(keys, beginningKey(workspace, one.Messages.Links[1]))
			asked.opens = append(asked.opens, i)
		} else {
			ends = slices.DeleteFunc(ends, func(e end) bool { return e.position <= answer }) // other lanes may begin with the same messages
			if len(ends) == 0 {
				continue
			}
		}
		j.claims[i] = ends
		asked.add(i, one, ends, answer)
	}
	if len(asked.places) == 0 {
		return nil
	}
	if len(keys) > 0 {
		if err := lockBeginnings(tx, keys); err != nil {
			return err
		}
	}
	found, err := asked.ask(tx, workspace)
	if err != nil {
		return err
	}
	for i := range found {
		if err := j.take(tx, workspace, &found[i], &updates[found[i].place]); err != nil {
			return err
		}
	}
	return nil
}

// take joins the lane of an exchange to one found on its way, or the other way round if that lane goes no
// further.
func (j *joins) take(tx *gorm.DB, workspace tenants.WorkspaceID, way *onTheWay, one *session.Update) error {
	if _, joined := j.into[one.Lane]; joined {
		return nil
	}
	switch own := (berth{lane: one.Lane, session: one.Session}); {
	case !way.stored && way.opens && way.furthest && way.continues(one):
		j.into[one.Lane] = way.berth
		if way.held {
			one.Skip(way.met)
		}
	case way.answer < 0 || way.answer >= way.met || !way.stored:
	case way.met == one.Messages.Position && way.ownTip <= one.Messages.Position:
		settled, err := settle(tx, workspace, one.Lane, &way.berth)
		if settled {
			j.into[one.Lane] = way.berth
		}
		return err
	case way.met == way.tip && way.Parent == uuid.Nil:
		settled, err := settle(tx, workspace, way.lane, &own)
		if settled {
			j.into[way.lane] = own
		}
		return err
	}
	return nil
}

// endsAsked holds the ends of requests to look up, column by column.
type endsAsked struct {
	opens           []int // places of exchanges that may open a lane
	places, answers []int
	lanes           []uuid.UUID
	kinds           []string
	heads, said     [][]byte
}

func (a *endsAsked) add(place int, one *session.Update, ends []end, answer int) {
	var first []byte
	if answer >= 0 {
		first = one.Messages.Entries[answer-one.First()].Hash[:]
	}
	for _, known := range append(slices.Clone(ends), end{link: one.Messages.Head, position: one.Messages.Position}) {
		a.places, a.lanes, a.kinds = append(a.places, place), append(a.lanes, one.Lane), append(a.kinds, string(cmp.Or(one.Kind, session.Main)))
		a.heads, a.answers, a.said = append(a.heads, known.link[:]), append(a.answers, answer), append(a.said, first)
	}
}

// ask returns the lanes on the way of exchanges, by index, the furthest first.
func (a *endsAsked) ask(tx *gorm.DB, workspace tenants.WorkspaceID) (found []onTheWay, err error) {
	err = batchdb.Each(tx, func(row pgx.CollectableRow) error {
		var way onTheWay
		columns := append([]any{&way.place, &way.answer, &way.met}, way.columns()...)
		if err := row.Scan(append(columns, &way.tip, &way.created, &way.held, &way.said, &way.stored, &way.ownTip)...); err != nil {
			return err
		}
		way.furthest = len(found) == 0 || found[len(found)-1].place != way.place
		way.opens = slices.Contains(a.opens, way.place)
		found = append(found, way)
		return nil
	}, sqlOnTheWay, workspace, a.places, a.lanes, a.kinds, a.heads, a.answers, a.said)
	return found, err
}

// move assigns an exchange to the lane that its own lane has joined, and reports whether there is one. A fork
// of a joined lane is found again by its history.
func (j *joins) move(one *session.Update) bool {
	was := one.Lane
	into, joined := j.into[was]
	of, forked := j.into[one.Parent]
	switch {
	case joined:
		one.MoveTo(into.lane, into.Ancestry)
		one.Session = into.session
		one.Skip(into.ForkAt)
	case forked && one.Kind == session.Side:
		one.MoveTo(one.Lane, session.Ancestry{Parent: of.lane, ForkAt: one.ForkAt})
		one.Session = of.session
	case forked:
		one.MoveTo(of.lane, of.Ancestry)
		one.Session = of.session
		one.Skip(of.ForkAt)
		j.into[was] = of
	default:
		return false
	}
	if one.Heat.Projection > 0 { // the number is one of the removed lane
		one.Heat, one.Ahead = session.CacheState{}, nil
	}
	return true
}

// isOpening reports whether an exchange adds the first messages of its lane.
func isOpening(one *session.Update) bool {
	return one.Parent == uuid.Nil && one.Kind != session.Side && one.HasHead() && one.First() == 0 && len(one.Messages.Links) > 1
}

// endsOf returns the ends of earlier requests in an exchange's history, if visible in its entries, and the
// index of the first answer among them, or -1.
func endsOf(one *session.Update) (ends []end, answer int) {
	answer = -1
	if len(one.Messages.Links) == 0 {
		return nil, answer
	}
	for i := range one.Messages.Entries {
		if one.Messages.Entries[i].Role != conversation.Assistant {
			continue
		}
		if answer < 0 {
			answer = one.First() + i
		}
		if i > 0 && one.Messages.Entries[i-1].Role != conversation.Assistant {
			ends = append(ends, end{link: one.Messages.Links[i], position: one.First() + i})
		}
	}
	return ends, answer
}

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
