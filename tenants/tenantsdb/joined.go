package tenantsdb

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"gorm.io/gorm"

	"palimpsest/tenants"
)

// Joined runs fn with a workspace's transaction as pgx knows it, for libraries that
// know pgx only. It takes part in the transaction of ctx, that of Together or of a
// statement's context, and opens one if absent. fn neither commits it nor
// rolls it back.
func (db *DB) Joined(ctx context.Context, workspace tenants.WorkspaceID, fn func(tx pgx.Tx) error) error {
	if inside, ok := ctx.Value(insideKey{}).(inside); ok && inside.value == workspace.String() {
		return inside.work.join(ctx, fn)
	}
	return db.inTenant(ctx, workspace, func(tx *gorm.DB) error {
		inside, ok := tx.Statement.Context.Value(insideKey{}).(inside)
		if !ok {
			return errors.New("transaction without a connection")
		}
		return inside.work.join(ctx, fn)
	})
}

// join runs fn with the transaction as pgx knows it, once the server has heard of it.
func (t *transaction) join(ctx context.Context, fn func(tx pgx.Tx) error) error {
	if err := t.Send(ctx); err != nil {
		return err
	}
	return t.Raw(func(any) error { return fn(joined{t.below}) })
}

// inside is what belongs to the transaction of a statement's context.
type inside struct {
	value  string // whom it works for
	work   *transaction
	sealer tenants.Sealer // of mails; nil if none
}

type insideKey struct{}

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

// LargeObjects implements pgx.Tx. Palimpsest uses none.
func (joined) LargeObjects() pgx.LargeObjects { return pgx.LargeObjects{} }

// Conn implements pgx.Tx.
func (j joined) Conn() *pgx.Conn { return j.connection }
