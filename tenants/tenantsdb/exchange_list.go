package tenantsdb

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"palimpsest/pipeline/batchdb"
	"palimpsest/tenants"
)

const (
	defaultPage = 50

	// The number of exchanges that one page scans, regardless of matches, so that a page takes no longer in a
	// large workspace than in a small one. Tagged exchanges are fetched one by one.
	maxLookedAt     = 20_000
	maxTagsLookedAt = 5_000
)

// Exchanges returns a page of a workspace's exchanges, the newest first, and the cursor of the next page; ""
// on the last one. If a filter needs more than an index, a page stops after 20,000 exchanges (5,000 with a
// tag), so that it may have few or no entries and still a next page. With a figure as sort key, it sorts only
// the newest exchanges up to this number that match the index. It returns a tenants.Invalid for an invalid
// cursor.
func (db Exchanges) Exchanges(ctx context.Context, workspace tenants.WorkspaceID, filter tenants.ExchangeFilter) ([]tenants.Exchange, string, error) {
	listing, err := newListing(workspace, tenants.VisibleIn(ctx), filter)
	if err != nil {
		return nil, "", err
	}
	var rows []listedRow
	err = db.inTenant(ctx, workspace, func(tx *gorm.DB) error {
		statement, values := listing.statement()
		return tx.Raw(statement, values...).Scan(&rows).Error
	})
	if err != nil {
		return nil, "", fmt.Errorf("exchanges of workspace %s: %w", workspace, err)
	}
	exchanges, next := listing.page(rows)
	return exchanges, next, nil
}

// CountExchanges returns the number of a workspace's exchanges that the reader may see, at most most.
func (db Exchanges) CountExchanges(ctx context.Context, workspace tenants.WorkspaceID, most int) (int, error) {
	seen := tenants.VisibleIn(ctx)
	count, err := batchdb.Scan[int](ctx, db.tenant(workspace), "SELECT count(*) FROM (SELECT FROM exchanges WHERE workspace_id = ? AND (? OR api_key_id IN ?) LIMIT ?) few", workspace, seen.All, seen.Keys, most)
	return count, batchdb.Wrapf(err, "count exchanges of workspace %s", workspace)
}

const (
	maxNames = 100 // bounds the clients and models returned

	// maxNamed bounds the exchanges of each API key whose names a reader of some keys gets.
	maxNamed = 1_000
)

// ExchangeNames returns the clients and models of the exchanges that the reader may see, in order, at most 100 of
// each. A reader of some API keys gets those of each key's newest 1000 exchanges.
func (db Exchanges) ExchangeNames(ctx context.Context, workspace tenants.WorkspaceID) (clients, models []string, err error) {
	// Jumps from one name to the next along the index, past all exchanges between them.
	const ofAll = `WITH RECURSIVE names (name, place) AS (
			(SELECT %[1]s, 1 FROM exchanges WHERE workspace_id = @workspace AND %[1]s > '' ORDER BY %[1]s LIMIT 1)
			UNION ALL SELECT (SELECT e.%[1]s FROM exchanges e WHERE e.workspace_id = @workspace AND e.%[1]s > n.name
				ORDER BY e.%[1]s LIMIT 1), n.place + 1
			FROM names n WHERE n.name IS NOT NULL AND n.place < @most)
		SELECT name FROM names WHERE name IS NOT NULL ORDER BY place`
	const ofSome = `SELECT DISTINCT e.%[1]s AS name FROM unnest(CAST(@keys AS uuid[])) AS k (id) CROSS JOIN LATERAL (
			SELECT %[1]s FROM exchanges WHERE workspace_id = @workspace AND api_key_id = k.id ORDER BY at DESC LIMIT @newest) e
		WHERE e.%[1]s > '' ORDER BY name LIMIT @most`
	seen := tenants.VisibleIn(ctx)
	statement, values := ofAll, map[string]any{"workspace": workspace, "most": maxNames}
	if !seen.All {
		statement, values["keys"], values["newest"] = ofSome, uuids(seen.Keys), maxNamed
	}
	err = db.inTenant(ctx, workspace, func(tx *gorm.DB) error {
		for column, names := range map[string]*[]string{"client": &clients, "model": &models} {
			if err := tx.Raw(fmt.Sprintf(statement, column), values).Scan(names).Error; err != nil {
				return err
			}
		}
		return nil
	})
	return clients, models, batchdb.Wrapf(err, "names in exchanges of workspace %s", workspace)
}

