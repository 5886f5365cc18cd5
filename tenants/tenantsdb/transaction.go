package tenantsdb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"palimpsest/pipeline/batchdb"
	"palimpsest/tenants"
)

// rollbackTimeout bounds a rollback. After it the connection is closed, which also rolls back.
const rollbackTimeout = 5 * time.Second

// beginning is the number of statements that begin a transaction: see begin.
const beginning = 2

// idle is the state of a connection without a transaction: see ReadyForQuery in
// https://www.postgresql.org/docs/current/protocol-message-formats.html.
const idle = 'I'

// errNotOurs says that a transaction is ended by the caller that opened it.
var errNotOurs = errors.New("a joined transaction is ended by the one that opened it")

// transaction is a transaction on a connection, as gorm uses it. Statements without an awaited answer are
// sent with the next awaited one: the beginning, the setting of the workspace or person, Later's statements,
// and the end. This saves a round trip for each of them.
type transaction struct {
	*sql.Conn

	below     *pgx.Conn           // of Conn; used inside Conn.Raw only, so that database/sql does not use it at the same time
	sent      bool                // sent to the server
	waiting   pgx.Batch           // not sent yet
	failed    error               // error of a statement without an awaited answer
	workspace tenants.WorkspaceID // zero if it began without a workspace
	sealer    tenants.Sealer      // of mails; nil if they are stored unsealed
	tx        *gorm.DB            // runs in it
}

// sqlWorkFor sets the workspace or person of the rest of a transaction. It turns off JIT regardless of the
// server's default, because the statements read a few rows each, and when the planner overestimates them,
// compilation would take longer than execution.
const sqlWorkFor = "SELECT set_config($1, $2, true), set_config('jit', 'off', true)"

// begin returns a transaction for the workspace or person of a setting.
func begin(session *gorm.DB, setting, value string) (*transaction, error) {
	pooled, ok := session.Statement.ConnPool.(*sql.Conn)
	if !ok {
		return nil, fmt.Errorf("no connection but a %T", session.Statement.ConnPool)
	}
	below, err := connectionOf(pooled)
	if err != nil {
		return nil, err
	}
	t := &transaction{Conn: pooled, below: below}
	if setting == forWorkspace {
		t.workspace, _ = tenants.ParseWorkspaceID(value) // "" becomes the zero id
	}
	t.Later("begin")
	t.Later(sqlWorkFor, setting, value)
	return t, nil
}

// Workspace implements tenants.Tenant.
func (t *transaction) Workspace() tenants.WorkspaceID { return t.workspace }

// run runs fn and commits if it returns nil. An error or a panic rolls back.
func (t *transaction) run(ctx context.Context, fn func() error) error {
	returned := false
	defer func() {
		if !returned {
			t.undo(ctx)
		}
	}()
	err := fn()
	returned = true
	return t.end(ctx, err)
}

// Later sends a statement with the next awaited one, or with the end of the transaction. That one returns its
// error.
func (t *transaction) Later(query string, args ...any) { t.waiting.Queue(query, args...) }

// later is Later of the transaction that gorm works in.
func later(tx *gorm.DB, query string, args ...any) error {
	t, err := transactionOf(tx)
	if err != nil {
		return err
	}
	t.Later(query, args...)
	return nil
}

// transactionOf returns the transaction that gorm works in.
func transactionOf(tx *gorm.DB) (*transaction, error) {
	t, ok := tx.Statement.ConnPool.(*transaction)
	if !ok {
		return nil, fmt.Errorf("no transaction but a %T", tx.Statement.ConnPool)
	}
	return t, nil
}

// Each sends a query with the waiting statements, and calls scan with each row of its answer.
func (t *transaction) Each(ctx context.Context, scan func(row pgx.CollectableRow) error, query string, args ...any) error {
	t.waiting.Queue(query, args...).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			if err := scan(rows); err != nil {
				return err
			}
		}
		return rows.Err()
	})
	return t.Send(ctx)
}

// Send sends the waiting statements.
func (t *transaction) Send(ctx context.Context) error {
	if t.failed != nil || t.waiting.Len() == 0 {
		return t.failed
	}
	batch := t.waiting
	t.sent, t.waiting = true, pgx.Batch{}
	t.failed = t.Raw(func(any) error { return t.below.SendBatch(ctx, &batch).Close() })
	return t.failed
}

