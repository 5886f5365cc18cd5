package tenantsdb

import (
	"bytes"
	"context"
	"database/sql/driver"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"palimpsest/pipeline/batchdb"
	"palimpsest/pipeline/excerpts"
	"palimpsest/tenants"
)

// Exchanges stores one row for each request and its answer.
type Exchanges struct{ *core }

// RecordExchanges stores exchanges of a workspace. Existing ones stay unchanged, so that a batch may be
// written again.
func (db Exchanges) RecordExchanges(ctx context.Context, tenant tenants.Tenant, exchanges []tenants.Exchange) error {
	if len(exchanges) == 0 {
		return nil
	}
	err := db.inTenant(ctx, tenant, func(tx *gorm.DB) error {
		rows := each(exchanges, func(exchange *tenants.Exchange) exchangeRow { return exchangeRow{*exchange, levelsOf(exchange)} })
		batch, err := rowsJSON(tx, rows)
		if err != nil {
			return err
		}
		return insertExchanges(tx, tenant.Workspace(), batch)
	})
	return batchdb.Wrapf(err, "record %d exchanges", len(exchanges))
}

// Exchange returns one exchange of a workspace. A Reader also reads it from the database itself, because its
// client may have its id before a replica has it. It returns tenants.ErrNotFound, also for an exchange that the
// context's reader may not see.
func (db Exchanges) Exchange(ctx context.Context, workspace tenants.WorkspaceID, id uuid.UUID) (tenants.Exchange, error) {
	var row exchangeRow
	err := db.current(ctx, workspace, func(tx *gorm.DB) error {
		return ofVisible(tx.Table("exchanges")).Select(exchangeColumns()).Where("workspace_id = ? AND id = ?", workspace, id).Take(&row).Error
	})
	if err != nil {
		return tenants.Exchange{}, fmt.Errorf("exchange %s: %w", id, kind(err))
	}
	return row.toExchange(), nil
}

// RecordedExchanges returns the recorded exchanges among ids.
func (db Exchanges) RecordedExchanges(ctx context.Context, tenant tenants.Tenant, ids []uuid.UUID) ([]uuid.UUID, error) {
	var recorded []uuid.UUID
	err := db.inTenant(ctx, tenant, func(tx *gorm.DB) error {
		return tx.Table("exchanges").Where("workspace_id = ? AND id IN ?", tenant.Workspace(), ids).Pluck("id", &recorded).Error
	})
	return recorded, batchdb.Wrapf(err, "which of %d exchanges are recorded", len(ids))
}

// insertExchanges inserts a JSON array of exchangeRow, with the tags and end users of the new ones, and adds
// the new ones that count to the workspace's meter: one statement and one argument for any number of
// exchanges. It does not change rows that another batch changes. The statement names the workspace first, so
// that the transaction locks the table of workspaces, which the exchanges' foreign key references, before
// theirs. The job that changes the bounds of partitions locks them in the same order, so that the two cannot
// deadlock. If an exchange's end user was erased after its time, only its figures are kept, as for exchanges
// erased earlier.
func insertExchanges(tx *gorm.DB, workspace tenants.WorkspaceID, batch []byte) error {
	return later(tx, sqlRecord(), workspace, json.RawMessage(batch))
}

// userTag is the prefix of the tag that finds an end user's exchanges. Clients cannot set such a tag.
const userTag = "@user="

// otherColumns are the columns of an exchange besides its workspace, id and time: those that exchangeRow's
// fields name. They need the forms that Open registers.
var otherColumns = sync.OnceValue(func() []string {
	parsed, err := schema.Parse(&exchangeRow{}, &sync.Map{}, schema.NamingStrategy{})
	if err != nil {
		panic(fmt.Sprintf("tenantsdb: columns of exchanges: %v", err))
	}
	return slices.DeleteFunc(slices.Clone(parsed.DBNames), func(column string) bool {
		return column == "workspace_id" || column == "id" || column == "at"
	})
})

// exchangeColumns are all columns of an exchange, for a SELECT.
var exchangeColumns = sync.OnceValue(func() string { return "workspace_id, id, at, " + strings.Join(otherColumns(), ", ") })