// uuids returns ids as PostgreSQL's text of an array.
func uuids(ids []uuid.UUID) string {
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = id.String()
	}
	return "{" + strings.Join(texts, ",") + "}"
}

// listing reads a page of exchanges: it scans the index that suits its filter, newest first, and checks each
// exchange against the rest of the filter.
type listing struct {
	workspace tenants.WorkspaceID
	limit     int
	order     tenants.ExchangeOrder
	isTagged  bool // along the exchanges with a tag, not along all
	looksAt   int  // scanned, if there is a rest
	along     conditions
	rest      conditions
	after     conditions // the end of the previous page, with a figure as sort key
}

// conditions are parts of a WHERE with their values. {id} is a placeholder for the column of the id.
type conditions struct {
	parts  []string
	values []any
}

func (c *conditions) add(part string, values ...any) {
	c.parts, c.values = append(c.parts, part), append(c.values, values...)
}

func (c *conditions) sql(id string) string {
	return strings.ReplaceAll(strings.Join(c.parts, " AND "), "{id}", id)
}

// listedRow is a row of a listing.
type listedRow struct {
	Row    exchangeRow `gorm:"embedded"`
	Fits   bool        // the whole filter
	Place  int         // among the scanned ones, from 1; 0 if not counted
	Figure int64       // the sort key's value; 0 for time
}

func newListing(workspace tenants.WorkspaceID, seen tenants.Visible, filter tenants.ExchangeFilter) (*listing, error) {
	l := &listing{workspace: workspace, limit: filter.Limit, order: filter.Order, looksAt: maxLookedAt}
	if l.limit <= 0 {
		l.limit = defaultPage
	}
	l.limit = min(l.limit, tenants.MaxExchanges)
	l.along.add("workspace_id = ?", workspace)
	l.narrow(seen, filter)
	if first, last, ok := tenants.IDRange(filter.ID); ok {
		l.along.add("{id} BETWEEN ? AND ?", first, last)
	}
	if !filter.From.IsZero() {
		l.along.add("at >= ? AND {id} >= first_exchange_id(?)", filter.From, filter.From)
	}
	if !filter.To.IsZero() {
		l.along.add("at < ?", filter.To)
	}
	if filter.Cursor != "" {
		if err := l.goOn(filter.Cursor); err != nil {
			return nil, tenants.Invalid{Field: "cursor", Message: "is not a cursor of an earlier page"}
		}
	}
	return l, nil
}

// goOn starts after the exchange of a cursor.
func (l *listing) goOn(cursor string) error {
	from, err := parseCursor(cursor)
	if err != nil {
		return err
	}
	behind := map[bool]string{false: "<", true: ">"}[l.order.Up]
	if l.order.By == "" {
		l.along.add("(at, {id}) "+behind+" (?, ?)", from.at, from.id)
		return nil
	}
	l.after.add("(figure, at, {id}) "+behind+" (?, ?, ?)", from.figure, from.at, from.id)
	return nil
}