// ExecContext implements gorm.ConnPool.
func (t *transaction) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	var result driver.RowsAffected
	if t.failed != nil {
		return nil, t.failed
	}
	own := false
	t.waiting.Queue(query, args...).Fn = func(results pgx.BatchResults) error {
		done, err := results.Exec()
		result, own = driver.RowsAffected(done.RowsAffected()), err != nil
		return err
	}
	err := t.Send(ctx)
	if own {
		t.failed = nil // because a savepoint may undo it
	}
	return result, err
}

// QueryContext implements gorm.ConnPool.
func (t *transaction) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	if err := t.Send(ctx); err != nil {
		return nil, err
	}
	return t.Conn.QueryContext(ctx, query, args...)
}

// QueryRowContext implements gorm.ConnPool.
func (t *transaction) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	if err := t.Send(ctx); err != nil { // a row cannot return an error, so end does
		ended, cancel := context.WithCancel(ctx)
		cancel()
		ctx = ended
	}
	return t.Conn.QueryRowContext(ctx, query, args...)
}

// Commit implements gorm.TxCommitter, so that gorm uses savepoints inside.
func (*transaction) Commit() error { return errNotOurs }

// Rollback implements gorm.TxCommitter.
func (*transaction) Rollback() error { return errNotOurs }

// end commits a transaction without errors and rolls back any other.
func (t *transaction) end(ctx context.Context, err error) error {
	if isIdle := !t.sent && t.waiting.Len() == beginning; err == nil && !isIdle {
		t.waiting.Queue("commit").Exec(func(done pgconn.CommandTag) error {
			if done.String() == "ROLLBACK" { // a statement failed without a reported error
				return pgx.ErrTxCommitRollback
			}
			return nil
		})
		err = t.Send(ctx)
	}
	if err == nil {
		return nil
	}
	t.undo(ctx)
	if t.failed != nil && !errors.Is(err, t.failed) {
		return t.failed // the cause of the later errors
	}
	return err
}

// undo rolls the transaction back. If that fails, it closes the connection.
func (t *transaction) undo(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTimeout)
	defer cancel()
	// Raw fails if database/sql has dropped the connection, for example because the pool is closing it. That
	// also rolls back.
	_ = t.Raw(func(any) error {
		if t.below.IsClosed() || t.below.PgConn().TxStatus() == idle {
			return nil
		}
		if _, err := t.below.Exec(ctx, "rollback"); err != nil {
			return t.below.Close(ctx)
		}
		return nil
	})
}

// connectionOf returns pgx's connection below one of database/sql.
func connectionOf(pooled *sql.Conn) (*pgx.Conn, error) {
	var conn *pgx.Conn
	err := pooled.Raw(func(lent any) error {
		below, ok := lent.(*stdlib.Conn)
		if !ok {
			return fmt.Errorf("not pgx's connection but a %T", lent)
		}
		conn = below.Conn()
		return nil
	})
	return conn, err
}

// tenant is the scope of a workspace.
func (c *core) tenant(tenant tenants.Tenant) batchdb.Scope {
	return func(ctx context.Context, fn func(tx *gorm.DB) error) error { return c.inTenant(ctx, tenant, fn) }
}

// user is the scope of a person.
func (c *core) user(user uuid.UUID) batchdb.Scope {
	return func(ctx context.Context, fn func(tx *gorm.DB) error) error { return c.inUser(ctx, user, fn) }
}

// operator is the scope of an operator.
func (c *core) operator(operator uuid.UUID) batchdb.Scope {
	return func(ctx context.Context, fn func(tx *gorm.DB) error) error { return c.asOperator(ctx, operator, fn) }
}

// all returns the rows of a table that match a condition, in order, in a transaction of its own.
func all[T any](ctx context.Context, in batchdb.Scope, table, order, condition string, values ...any) ([]T, error) {
	return batchdb.Read(ctx, in, func(tx *gorm.DB) ([]T, error) {
		return list[T](tx.Table(table).Where(condition, values...).Order(order))
	})
}

// list returns the rows of a query.
func list[T any](query *gorm.DB) ([]T, error) {
	var found []T
	err := query.Find(&found).Error
	return found, err
}

// find returns the first row of a query, or tenants.ErrNotFound.
func find[T any](query *gorm.DB) (T, error) {
	var found T
	err := query.Take(&found).Error
	if errors.Is(err, gorm.ErrRecordNotFound) {
		err = tenants.ErrNotFound
	}
	return found, err
}

// locked makes a query lock its rows until the transaction ends.
func locked() clause.Expression { return clause.Locking{Strength: clause.LockingStrengthUpdate} }

// create inserts a row into a table, without the omitted columns. It is sent with the transaction's next awaited
// statement, which returns its error: see transaction.
func create(tx *gorm.DB, table string, row any, omitted ...string) error {
	return queue(tx, batchdb.DryRun(tx).Table(table).Omit(omitted...).Create(row))
}

