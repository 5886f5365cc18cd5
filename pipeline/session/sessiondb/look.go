package sessiondb

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"
	"gorm.io/gorm"

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

// narrow applies a filter, except its query.
func narrow(query *gorm.DB, filter session.Filter, after *place) *gorm.DB {
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
