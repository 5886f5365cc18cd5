package batchdb

import (
	"context"
	"database/sql"
	"errors"

	"github.com/jackc/pgx/v5"
	"gorm.io/gorm"

	"palimpsest/tenants"
)

// Scope runs fn in a transaction that sees the rows of a workspace, of a person, or of background work.
type Scope = func(ctx context.Context, fn func(tx *gorm.DB) error) error

// Of is the scope of a tenant.
func Of(runner TxRunner, tenant tenants.Tenant) Scope {
	return func(ctx context.Context, fn func(tx *gorm.DB) error) error { return runner.InTenant(ctx, tenant, fn) }
}

// Read returns the result of fn in a transaction.
func Read[T any](ctx context.Context, in Scope, fn func(tx *gorm.DB) (T, error)) (T, error) {
	var found T
	err := in(ctx, func(tx *gorm.DB) (err error) {
		found, err = fn(tx)
		return err
	})
	return found, err
}

// List is Rows in a transaction of its own.
func List[T any](ctx context.Context, in Scope, scan func(row pgx.CollectableRow) (T, error), query string, args ...any) ([]T, error) {
	return Read(ctx, in, func(tx *gorm.DB) ([]T, error) { return Rows(tx, scan, query, args...) })
}

// ForEach is Each in a transaction of its own.
func ForEach(ctx context.Context, in Scope, scan func(row pgx.CollectableRow) error, query string, args ...any) error {
	return in(ctx, func(tx *gorm.DB) error { return Each(tx, scan, query, args...) })
}

// Row reads the first row of a query's answer into to, in a transaction of its own. Without a row it returns
// the error missing.
func Row(ctx context.Context, in Scope, missing error, to []any, query string, args ...any) error {
	err := in(ctx, func(tx *gorm.DB) error { return tx.Statement.ConnPool.QueryRowContext(ctx, query, args...).Scan(to...) })
	if errors.Is(err, sql.ErrNoRows) {
		return missing
	}
	return err
}

// Changed runs a statement in a transaction of its own, and returns the number of changed rows.
func Changed(ctx context.Context, in Scope, statement string, args ...any) (int64, error) {
	return Read(ctx, in, func(tx *gorm.DB) (int64, error) {
		result, err := tx.Statement.ConnPool.ExecContext(ctx, statement, args...)
		if err != nil {
			return 0, err
		}
		return result.RowsAffected()
	})
}

// Query returns the answer of a statement, whose values are written as ?. A slice receives its rows, any other
// type its only row, or zero without rows.
func Query[T any](tx *gorm.DB, statement string, values ...any) (T, error) {
	var found T
	err := tx.Raw(statement, values...).Scan(&found).Error
	return found, err
}

// Scan is Query in a transaction of its own.
func Scan[T any](ctx context.Context, in Scope, statement string, values ...any) (T, error) {
	return Read(ctx, in, func(tx *gorm.DB) (T, error) { return Query[T](tx, statement, values...) })
}

// Write is Later for a statement whose values are written as ?.
func Write(tx *gorm.DB, statement string, values ...any) error {
	return Queue(tx, DryRun(tx).Exec(statement, values...))
}

// Exec is Write in a transaction of its own.
func Exec(ctx context.Context, in Scope, statement string, values ...any) error {
	return in(ctx, func(tx *gorm.DB) error { return Write(tx, statement, values...) })
}

// DryRun returns a session of a transaction whose statements are built only, for Queue.
func DryRun(tx *gorm.DB) *gorm.DB { return tx.Session(&gorm.Session{DryRun: true}) }

// Queue is Later for a statement that gorm has built in a session of DryRun.
func Queue(tx, built *gorm.DB) error {
	if built.Error != nil {
		return built.Error
	}
	return Later(tx, built.Statement.SQL.String(), built.Statement.Vars...)
}
