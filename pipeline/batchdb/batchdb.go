// Package batchdb sends several statements of a database transaction in one round trip, so that locks that
// others wait for, such as those of rows, are held for a shorter time.
package batchdb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"gorm.io/gorm"

	"palimpsest/tenants"
)

// transaction is a transaction that queues statements until it needs an answer.
type transaction interface {
	tenants.Tenant

	Later(query string, args ...any)
	Each(ctx context.Context, scan func(row pgx.CollectableRow) error, query string, args ...any) error
}

// Later queues a statement. It is sent with the transaction's next statement that needs an answer, or at the
// transaction's end, and its error is returned there. The values that args refer to must not change until
// then.
func Later(tx *gorm.DB, query string, args ...any) error {
	waiting, err := of(tx)
	if err == nil {
		waiting.Later(query, args...)
	}
	return err
}

// Each sends a query with all queued statements, and calls scan with each row of its answer.
func Each(tx *gorm.DB, scan func(row pgx.CollectableRow) error, query string, args ...any) error {
	waiting, err := of(tx)
	if err != nil {
		return err
	}
	return waiting.Each(tx.Statement.Context, scan, query, args...)
}

// Rows returns the result of scan for each row of a query's answer. It sends the query as Each does.
func Rows[T any](tx *gorm.DB, scan func(row pgx.CollectableRow) (T, error), query string, args ...any) ([]T, error) {
	var found []T
	err := Each(tx, func(row pgx.CollectableRow) error {
		one, err := scan(row)
		if err == nil {
			found = append(found, one)
		}
		return err
	}, query, args...)
	if err != nil {
		return nil, err
	}
	return found, nil
}

// Tenant returns the tenant of a transaction, whose work then becomes part of that transaction.
func Tenant(tx *gorm.DB) (tenants.Tenant, error) { return of(tx) }

func of(tx *gorm.DB) (transaction, error) {
	waiting, ok := tx.Statement.ConnPool.(transaction)
	if !ok {
		return nil, fmt.Errorf("a %T is no transaction of tenantsdb", tx.Statement.ConnPool)
	}
	return waiting, nil
}

// ErrUnopened means that the database is not open yet, because it was unreachable when the program started.
var ErrUnopened = errors.New("the database is not open yet")

// IsAway reports whether an error means that the database is unreachable or temporarily refuses work. Such an
// error is not caused by the statement. Postgres' classes 08, 53, 57 and 58 are connection errors, a full
// disk or memory, operator intervention and system errors; 25006 is a replica that does not accept writes
// yet.
func IsAway(err error) bool {
	if err == nil {
		return false
	}
	if refused, is := errors.AsType[*pgconn.PgError](err); is {
		_, connecting := errors.AsType[*pgconn.ConnectError](err)
		return connecting || refused.Code == "25006" || slices.Contains([]string{"08", "53", "57", "58"}, refused.Code[:2])
	}
	_, connecting := errors.AsType[*pgconn.ConnectError](err)
	_, network := errors.AsType[net.Error](err)
	return connecting || network || errors.Is(err, ErrUnopened) || pgconn.SafeToRetry(err) || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, driver.ErrBadConn) || errors.Is(err, sql.ErrConnDone) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// Wrapf returns an error that says what failed and why, or nil if err is nil. A store's method ends with it:
// `return key, batchdb.Wrapf(err, "API key %s", id)`. Callers must not use a value that is returned with an
// error.
func Wrapf(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), err)
}

// First returns the first row of a query's result, and the error missing if there are no rows. err is the
// query's own error.
func First[T any](found []T, err, missing error) (T, error) {
	if err == nil && len(found) == 0 {
		err = missing
	}
	if err != nil {
		var none T
		return none, err
	}
	return found[0], nil
}

// TxRunner opens database transactions with access to tenants' rows.
type TxRunner interface {
	// InTenant runs fn in a transaction that sees the rows of one workspace.
	InTenant(ctx context.Context, tenant tenants.Tenant, fn func(tx *gorm.DB) error) error

	// AsWorker runs fn in a transaction that sees the rows of all workspaces that background work needs.
	AsWorker(ctx context.Context, fn func(tx *gorm.DB) error) error
}
