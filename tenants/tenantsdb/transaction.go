package tenantsdb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"gorm.io/gorm"

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
