package sessiondb

import (
	"context"
	"fmt"
	"slices"
	"strings"
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
	// few is how many sessions with words that begin with the query's words are checked one by one.
	few = 2_000
	// mostLooked is how many sessions a page searches if there are more, or if no word matches.
	mostLooked = 5_000
	// common is the number of matching words above which a query's word is not selective enough.
	common = 20_000

	mostWords  = 4   // longest words of the query
	mostNames  = 100 // of clients and models
	leastOfID  = 4   // minimum digits to search for the start of an id
	lastOfText = "\U0010FFFF"
)

// look is the part of the list to search.
type look struct {
	from *gorm.DB // replaces the table of sessions

	// bounded says that from ends with the row whose place is mostLooked, and includes sessions that do not
	// match the query.
	bounded bool
}

// lookAt returns the sessions to search for a filter: all without a query, otherwise the few whose words or
// id begin with the query, otherwise the most recently active ones.
func lookAt(tx *gorm.DB, workspace tenants.WorkspaceID, filter session.Filter, after *place) (look, error) {
	sessions := tx.Table("sessions").Where("workspace_id = ?", workspace)
	if filter.Query == "" {
		return look{from: narrow(sessions, filter, after)}, nil
	}
	ids, known, err := candidates(tx, workspace, filter)
	if err != nil {
		return look{}, err
	}
	if known {
		// OFFSET keeps the database from going through all sessions in their order.
		some := tx.Table("(SELECT * FROM sessions WHERE workspace_id = ? AND id = ANY(?::uuid[]) OFFSET 0) AS sessions", workspace, uuidArray(ids)) //nolint:unqueryvet // a reader from it selects
		return look{from: narrow(some, filter, after).Where(fits, fitting(filter)...)}, nil
	}
	newest := narrow(sessions, filter, after).Select("*, row_number() OVER (ORDER BY last_at DESC, id DESC) AS place").
		Order("last_at DESC, id DESC").Limit(mostLooked)
	return look{from: tx.Table("(?) AS sessions", newest), bounded: true}, nil
}

// fits matches a session against a query: see fitting. It excludes titles that the reader must not search.
const fits = `(CASE WHEN NOT ? OR api_key_id = ANY(?::uuid[]) THEN title ELSE '' END || E'\n' || name || E'\n' || client || E'\n' || model ILIKE ?
	OR id::text LIKE ?)`

// fitting are the values of fits.
func fitting(filter session.Filter) []any {
	return []any{filter.Masked, uuidArray(filter.Shown), pattern(filter.Query), prefix(strings.ToLower(filter.Query))}
}

// visible limits a query of sessions to those that the reader may see.
func visible(query *gorm.DB) *gorm.DB {
	if seen := tenants.VisibleIn(query.Statement.Context); !seen.All {
		return query.Where("api_key_id = ANY(?::uuid[])", uuidArray(seen.Keys))
	}
	return query
}