// narrow adds the conditions of the filter and of what the reader may see. One of them, usually the most selective, chooses the index because a scan
// can use only one. The others are checked during the scan.
func (l *listing) narrow(seen tenants.Visible, filter tenants.ExchangeFilter) {
	var asked []func(to *conditions)
	ask := func(is bool, part string, values ...any) {
		if is {
			asked = append(asked, func(to *conditions) { to.add(part, values...) })
		}
	}
	ask(filter.Session != uuid.Nil, "session_id = ?", filter.Session)
	tags := filter.Tags.List()
	switch {
	case filter.Session != uuid.Nil:
		ask(len(filter.EndUser) > 0, "end_user IN ?", filter.EndUser)
	case len(filter.EndUser) > 0:
		l.looksAt, l.isTagged = maxTagsLookedAt, true
		l.along.add("tag IN ?", each(filter.EndUser, func(user *string) string { return userTag + storable(*user) }))
	case len(tags) > 0:
		l.looksAt, l.isTagged = maxTagsLookedAt, true
		l.along.add("tag = ?", storable(tags[0].String()))
		tags = tags[1:]
	}
	ask(filter.APIKey != uuid.Nil, "api_key_id = ?", filter.APIKey)
	switch {
	case seen.Has(filter.APIKey): // or of all
	case len(seen.Keys) == 0:
		ask(true, "false")
	case len(seen.Keys) == 1:
		ask(true, "api_key_id = ?", seen.Keys[0])
	default: // no index has several keys in the order of time
		l.rest.add("api_key_id IN ?", seen.Keys)
	}
	ask(filter.Model != "", "model = ?", name(filter.Model))
	ask(filter.Client != "", "client = ?", name(filter.Client))
	failed := filter.StatusClass > 3 || filter.ErrorFrom != ""
	ask(failed, "(status >= 400 OR error_from <> '')")
	ask(filter.MissCause != "", "miss_cause <> ''")
	for i, add := range asked {
		if i == 0 && !l.isTagged {
			add(&l.along)
		} else {
			add(&l.rest)
		}
	}
	if filter.StatusClass > 0 {
		l.rest.add("status BETWEEN ? AND ?", filter.StatusClass*100, filter.StatusClass*100+99)
	}
	if filter.ErrorFrom != "" {
		l.rest.add("error_from = ?", filter.ErrorFrom)
	}
	if filter.MissCause != "" {
		l.rest.add("miss_cause = ?", storable(filter.MissCause))
	}
	if filter.Module != "" {
		l.rest.add("coalesce(report @> ?::jsonb, false)", `{"modules": `+moduleJSON(filter.Module, filter.Outcome)+`}`)
	}
	for _, tag := range tags {
		l.rest.add("coalesce(tags @> ?::jsonb, false)", objectJSON(map[string]string{tag.Name: tag.Value}))
	}
}

// moduleJSON returns the JSON that a report's modules contain if one module ran in it.
func moduleJSON(name, outcome string) string {
	object := map[string]string{"name": name}
	if outcome != "" {
		object["outcome"] = outcome
	}
	return "[" + objectJSON(object) + "]"
}

// objectJSON returns texts as a JSON object for a jsonb column.
func objectJSON(object map[string]string) string {
	for name, value := range object {
		object[name] = storable(value)
	}
	encoded, err := json.Marshal(object)
	if err != nil {
		return "{}" // texts can be encoded
	}
	return string(encoded)
}

// statement returns the SELECT with its values. Of scanned exchanges, it reads only the columns that the
// filter needs, and the others of matching ones.
func (l *listing) statement() (text string, values []any) {
	if l.order.By != "" {
		return l.ranked()
	}
	text, values = l.timed()
	if l.order.Up { // safe because DESC occurs in sort keys only
		text = strings.ReplaceAll(text, " DESC", "")
	}
	return text, values
}

// timed returns the SELECT of exchanges sorted by time, the newest first.
func (l *listing) timed() (text string, values []any) {
	if len(l.rest.parts) == 0 {
		looked, values := l.looked(exchangeColumns(), strings.Join(otherColumns(), ", "), nil, l.limit+1)
		return "SELECT " + exchangeColumns() + ", true AS fits FROM (" + looked + ") looked ORDER BY at DESC, id DESC LIMIT ?", append(values, l.limit+1)
	}
	rest := "(" + l.rest.sql("id") + ") AS fits"
	looked, values := l.looked("id, at, "+rest, rest, l.rest.values, l.looksAt)
	text = "SELECT " + columnsOf("e") + ", place, fits FROM (SELECT id, at, fits, place FROM (SELECT id, at, fits, row_number() OVER (ORDER BY at DESC, id DESC) AS place FROM (" +
		looked + ") looked) placed WHERE fits OR place = ? ORDER BY at DESC, id DESC LIMIT ?) found" +
		" CROSS JOIN LATERAL (SELECT " + exchangeColumns() + " FROM exchanges WHERE workspace_id = ? AND id = found.id LIMIT 1) e ORDER BY found.at DESC, found.id DESC"
	return text, append(values, l.looksAt, l.limit+1, l.workspace)
}