// sqlRecord inserts a JSON array of exchangeRow; see insertExchanges.
var sqlRecord = sync.OnceValue(func() string {
	values := slices.Clone(otherColumns())
	for i, column := range values {
		switch column { // a request of an end user who was erased keeps its figures only
		case "session_id", "lane_id", "answer", "report", "error_text", "end_user":
			values[i] = "CASE WHEN erased IS NOT TRUE THEN " + column + " END"
		}
	}
	return `WITH workspace AS (SELECT FROM workspaces WHERE workspace_id = $1),
		recorded AS (INSERT INTO exchanges (` + exchangeColumns() + `)
		SELECT $1, id, at, ` + strings.Join(values, ", ") + ` FROM jsonb_populate_recordset(NULL::exchanges, $2) come
		CROSS JOIN LATERAL (SELECT come.end_user <> '' AND EXISTS (
			SELECT FROM end_users u WHERE u.workspace_id = $1 AND u.id = come.end_user AND u.erased_at >= come.at) AS erased) e
		ON CONFLICT DO NOTHING RETURNING id, at, endpoint, class, status, error_from, attempts, tags, end_user),
		tagged AS (INSERT INTO exchange_tags (workspace_id, tag, at, exchange_id)
		SELECT $1, t.key || '=' || t.value, r.at, r.id FROM recorded r, jsonb_each_text(r.tags) t
		UNION ALL SELECT $1, '` + userTag + `' || r.end_user, r.at, r.id FROM recorded r WHERE r.end_user <> '')
		INSERT INTO usage_meter_deltas (workspace_id, hour, exchanges)
		SELECT $1, date_trunc('hour', at, 'UTC') AS hour, count(*) FROM recorded
		WHERE exchange_counts(endpoint, class, status, error_from, attempts) GROUP BY hour`
})

// exchangeRow is an exchange with a column for each level.
type exchangeRow struct {
	tenants.Exchange

	Levels levels `gorm:"embedded"`
}

type levels struct {
	Level0 int `gorm:"column:level_0"`
	Level1 int `gorm:"column:level_1"`
	Level2 int `gorm:"column:level_2"`
	Level3 int `gorm:"column:level_3"`
}

func levelsOf(e *tenants.Exchange) levels {
	return levels{e.Prompt.Levels[0], e.Prompt.Levels[1], e.Prompt.Levels[2], e.Prompt.Levels[3]}
}

func (r *exchangeRow) toExchange() tenants.Exchange {
	r.Prompt.Levels = [4]int{r.Levels.Level0, r.Levels.Level1, r.Levels.Level2, r.Levels.Level3}
	return r.Exchange
}

// maxName bounds the stored part of a client's name, in characters: longer than real names, and short enough
// for an index.
const maxName = 200

// name returns the stored part of a name.
func name(text string) string {
	return excerpts.First(storable(text), maxName)
}

// NewestOf returns the newest exchanges of each session, at most most, the newest first. It reads only the
// data for charts: size, window, levels, status and compression.
func (db Exchanges) NewestOf(ctx context.Context, workspace tenants.WorkspaceID, sessions []uuid.UUID, most int) (map[uuid.UUID][]tenants.Exchange, error) {
	const statement = `SELECT session_id, at, status, compression, tokens_after, window_tokens, level_0, level_1, level_2, level_3
		FROM unnest(?::uuid[]) AS s (id) CROSS JOIN LATERAL (
			SELECT session_id, at, status, compression, tokens_after, window_tokens, level_0, level_1, level_2, level_3
			FROM exchanges WHERE workspace_id = ? AND session_id = s.id ORDER BY at DESC, id DESC LIMIT ?) e`
	rows, err := batchdb.Scan[[]exchangeRow](ctx, db.tenant(workspace), statement, uuids(sessions), workspace, most)
	if err != nil {
		return nil, fmt.Errorf("newest exchanges of %d sessions: %w", len(sessions), err)
	}
	newest := make(map[uuid.UUID][]tenants.Exchange, len(sessions))
	for i := range rows {
		session := rows[i].Request.Session
		newest[session] = append(newest[session], rows[i].toExchange())
	}
	return newest, nil
}

// Joined runs fn with a tenant's transaction as a pgx.Tx, for libraries that need pgx. fn must not commit or
// roll it back.
func (db *DB) Joined(ctx context.Context, tenant tenants.Tenant, fn func(tx pgx.Tx) error) error {
	return db.core.inTenant(ctx, tenant, func(tx *gorm.DB) error {
		t, err := transactionOf(tx)
		if err != nil {
			return err
		}
		return t.join(ctx, fn)
	})
}

// join runs fn with the transaction as a pgx.Tx, after sending its beginning to the server.
func (t *transaction) join(ctx context.Context, fn func(tx pgx.Tx) error) error {
	if err := t.Send(ctx); err != nil {
		return err
	}
	return t.Raw(func(any) error { return fn(joined{t.below}) })
}

// joined is a transaction that its opener ends.
type joined struct{ connection }

// connection is the name under which joined embeds it, because pgx.Tx has a method Conn.
type connection = *pgx.Conn

// Begin implements pgx.Tx. Nested transactions are not supported.
func (joined) Begin(context.Context) (pgx.Tx, error) { return nil, errNotOurs }

// Commit implements pgx.Tx.
func (joined) Commit(context.Context) error { return errNotOurs }

// Rollback implements pgx.Tx.
func (joined) Rollback(context.Context) error { return errNotOurs }

// LargeObjects implements pgx.Tx. Palimpsest does not use large objects.
func (joined) LargeObjects() pgx.LargeObjects { return pgx.LargeObjects{} }

// Conn implements pgx.Tx.
func (j joined) Conn() *pgx.Conn { return j.connection }

// nameForm stores the first characters of a client's name.
type nameForm struct{ nullForm }