// narrow applies a filter, except its query. It leaves out sessions that the reader may not see.
func narrow(query *gorm.DB, filter session.Filter, after *place) *gorm.DB {
	query = visible(query)
	if filter.IDs != nil {
		query = query.Where("id = ANY(?::uuid[])", uuidArray(filter.IDs))
	}
	if filter.Client != "" {
		query = query.Where("client = ?", storable(filter.Client))
	}
	if filter.Model != "" {
		query = query.Where("model = ?", storable(filter.Model))
	}
	if filter.APIKey != uuid.Nil {
		query = query.Where("api_key_id = ?", filter.APIKey)
	}
	if filter.Keys != nil {
		query = query.Where("api_key_id = ANY(?::uuid[])", uuidArray(filter.Keys))
	}
	if len(filter.EndUser) > 0 {
		query = query.Where("end_user IN ? AND end_user <> ''", filter.EndUser)
	}
	if filter.Member != uuid.Nil {
		query = query.Where("(workspace_id, api_key_id) IN (SELECT b.workspace_id, b.api_key_id FROM api_key_people b WHERE b.person_id = ?)", filter.Member)
	}
	if filter.Project != "" {
		query = query.Where("project = ? AND project <> ''", storable(filter.Project))
	}
	// Labels and scores are for people who may read the session.
	const readable = " AND (NOT ? OR api_key_id = ANY(?::uuid[]))"
	if filter.Label != "" {
		query = query.Where("(workspace_id, id) IN (SELECT b.workspace_id, b.session_id FROM session_labels b WHERE b.label = ?)"+readable, storable(filter.Label), filter.Masked, uuidArray(filter.Shown))
	}
	if filter.Score != 0 {
		query = query.Where("(workspace_id, id) IN (SELECT b.workspace_id, b.session_id FROM session_scores b WHERE b.score = ?)"+readable, filter.Score, filter.Masked, uuidArray(filter.Shown))
	}
	if part, is := shown()[filter.Show]; is {
		query = query.Where(part)
	}
	if !filter.From.IsZero() {
		query = query.Where("last_at >= ?", filter.From)
	}
	if !filter.To.IsZero() {
		query = query.Where("started_at < ?", filter.To)
	}
	if after != nil {
		condition, values := after.behind(filter.Sort)
		query = query.Where(condition, values...)
	}
	return query
}

// shown are the conditions of the parts of a list.
func shown() map[session.Show]string {
	return map[session.Show]string{
		session.ShowConversations: "NOT single",
		session.ShowCompressed:    "epochs > 0",
		session.ShowBridged:       "bridged",
		session.ShowProblems:      "(net_microusd < 0 OR failed)",
		session.ShowSingle:        "single",
	}
}

// candidates returns the sessions that may match a query if they are few: those with all its words that are
// not common, those whose id begins with it, and those of clients and models with that name. known is false
// if there are no candidates or too many. Titles that the reader must not search have no influence.
func candidates(tx *gorm.DB, workspace tenants.WorkspaceID, filter session.Filter) (ids []uuid.UUID, known bool, err error) {
	ids, known, err = withWords(tx, workspace, filter)
	if err != nil || !known {
		return nil, false, err
	}
	more := func(statement string, values ...any) error {
		if len(ids) > few {
			return nil
		}
		var found []uuid.UUID
		err := tx.Raw(statement, append(values, few+1)...).Scan(&found).Error
		ids = append(ids, found...)
		return err
	}
	if first, last, is := idRange(filter.Query); is {
		if err := more("SELECT id FROM sessions WHERE workspace_id = ? AND id BETWEEN ? AND ? LIMIT ?", workspace, first, last); err != nil {
			return nil, false, err
		}
	}
	for _, column := range []string{"client", "model"} {
		names, err := namesLike(tx, workspace, column, filter.Query)
		if err != nil {
			return nil, false, err
		}
		for _, name := range names {
			if err := more("SELECT id FROM sessions WHERE workspace_id = ? AND "+column+" = ? LIMIT ?", workspace, name); err != nil {
				return nil, false, err
			}
		}
	}
	return ids, len(ids) > 0 && len(ids) <= few, nil
}

