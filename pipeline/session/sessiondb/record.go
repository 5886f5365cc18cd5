package sessiondb

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"palimpsest/pipeline/archive/archivedb"
	"palimpsest/pipeline/batchdb"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/sums"
	"palimpsest/tenants"
)

// The statements of a record, one for each table. Rows are sorted so that two writers never deadlock. From
// the first statement on, others that record the same sessions wait, so all are sent in as few round trips as
// their results allow.
const (
	sqlHeads = `INSERT INTO lane_heads (workspace_id, head, lane_id, position, seen_at)
		SELECT $1, head, lane_id, position, seen_at
		FROM unnest($2::bytea[], $3::uuid[], $4::int[], $5::timestamptz[]) AS t (head, lane_id, position, seen_at)
		ON CONFLICT (workspace_id, head) DO UPDATE SET lane_id = excluded.lane_id, seen_at = excluded.seen_at
			WHERE excluded.seen_at > lane_heads.seen_at OR excluded.seen_at = lane_heads.seen_at AND excluded.lane_id <> lane_heads.lane_id`
	// This is the last statement of a record, because others of the workspace wait for these rows until its
	// end.
	sqlRedacted = `INSERT INTO redaction_counts (workspace_id, kind, found)
		SELECT $1, kind, found FROM unnest($2::text[], $3::bigint[]) AS t (kind, found)
		ON CONFLICT (workspace_id, kind) DO UPDATE SET found = redaction_counts.found + excluded.found`
)

// sessionSums returns the sums of a session's exchanges.
func sessionSums() []sums.Sum { return sums.Of[session.Sums]() }

// sqlSessions adds exchanges to the sums of their sessions, with a column of bigint[] for each sum.
func sqlSessions(all []sums.Sum) string {
	const columns = `id, api_key_id, format, name, source, title, client, model, started_at, last_at, upstream, continued, end_user, project`
	types, names := `$2::uuid[], $3::uuid[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[],
			$10::timestamptz[], $11::timestamptz[], $12::text[], $13::boolean[], $14::text[], $15::text[]`, columns
	for i := range all {
		types, names = types+fmt.Sprintf(", $%d::bigint[]", 16+i), names+", "+all[i].Column
	}
	return `INSERT INTO sessions (workspace_id, ` + names + `)
		SELECT $1, ` + names + ` FROM unnest(` + types + `) AS t (` + names + `)
		ON CONFLICT (workspace_id, id) DO UPDATE SET
			title = CASE WHEN sessions.title = '' THEN excluded.title ELSE sessions.title END,
			client = CASE WHEN excluded.client = '' OR excluded.last_at < sessions.last_at THEN sessions.client ELSE excluded.client END,
			model = CASE WHEN excluded.model = '' OR excluded.last_at < sessions.last_at THEN sessions.model ELSE excluded.model END,
			started_at = least(sessions.started_at, excluded.started_at),
			last_at = greatest(sessions.last_at, excluded.last_at),
			continued = sessions.continued OR excluded.continued,
			end_user = coalesce(sessions.end_user, excluded.end_user),
			project = coalesce(nullif(sessions.project, ''), excluded.project),
			` + sums.SQL(all, "% = sessions.% + excluded.%", ", ")
}

// record stores exchanges inside a transaction. It moves those, in place, that do not continue their lane or
// whose lane is part of another one: see leaveStrays and joinLanes.
func (s *Store) record(tx *gorm.DB, workspace tenants.WorkspaceID, updates []session.Update) error {
	joined, err := joinLanes(tx, workspace, updates)
	if err != nil {
		return fmt.Errorf("join lanes: %w", err)
	}
	runs, answers := make([]archivedb.Run, len(updates)), make([][]byte, 0, len(updates))
	for i := range updates {
		runs[i].Entries = updates[i].Messages.Entries
		if len(updates[i].Messages.Answer) > 0 {
			answers = append(answers, updates[i].Messages.Answer)
		}
	}
	if err := s.archive.PutObjects(tx, workspace, runs, answers...); err != nil {
		return err
	}
	if err := recordSessions(tx, workspace, updates); err != nil {
		return fmt.Errorf("sessions: %w", err)
	}
	if err := leaveStrays(tx, workspace, updates); err != nil {
		return fmt.Errorf("forks: %w", err)
	}
	if err := recordLanes(tx, workspace, updates); err != nil {
		return fmt.Errorf("lanes: %w", err)
	}
	if err := recordHeads(tx, workspace, updates); err != nil {
		return fmt.Errorf("heads: %w", err)
	}
	if err := joined.keep(tx, workspace, updates); err != nil {
		return err
	}
	if err := s.recordAhead(tx, workspace, updates); err != nil {
		return fmt.Errorf("epochs to plan: %w", err)
	}
	for i := range updates {
		runs[i] = archivedb.Run{Session: updates[i].Session, Lane: updates[i].Lane, Entries: updates[i].Messages.Entries}
	}
	if err := s.archive.PutPlaces(tx, workspace, runs); err != nil {
		return err
	}
	return recordRedacted(tx, workspace, updates)
}

// recordRedacted counts the redactions in the messages of exchanges.
func recordRedacted(tx *gorm.DB, workspace tenants.WorkspaceID, updates []session.Update) error {
	var sum map[string]int
	for i := range updates {
		sum = session.Sum(sum, updates[i].Increment.Redacted)
	}
	kinds := slices.Sorted(maps.Keys(sum))
	if len(kinds) == 0 {
		return nil
	}
	found := make([]int64, len(kinds))
	for i, kind := range kinds {
		found[i] = int64(sum[kind])
	}
	return batchdb.Later(tx, sqlRedacted, workspace, kinds, found)
}