// ranked returns the SELECT of the newest exchanges, sorted by a figure.
func (l *listing) ranked() (text string, values []any) {
	figure, fits := "("+figureColumn(l.order.By)+")::bigint AS figure", "true"
	if len(l.rest.parts) > 0 {
		fits = "(" + l.rest.sql("id") + ")"
	}
	after := "true"
	if len(l.after.parts) > 0 {
		after = l.after.sql("id")
	}
	order := " DESC"
	if l.order.Up {
		order = ""
	}
	looked, values := l.looked("id, at, "+figure+", "+fits+" AS fits", figure+", "+fits+" AS fits", l.rest.values, l.looksAt)
	text = "SELECT " + columnsOf("e") + ", figure, true AS fits FROM (SELECT id, at, figure FROM (" + looked + ") looked WHERE fits AND " + after +
		" ORDER BY figure" + order + ", at" + order + ", id" + order + " LIMIT ?) found" +
		" CROSS JOIN LATERAL (SELECT " + exchangeColumns() + " FROM exchanges WHERE workspace_id = ? AND id = found.id LIMIT 1) e" +
		" ORDER BY figure" + order + ", found.at" + order + ", found.id" + order
	return text, append(append(values, l.after.values...), l.limit+1, l.workspace)
}

// figureColumn returns the figure of a row in SQL.
func figureColumn(by tenants.Figure) string {
	switch by {
	case tenants.ByReceived:
		return "tokens_before"
	case tenants.BySent:
		return "tokens_after"
	case tenants.ByCached:
		return "cache_read_tokens"
	case tenants.ByOverhead:
		return "overhead_us"
	case tenants.ByUpstream:
		return "greatest(0, duration_us - overhead_us)"
	default:
		return "cost_microusd"
	}
}

// columnsOf returns exchangeColumns of a table's alias.
func columnsOf(alias string) string {
	return alias + "." + strings.ReplaceAll(exchangeColumns(), ", ", ", "+alias+".")
}

// looked returns the SELECT of the scanned exchanges: with columns or, along tags, with others, which are the
// columns except id and time. of are the arguments of these columns.
func (l *listing) looked(columns, others string, of []any, most int) (text string, values []any) {
	if !l.isTagged {
		values = append(append(append(values, of...), l.along.values...), most)
		return "SELECT " + columns + " FROM exchanges WHERE " + l.along.sql("id") + " ORDER BY at DESC, id DESC LIMIT ?", values
	}
	tagged := "SELECT exchange_id, at AS tagged_at FROM exchange_tags WHERE " + l.along.sql("exchange_id") + " ORDER BY at DESC, exchange_id DESC LIMIT ?"
	// One by one in order, only as far as the page needs.
	//nolint:unqueryvet // the columns are those of the inner query
	return "SELECT tagged_exchange.*, exchange_id AS id, tagged_at AS at FROM (" + tagged + ") tagged CROSS JOIN LATERAL (SELECT workspace_id, " +
			others + " FROM exchanges WHERE workspace_id = ? AND id = exchange_id LIMIT 1) tagged_exchange ORDER BY tagged_at DESC, exchange_id DESC",
		append(append(append(append(values, l.along.values...), most), of...), l.workspace)
}

// page returns the matching exchanges and the cursor of the next page.
func (l *listing) page(rows []listedRow) (found []tenants.Exchange, next string) {
	found = make([]tenants.Exchange, 0, min(len(rows), l.limit))
	for i := range rows {
		switch {
		case len(found) == l.limit:
			return found, cursorAfter(&rows[i-1])
		case rows[i].Fits:
			found = append(found, rows[i].Row.toExchange())
		}
		if rows[i].Place == l.looksAt {
			next = cursorAfter(&rows[i])
		}
	}
	return found, next
}

// cursor is the exchange after which a page begins.
type cursor struct {
	figure int64
	at     time.Time
	id     uuid.UUID
}

// cursorAfter returns the cursor of the page that begins after a row.
func cursorAfter(row *listedRow) string {
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%d/%s/%d", row.Row.At.UnixMicro(), row.Row.ID, row.Figure))
}

func parseCursor(text string) (cursor, error) {
	decoded, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return cursor{}, err
	}
	micros, rest, _ := strings.Cut(string(decoded), "/")
	id, figure, _ := strings.Cut(rest, "/")
	at, err := strconv.ParseInt(micros, 10, 64)
	if err != nil {
		return cursor{}, err
	}
	from := cursor{at: time.UnixMicro(at)}
	if from.figure, err = strconv.ParseInt(figure, 10, 64); err != nil {
		return cursor{}, err
	}
	from.id, err = uuid.Parse(id)
	return from, err
}