// Value implements schema.SerializerInterface.
func (nameForm) Value(_ context.Context, _ *schema.Field, _ reflect.Value, value any) (any, error) {
	return name(reflect.ValueOf(value).String()), nil
}

// objectForm stores names and values as a JSON object, and none as NULL.
type objectForm struct{ schema.JSONSerializer }

// Scan implements schema.SerializerInterface. A column with another form was not written by Palimpsest.
func (f objectForm) Scan(ctx context.Context, field *schema.Field, to reflect.Value, stored any) error {
	if f.JSONSerializer.Scan(ctx, field, to, stored) != nil {
		field.ReflectValueOf(ctx, to).SetZero()
	}
	return nil
}

// Value implements schema.SerializerInterface.
func (objectForm) Value(_ context.Context, _ *schema.Field, _ reflect.Value, value any) (any, error) {
	texts, _ := reflect.TypeAssert[map[string]string](reflect.ValueOf(value).Convert(reflect.TypeFor[map[string]string]()))
	if len(texts) == 0 {
		return nil, nil //nolint:nilnil // NULL
	}
	return json.RawMessage(objectJSON(maps.Clone(texts))), nil
}

// reportForm stores JSON, and none as NULL.
type reportForm struct{ nullForm }

// Value implements schema.SerializerInterface.
func (reportForm) Value(_ context.Context, _ *schema.Field, _ reflect.Value, value any) (any, error) {
	encoded := reflect.ValueOf(value).Bytes()
	if len(encoded) == 0 {
		return nil, nil //nolint:nilnil // NULL
	}
	return json.RawMessage(bytes.ReplaceAll(encoded, []byte(`\u0000`), []byte(`\ufffd`))), nil // JSON columns reject NUL
}

// rowsJSON returns rows as a JSON array of objects, by their columns, for jsonb_populate_recordset.
func rowsJSON[T any](tx *gorm.DB, rows []T) ([]byte, error) {
	statement := gorm.Statement{DB: tx}
	if err := statement.Parse(new(T)); err != nil {
		return nil, err
	}
	out := []byte{'['}
	for i := range rows {
		row := reflect.ValueOf(&rows[i]).Elem()
		out = append(out, '{')
		for _, column := range statement.Schema.DBNames {
			start := len(out)
			var err error
			if out, err = appendField(tx.Statement.Context, append(append(append(out, '"'), column...), `":`...), statement.Schema.FieldsByDBName[column], row); err != nil {
				return nil, fmt.Errorf("column %s: %w", column, err)
			}
			if bytes.HasSuffix(out, []byte(":null")) { // an absent column is NULL, too
				out = out[:start]
				continue
			}
			out = append(out, ',')
		}
		out = append(bytes.TrimSuffix(out, []byte{','}), '}', ',')
		if i == 0 {
			out = slices.Grow(out, len(out)*len(rows)) // the others are about as long
		}
	}
	return append(bytes.TrimSuffix(out, []byte{','}), ']'), nil
}

// appendField appends a row's value of a column as JSON. It converts the usual kinds in place, because an
// interface and an encoder for each value took a tenth of a small request's memory.
func appendField(ctx context.Context, out []byte, field *schema.Field, row reflect.Value) ([]byte, error) {
	if value := field.ReflectValueOf(ctx, row); field.Serializer == nil {
		switch value.Kind() {
		case reflect.Int, reflect.Int64:
			return strconv.AppendInt(out, value.Int(), 10), nil
		case reflect.Bool:
			return strconv.AppendBool(out, value.Bool()), nil
		case reflect.String:
			return appendText(out, storable(value.String()))
		default:
		}
	}
	value, _ := field.ValueOf(ctx, row)
	stored, err := columnJSON(value)
	if err != nil {
		return out, err
	}
	if text, is := stored.(string); is {
		return appendText(out, text)
	}
	encoded, err := json.Marshal(stored)
	return append(out, encoded...), err
}

// appendText appends a text as JSON.
func appendText(out []byte, text string) ([]byte, error) {
	isSpecial := func(r rune) bool { return r < ' ' || r >= 0x7f || r == '"' || r == '\\' }
	if !strings.ContainsFunc(text, isSpecial) {
		return append(append(append(out, '"'), text...), '"'), nil
	}
	encoded, err := json.Marshal(text)
	return append(out, encoded...), err
}

// columnJSON returns a field's value in its JSON form for a column.
func columnJSON(value any) (any, error) {
	if formed, is := value.(driver.Valuer); is {
		var err error
		if value, err = formed.Value(); err != nil {
			return nil, err
		}
	}
	switch of := value.(type) {
	case json.RawMessage:
		return of, nil
	case []byte:
		if of == nil {
			return nil, nil //nolint:nilnil // NULL
		}
		return `\x` + hex.EncodeToString(of), nil
	}
	if text := reflect.ValueOf(value); text.Kind() == reflect.String {
		return storable(text.String()), nil
	}
	return value, nil
}
