package tenantsdb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"gorm.io/gorm"
)

// errNotOurs says that a transaction is ended by the caller that opened it.
var errNotOurs = errors.New("a joined transaction is ended by the one that opened it")

// Joined runs fn with a workspace's transaction as pgx knows it, for libraries that
// know pgx only. It takes part in the transaction of ctx, that of Together or of a
// statement's context, and opens one if absent. fn neither commits it nor
// rolls it back.
func (db *DB) Joined(ctx context.Context, workspace uuid.UUID, fn func(tx pgx.Tx) error) error {
	if inside, ok := ctx.Value(insideKey{}).(inside); ok && inside.value == workspace.String() {
		return fn(joined{inside.conn})
	}
	return db.InTenant(ctx, workspace, func(tx *gorm.DB) error {
		inside, ok := tx.Statement.Context.Value(insideKey{}).(inside)
		if !ok {
			return errors.New("transaction without a connection")
		}
		return fn(joined{inside.conn})
	})
}

// inside is what belongs to the transaction of a statement's context.
type inside struct {
	value  string // whom it works for
	conn   *pgx.Conn
	sealer Sealer // of mails; nil if none
}

type insideKey struct{}

// connectionOf returns pgx's connection below one of database/sql.
func connectionOf(tx *gorm.DB) (*pgx.Conn, error) {
	pooled, ok := tx.Statement.ConnPool.(*sql.Conn)
	if !ok {
		return nil, fmt.Errorf("no connection but a %T", tx.Statement.ConnPool)
	}
	var conn *pgx.Conn
	err := pooled.Raw(func(driver any) error {
		below, ok := driver.(*stdlib.Conn)
		if !ok {
			return fmt.Errorf("not pgx's connection but a %T", driver)
		}
		conn = below.Conn()
		return nil
	})
	return conn, err
}

// joined is a transaction that someone else ends.
type joined struct{ connection }

// connection is the name under which joined embeds it: pgx.Tx has a method Conn.
type connection = *pgx.Conn

// Begin implements pgx.Tx: there are no transactions inside it.
func (joined) Begin(context.Context) (pgx.Tx, error) { return nil, errNotOurs }

// Commit implements pgx.Tx.
func (joined) Commit(context.Context) error { return errNotOurs }

// Rollback implements pgx.Tx.
func (joined) Rollback(context.Context) error { return errNotOurs }

// LargeObjects implements pgx.Tx. There are none.
func (joined) LargeObjects() pgx.LargeObjects { return pgx.LargeObjects{} }

// Conn implements pgx.Tx.
func (j joined) Conn() *pgx.Conn { return j.connection }
