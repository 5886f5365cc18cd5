package sessiondb

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/session"
)

const (
	sqlLaneColumns = `l.id, l.session_id, coalesce(l.parent_id, '00000000-0000-0000-0000-000000000000'), l.fork_at, l.fork_epoch, l.fork_insert`
	sqlJoined      = `SELECT j.lane_id, ` + sqlLaneColumns + `
		FROM joined_lanes j JOIN lanes l ON l.workspace_id = $1 AND l.id = j.into_id
		WHERE j.workspace_id = $1 AND j.lane_id = ANY($2::uuid[])`
	// Of two processes that record lanes which begin alike, one sees what the other has
	// recorded. Nobody waits for such a lock who holds a row.
	sqlLockBeginnings = `SELECT pg_advisory_xact_lock(key) FROM unnest($1::bigint[]) AS key`
	// The lanes with ends that lie on the histories of lanes which are not recorded yet, the
	// furthest along first, and what tells whether these go on from there.
	sqlOnTheWay = `SELECT t.place, h.position, ` + sqlLaneColumns + `, l.position, l.created_at,
			(SELECT count(*) FROM lane_entries($1, l.id, 0, h.position)) >= h.position,
			EXISTS (SELECT FROM lane_entries($1, l.id, t.answer, t.answer + 1) e WHERE e.hash = t.said)
		FROM unnest($2::int[], $3::uuid[], $4::text[], $5::bytea[], $6::int[], $7::bytea[]) AS t (place, lane, kind, head, answer, said)
		CROSS JOIN LATERAL (SELECT lane_id, position FROM lane_heads WHERE workspace_id = $1 AND head = t.head OFFSET 0) h
		CROSS JOIN LATERAL (SELECT * FROM lanes WHERE workspace_id = $1 AND id = h.lane_id OFFSET 0) l
		WHERE l.id <> t.lane AND l.kind = t.kind
			AND NOT EXISTS (SELECT FROM archive_entries WHERE workspace_id = $1 AND lane_id = t.lane)
		ORDER BY t.place, h.position DESC`
)

// berth is a lane that another one has joined.
type berth struct {
	lane, session, parent       uuid.UUID
	forkAt, inherited, insertUp int
}

func (b *berth) columns() []any {
	return []any{&b.lane, &b.session, &b.parent, &b.forkAt, &b.inherited, &b.insertUp}
}

// onTheWay is a lane whose end lies on the history of an exchange that opens another one.
type onTheWay struct {
	berth

	met     int       // messages up to that end
	tip     int       // messages of the lane's request that went furthest
	created time.Time // when the lane's first request came
	held    bool      // the archive has the messages up to that end
	said    bool      // it has the first answer of the exchange's history, too
}

// continues reports whether an exchange with a history up to an answer, -1 where there is
// none, belongs to the lane, as a process would have had it that knew of both.
func (w *onTheWay) continues(one *session.Seen, answer int) bool {
	switch {
	case one.Name != "" || answer >= 0 && answer < w.met:
		return true
	case answer < 0: // a run may begin with the words of another: it is one that went on meanwhile
		return w.tip > w.met && w.created.After(one.At)
	}
	return w.tip == w.met || w.said
}

// joins is what has become of lanes in one record.
type joins struct {
	into   map[uuid.UUID]berth     // by the lanes that have joined them, now or earlier
	left   map[uuid.UUID]uuid.UUID // sessions by those of them that the record has exchanges of
	claims map[int][]end           // by the place of the exchange that has opened its lane
}

// end is where a request of a history has ended that is not known itself.
type end struct {
	link     conversation.Hash
	position int
}

// joinLanes moves exchanges, in place, whose lane is a part of another one: a replica that
// could not hear of a session has opened a second lane for it. Of two such lanes the one that
// is recorded later joins the other, with all that is recorded of it from then on. Where the
// histories differ behind what they share, leaveStrays makes a fork of it.
func joinLanes(tx *gorm.DB, workspace uuid.UUID, seen []session.Seen) (*joins, error) {
	j := &joins{left: make(map[uuid.UUID]uuid.UUID), claims: make(map[int][]end)}
	if err := j.known(tx, workspace, seen); err != nil {
		return nil, fmt.Errorf("lanes that have joined others: %w", err)
	}
	if err := j.find(tx, workspace, seen); err != nil {
		return nil, fmt.Errorf("lanes on the way: %w", err)
	}
	for i := range seen {
		one, was, session := &seen[i], seen[i].Lane, seen[i].Session
		if !j.move(one) {
			continue
		}
		if _, told := j.left[was]; told {
			continue
		}
		if j.left[was] = session; one.Lane != was {
			if err := notify(tx, workspace, was, 0); err != nil { // who remembers it looks for the other
				return nil, err
			}
		}
	}
	return j, nil
}

// recordParts is record for exchanges of which several may open lanes that begin alike: each
// such lane has to see what is recorded of those before it.
func (s *Store) recordParts(tx *gorm.DB, workspace uuid.UUID, seen []session.Seen) error {
	var keys []int64
	var starts []int
	begun, opened := make(map[conversation.Hash]bool), make(map[uuid.UUID]bool)
	for i := range seen {
		one := &seen[i]
		if opened[one.Lane] || !isOpening(one) {
			continue
		}
		opened[one.Lane] = true
		if keys = append(keys, beginningKey(workspace, one.Links[1])); begun[one.Links[1]] {
			starts = append(starts, i)
		}
		begun[one.Links[1]] = true
	}
	if len(starts) > 0 { // all locks come before the rows of the first part
		if err := lockBeginnings(tx, keys); err != nil {
			return err
		}
	}
	from := 0
	for _, to := range append(starts, len(seen)) {
		if err := s.record(tx, workspace, seen[from:to]); err != nil {
			return err
		}
		from = to
	}
	return nil
}