// withWords returns the sessions that have each word of a query that is not common. known is false if all
// words are common or if the sessions are more than few.
func withWords(tx *gorm.DB, workspace tenants.WorkspaceID, filter session.Filter) (ids []uuid.UUID, known bool, err error) {
	var words []string
	if err := tx.Raw("SELECT word FROM words_of(?) word ORDER BY length(word) DESC, word LIMIT ?", storable(filter.Query), mostWords).Scan(&words).Error; err != nil {
		return nil, false, err
	}
	const having = "FROM session_words WHERE workspace_id = ? AND word >= ? AND word < ? AND (NOT ? OR api_key_id = ANY(?::uuid[]))"
	readable := uuidArray(append(slices.Clone(filter.Shown), uuid.Nil))
	var parts []string
	var values []any
	for _, word := range words {
		of := []any{workspace, word, word + lastOfText, filter.Masked, readable}
		var count int
		// Counts words and not sessions, since to count sessions it would have to read all words with that
		// beginning.
		if err := tx.Raw("SELECT count(*) FROM (SELECT "+having+" LIMIT ?) beginning", append(of, common+1)...).Scan(&count).Error; err != nil {
			return nil, false, err
		}
		if count <= common {
			parts, values = append(parts, "SELECT DISTINCT session_id "+having), append(values, of...)
		}
	}
	if len(parts) == 0 {
		return nil, len(words) == 0, nil
	}
	if err := tx.Raw(strings.Join(parts, " INTERSECT ")+" LIMIT ?", append(values, few+1)...).Scan(&ids).Error; err != nil {
		return nil, false, err
	}
	return ids, len(ids) <= few, nil
}

// namesLike returns the names of a column, client or model, that contain a text. It jumps from name to name
// along the index, past the sessions between them.
func namesLike(tx *gorm.DB, workspace tenants.WorkspaceID, column, text string) ([]string, error) {
	const statement = `WITH RECURSIVE names (name, place) AS (
			(SELECT %[1]s, 1 FROM sessions WHERE workspace_id = ? AND %[1]s > '' ORDER BY %[1]s LIMIT 1)
			UNION ALL SELECT (SELECT s.%[1]s FROM sessions s WHERE s.workspace_id = ? AND s.%[1]s > n.name ORDER BY s.%[1]s LIMIT 1), n.place + 1
			FROM names n WHERE n.name IS NOT NULL AND n.place < ?)
		SELECT name FROM names WHERE name ILIKE ?`
	var names []string
	err := tx.Raw(fmt.Sprintf(statement, column), workspace, workspace, mostNames, pattern(text)).Scan(&names).Error
	return names, err
}

// idRange returns the range of ids that begin with a text, or false if the text is no such beginning or
// matches nearly every id.
func idRange(start string) (first, last uuid.UUID, is bool) {
	const form = "00000000-0000-0000-0000-000000000000"
	if len(start) < leastOfID || len(start) > len(form) {
		return first, last, false
	}
	first, err := uuid.Parse(start + form[len(start):])
	if err != nil {
		return first, last, false
	}
	last, err = uuid.Parse(start + strings.ReplaceAll(form, "0", "f")[len(start):])
	return first, last, err == nil
}

// A fork continues with the epochs of the lane it left.
const sqlActive = `SELECT l.id, greatest(e.number, l.fork_epoch), l.last_at
	FROM sessions s JOIN lanes l ON l.workspace_id = $1 AND l.session_id = s.id
	LEFT JOIN LATERAL (SELECT number FROM epochs WHERE workspace_id = $1 AND lane_id = l.id ORDER BY number DESC LIMIT 1) e ON true
	WHERE s.workspace_id = $1 AND s.epochs > 0 AND s.last_at >= $2 AND l.last_at >= $2 AND l.kind <> 'side'
		AND (e.number IS NOT NULL OR l.fork_epoch > 0)
	ORDER BY s.last_at DESC, l.last_at DESC LIMIT $3`

// Active returns no more than most compacted lanes of a workspace with requests since a time, from the most
// recently used sessions first.
func (s *Store) Active(ctx context.Context, workspace tenants.WorkspaceID, since time.Time, most int) ([]session.Active, error) {
	active, err := batchdb.List(ctx, batchdb.Of(s.runner, workspace), func(row pgx.CollectableRow) (one session.Active, err error) {
		one.Workspace = workspace
		err = row.Scan(&one.Lane, &one.Number, &one.At)
		return one, err
	}, sqlActive, workspace, since, most)
	if err != nil {
		return nil, fmt.Errorf("active lanes of workspace %s: %w", workspace, orAway(err))
	}
	return active, nil
}