// update sets columns of the rows that match a condition to the fields of a row. It is sent like create.
func update(tx *gorm.DB, table string, row any, columns []string, condition string, values ...any) error {
	return queue(tx, batchdb.DryRun(tx).Table(table).Where(condition, values...).Select(columns).Updates(row))
}

// queue queues a statement with texts that columns accept.
func queue(tx, built *gorm.DB) error {
	for i, value := range built.Statement.Vars {
		if text, is := value.(string); is {
			built.Statement.Vars[i] = storable(text)
		}
	}
	return batchdb.Queue(tx, built)
}

// owned is a row of a workspace: its id and the columns of a domain type.
type owned[T any] struct {
	WorkspaceID tenants.WorkspaceID
	Row         T `gorm:"embedded"`
}

// registerForms registers the stored forms of fields, which domain types name in their tags.
func registerForms() {
	schema.RegisterSerializer("null", nullForm{})
	schema.RegisterSerializer("list", listForm{","})
	schema.RegisterSerializer("lines", listForm{"\n"})
	schema.RegisterSerializer("array", arrayForm{})
	schema.RegisterSerializer("seconds", durationForm{time.Second})
	schema.RegisterSerializer("microseconds", durationForm{time.Microsecond})
	schema.RegisterSerializer("name", nameForm{})
	schema.RegisterSerializer("object", objectForm{})
	schema.RegisterSerializer("report", reportForm{})
}

// nullForm stores zero as NULL.
type nullForm struct{}

// Scan implements schema.SerializerInterface.
func (nullForm) Scan(ctx context.Context, field *schema.Field, to reflect.Value, stored any) error {
	return field.Set(ctx, to, stored)
}

// Value implements schema.SerializerInterface.
func (nullForm) Value(_ context.Context, _ *schema.Field, _ reflect.Value, value any) (any, error) {
	if reflect.ValueOf(value).IsZero() {
		return nil, nil //nolint:nilnil // NULL
	}
	return value, nil
}

// listForm stores a list of texts as one, with a separator.
type listForm struct{ separator string }

// Scan implements schema.SerializerInterface.
func (f listForm) Scan(ctx context.Context, field *schema.Field, to reflect.Value, stored any) error {
	text, _ := stored.(string)
	texts := field.ReflectValueOf(ctx, to)
	texts.SetZero()
	for part := range strings.SplitSeq(text, f.separator) {
		if part != "" {
			texts.Set(reflect.Append(texts, reflect.ValueOf(part).Convert(texts.Type().Elem())))
		}
	}
	return nil
}

// Value implements schema.SerializerInterface.
func (f listForm) Value(_ context.Context, _ *schema.Field, _ reflect.Value, value any) (any, error) {
	texts := reflect.ValueOf(value)
	joined := make([]string, texts.Len())
	for i := range joined {
		joined[i] = texts.Index(i).String()
	}
	return storable(strings.Join(joined, f.separator)), nil
}

// arrayForm stores a list as a JSON array, which is empty for nil.
type arrayForm struct{ schema.JSONSerializer }

// Value implements schema.SerializerInterface.
func (arrayForm) Value(_ context.Context, _ *schema.Field, _ reflect.Value, value any) (any, error) {
	if reflect.ValueOf(value).Len() == 0 {
		return "[]", nil
	}
	encoded, err := json.Marshal(value)
	return string(encoded), err
}

// durationForm stores a duration as a number of units.
type durationForm struct{ unit time.Duration }

// Scan implements schema.SerializerInterface.
func (f durationForm) Scan(ctx context.Context, field *schema.Field, to reflect.Value, stored any) error {
	units, _ := stored.(int64)
	return field.Set(ctx, to, units*int64(f.unit))
}

// Value implements schema.SerializerInterface.
func (f durationForm) Value(_ context.Context, _ *schema.Field, _ reflect.Value, value any) (any, error) {
	return reflect.ValueOf(value).Int() / int64(f.unit), nil
}

// kind converts the database's error for a missing row to ours.
func kind(err error) error {
	if errors.Is(err, gorm.ErrRecordNotFound) {
		return tenants.ErrNotFound
	}
	return err
}

// isDuplicate reports whether a row was rejected as a duplicate. It is needed because gorm does not translate
// the errors of statements that return rows.
func isDuplicate(err error) bool {
	const uniqueViolation = "23505"
	var failure *pgconn.PgError
	return errors.As(err, &failure) && failure.Code == uniqueViolation
}