// recordInLane is record for an exchange that changes its lane. It returns session.ErrOvertaken if the
// exchange does not continue the lane, or if its end user was erased.
func (s *Store) recordInLane(tx *gorm.DB, workspace tenants.WorkspaceID, one session.Update) error {
	updates, isRecorded := []session.Update{one}, false
	err := recordUnerased(tx, workspace, updates, func(updates []session.Update) error {
		isRecorded = true
		return s.record(tx, workspace, updates)
	})
	if err != nil {
		return err
	}
	if !isRecorded {
		return fmt.Errorf("the end user was erased: %w", session.ErrOvertaken)
	}
	if updates[0].Lane != one.Lane {
		return fmt.Errorf("the history has left lane %s: %w", one.Lane, session.ErrOvertaken)
	}
	return nil
}

// sessionRow combines the additions of several exchanges to a session.
type sessionRow struct {
	session.Update

	started time.Time
	sums    session.Sums
}

func recordSessions(tx *gorm.DB, workspace tenants.WorkspaceID, updates []session.Update) error {
	var (
		ids, keys                                     []uuid.UUID
		formats, names, sources, titles, clients, llm []string
		upstreams, users, projects                    []string
		continued                                     []bool
		started, last                                 []time.Time
	)
	all := sessionSums()
	counts := make([][]int64, len(all))
	for _, row := range sessionRows(updates) {
		ids, keys = append(ids, row.Session), append(keys, row.Scope.APIKey)
		formats, names = append(formats, string(row.Scope.Format)), append(names, storable(row.Name))
		upstreams = append(upstreams, storable(row.Scope.Upstream))
		users, projects = append(users, row.Scope.EndUser), append(projects, storable(row.Scope.Project))
		sources, titles = append(sources, storable(row.Source)), append(titles, storable(row.Title))
		clients, llm = append(clients, storable(row.Client)), append(llm, storable(row.Model))
		started, last, continued = append(started, row.started), append(last, row.At), append(continued, row.Increment.Continued)
		for i := range all {
			counts[i] = append(counts[i], all[i].In(&row.sums))
		}
	}
	values := []any{workspace, ids, keys, formats, names, sources, titles, clients, llm, started, last, upstreams, continued, users, projects}
	for i := range counts {
		values = append(values, counts[i])
	}
	return batchdb.Later(tx, sqlSessions(all), values...)
}

// sessionRows combines the exchanges of each session, because a statement may touch a row only once.
func sessionRows(updates []session.Update) []sessionRow {
	byID, all := make(map[uuid.UUID]*sessionRow), sessionSums()
	for _, one := range updates {
		row, known := byID[one.Session]
		if !known {
			row = &sessionRow{Update: one, started: one.At}
			byID[one.Session] = row
		}
		if one.At.Before(row.started) {
			row.started = one.At
		}
		if !one.At.Before(row.At) {
			row.At = one.At
			row.Client, row.Model = cmp.Or(one.Client, row.Client), cmp.Or(one.Model, row.Model)
		}
		row.Title, row.Scope.Project = cmp.Or(row.Title, one.Title), cmp.Or(row.Scope.Project, one.Scope.Project)
		row.Increment.Continued = row.Increment.Continued || one.Increment.Continued
		added := one.Increment.Sums()
		for _, sum := range all {
			sum.Add(&row.sums, sum.In(&added))
		}
	}
	return sorted(byID, func(a, b *sessionRow) int { return bytes.Compare(a.Session[:], b.Session[:]) })
}

func recordHeads(tx *gorm.DB, workspace tenants.WorkspaceID, updates []session.Update) error {
	byHead := make(map[conversation.Hash]*session.Update)
	for i := range updates {
		if updates[i].HasHead() {
			byHead[updates[i].Messages.Head] = &updates[i]
		}
	}
	var (
		heads     [][]byte
		lanes     []uuid.UUID
		positions []int32
		times     []time.Time
	)
	for _, row := range sorted(byHead, func(a, b *session.Update) int { return bytes.Compare(a.Messages.Head[:], b.Messages.Head[:]) }) {
		heads, lanes = append(heads, row.Messages.Head[:]), append(lanes, row.Lane)
		positions = append(positions, int32(row.Messages.Position)) //nolint:gosec // a place in one body
		times = append(times, row.At)
	}
	if len(heads) == 0 {
		return nil
	}
	return batchdb.Later(tx, sqlHeads, workspace, heads, lanes, positions, times)
}

// sorted returns a map's values in order.
func sorted[K comparable, V any](byKey map[K]*V, compare func(a, b *V) int) []V {
	rows := make([]*V, 0, len(byKey))
	for _, row := range byKey {
		rows = append(rows, row)
	}
	slices.SortFunc(rows, compare)
	values := make([]V, len(rows))
	for i, row := range rows {
		values[i] = *row
	}
	return values
}

// storable returns text in a form that a text column accepts: valid UTF-8 without NUL.
func storable(text string) string {
	if strings.ContainsRune(text, 0) {
		text = strings.ReplaceAll(text, "\x00", "")
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}

// pattern returns an ILIKE pattern for text anywhere.
func pattern(text string) string {
	return "%" + prefix(text)
}

// prefix returns a LIKE pattern for values that begin with a text.
func prefix(text string) string {
	return strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(storable(text)) + "%"
}