// lockBeginnings has others that record lanes which begin alike wait.
func lockBeginnings(tx *gorm.DB, keys []int64) error {
	slices.Sort(keys)
	if _, err := tx.Statement.ConnPool.ExecContext(tx.Statement.Context, sqlLockBeginnings, slices.Compact(keys)); err != nil {
		return fmt.Errorf("wait for lanes that begin alike: %w", err)
	}
	return nil
}

// known reads which lanes of the exchanges have joined others before.
func (j *joins) known(tx *gorm.DB, workspace uuid.UUID, seen []session.Seen) error {
	var lanes []uuid.UUID
	for i := range seen {
		lanes = append(lanes, seen[i].Lane)
		if seen[i].Parent != uuid.Nil {
			lanes = append(lanes, seen[i].Parent)
		}
	}
	slices.SortFunc(lanes, func(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) })
	rows, err := tx.Statement.ConnPool.QueryContext(tx.Statement.Context, sqlJoined, workspace, slices.Compact(lanes))
	if err != nil {
		return err
	}
	defer rows.Close()
	j.into = make(map[uuid.UUID]berth)
	for rows.Next() {
		var lane uuid.UUID
		var into berth
		if err := rows.Scan(append([]any{&lane}, into.columns()...)...); err != nil {
			return err
		}
		j.into[lane] = into
	}
	return rows.Err()
}

// find looks for the lanes that those which the exchanges open belong to, and notes where
// earlier requests of these have ended.
func (j *joins) find(tx *gorm.DB, workspace uuid.UUID, seen []session.Seen) error {
	var (
		places, answers    []int
		lanes              []uuid.UUID
		kinds              []string
		heads, said        [][]byte
		keys               []int64
		firstAnswer, opens = make(map[int]int), make(map[uuid.UUID]bool)
	)
	for i := range seen {
		one := &seen[i]
		if opens[one.Lane] || !isOpening(one) {
			opens[one.Lane] = true
			continue
		}
		opens[one.Lane] = true
		if _, joined := j.into[one.Lane]; joined {
			continue
		}
		keys = append(keys, beginningKey(workspace, one.Links[1]))
		ends, answer := endsOf(one)
		firstAnswer[i], j.claims[i] = answer, ends
		var first []byte
		if answer >= 0 {
			first = one.Entries[answer].Hash[:]
		}
		for _, known := range append(slices.Clone(ends), end{link: one.Head, position: one.Position}) {
			places, lanes, kinds = append(places, i), append(lanes, one.Lane), append(kinds, string(cmp.Or(one.Kind, session.Main)))
			heads, answers, said = append(heads, known.link[:]), append(answers, answer), append(said, first)
		}
	}
	if len(places) == 0 {
		return nil
	}
	if err := lockBeginnings(tx, keys); err != nil {
		return err
	}
	rows, err := tx.Statement.ConnPool.QueryContext(tx.Statement.Context, sqlOnTheWay, workspace, places, lanes, kinds, heads, answers, said)
	if err != nil {
		return err
	}
	defer rows.Close()
	furthest := -1
	for rows.Next() {
		var place int
		var way onTheWay
		columns := append([]any{&place, &way.met}, way.columns()...)
		if err := rows.Scan(append(columns, &way.tip, &way.created, &way.held, &way.said)...); err != nil {
			return err
		}
		if place == furthest {
			continue
		}
		furthest = place
		if one := &seen[place]; way.continues(one, firstAnswer[place]) {
			j.into[one.Lane] = way.berth
			if way.held {
				one.Skip(way.met)
			}
		}
	}
	return rows.Err()
}

// move has an exchange belong to the lane that its own has joined, and reports whether it
// has joined any. A fork of one that has joined is looked for where its history leads.
func (j *joins) move(one *session.Seen) bool {
	was := one.Lane
	into, joined := j.into[was]
	of, forked := j.into[one.Parent]
	switch {
	case joined:
		one.MoveTo(into.lane, into.parent, into.forkAt, into.inherited, into.insertUp)
		one.Session = into.session
		one.Skip(into.forkAt)
	case forked && one.Kind == session.Side:
		one.MoveTo(one.Lane, of.lane, one.ForkAt, 0, 0)
		one.Session = of.session
	case forked:
		one.MoveTo(of.lane, of.parent, of.forkAt, of.inherited, of.insertUp)
		one.Session = of.session
		one.Skip(of.forkAt)
		j.into[was] = of
	default:
		return false
	}
	if one.Heat.Projection > 0 { // a number of the lane that is gone
		one.Heat, one.Ahead = session.Heat{}, nil
	}
	return true
}

// isOpening reports whether an exchange brings the first messages of its lane.
func isOpening(one *session.Seen) bool {
	return one.Parent == uuid.Nil && one.Kind != session.Side && one.HasHead() && one.First() == 0 && len(one.Links) > 1
}

// endsOf returns where earlier requests of the history that an exchange opens a lane with
// have ended, and the place of the first answer in it; -1 if there is none.
func endsOf(one *session.Seen) (ends []end, answer int) {
	answer = -1
	for i := range one.Entries {
		if one.Entries[i].Role != conversation.Assistant {
			continue
		}
		if answer < 0 {
			answer = i
		}
		if i > 0 && one.Entries[i-1].Role != conversation.Assistant {
			ends = append(ends, end{link: one.Links[i], position: i})
		}
	}
	return ends, answer
}
