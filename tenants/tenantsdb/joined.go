package tenantsdb

import (
	"context"

	"github.com/jackc/pgx/v5"
	"gorm.io/gorm"

	"palimpsest/tenants"
)

// Joined runs fn with a tenant's transaction as a pgx.Tx, for libraries that need pgx. fn must not commit or
// roll it back.
func (db *DB) Joined(ctx context.Context, tenant tenants.Tenant, fn func(tx pgx.Tx) error) error {
	return db.inTenant(ctx, tenant, func(tx *gorm.DB) error {
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