// The newest subagents without a recent request, which have ended. Copies of another thread are excluded,
// because their length is not their own.
const sqlLives = `SELECT l.position FROM lanes l
	CROSS JOIN LATERAL (SELECT client FROM sessions WHERE workspace_id = l.workspace_id AND id = l.session_id OFFSET 0) s
	WHERE l.workspace_id = ? AND l.kind = 'subagent' AND l.last_at < now() - interval '20 minutes' AND l.fork_at = 0 AND l.position > 1 AND s.client = ?
	ORDER BY l.last_at DESC LIMIT 300`

// Lives returns the lengths in messages of the newest ended subagents of a client in a workspace.
func (s *Store) Lives(ctx context.Context, workspace tenants.WorkspaceID, client string) (messages []int, err error) {
	err = s.runner.InTenant(ctx, workspace, func(tx *gorm.DB) error {
		return tx.Raw(sqlLives, workspace, client).Scan(&messages).Error
	})
	return messages, batchdb.Wrapf(err, "lives of subagents in workspace %s", workspace)
}

// The previous history was last used before this one began.
const sqlBefore = `SELECT l.id, l.position FROM lanes l
	WHERE l.workspace_id = $1 AND l.session_id = $2 AND l.id <> $3 AND l.kind = 'main'
	ORDER BY l.last_at DESC, l.id DESC LIMIT 1`

// Messages that a client kept have the same hash in the history that it left.
const sqlHolding = `SELECT l.id, l.position, sum(e.tokens) AS held FROM (SELECT DISTINCT unnest($2::bytea[]) AS hash) kept
	CROSS JOIN LATERAL (SELECT lane_id, tokens FROM archive_entries WHERE workspace_id = $1 AND hash = kept.hash OFFSET 0) e
	CROSS JOIN LATERAL (SELECT id, session_id, position, kind, last_at FROM lanes WHERE workspace_id = $1 AND id = e.lane_id OFFSET 0) l
	CROSS JOIN LATERAL (SELECT api_key_id, format, upstream, end_user FROM sessions WHERE workspace_id = $1 AND id = l.session_id OFFSET 0) s
	WHERE l.id <> $3 AND l.kind = 'main' AND s.api_key_id = $4 AND s.format = $5 AND s.upstream = $6 AND s.end_user = $7
	GROUP BY l.id, l.position, l.last_at ORDER BY held DESC, l.last_at DESC, l.id DESC LIMIT 1`

// Holding returns the main lane of the scope, other than lane, that holds most of the messages with the given
// hashes. A tie goes to the most recently used lane. It returns session.ErrNotFound if there is no such lane.
func (s *Store) Holding(ctx context.Context, scope session.Scope, lane uuid.UUID, messages []conversation.Hash) (session.LaneMatch, error) {
	hashes := make([][]byte, len(messages))
	for i := range messages {
		hashes[i] = messages[i][:]
	}
	var held session.LaneMatch
	err := batchdb.Row(ctx, batchdb.Of(s.runner, scope.Workspace), session.ErrNotFound, []any{&held.Lane, &held.Messages, &held.Tokens}, sqlHolding, scope.Workspace, hashes, lane, scope.APIKey, string(scope.Format), storable(scope.Upstream), scope.EndUser)
	return held, batchdb.Wrapf(err, "lane that holds %d messages", len(messages))
}

// Before returns the most recently used lane of a session's main conversation before another one was opened,
// and its length in messages. It returns session.ErrNotFound if there is no such lane.
func (s *Store) Before(ctx context.Context, workspace tenants.WorkspaceID, sessionID, lane uuid.UUID) (left uuid.UUID, messages int, err error) {
	err = batchdb.Row(ctx, batchdb.Of(s.runner, workspace), session.ErrNotFound, []any{&left, &messages}, sqlBefore, workspace, sessionID, lane)
	return left, messages, batchdb.Wrapf(err, "lane before %s", lane)
}
