// Package batchdb sends several statements of a database transaction in one round trip, so that locks that
// others wait for, such as those of rows, are held for a shorter time.
package batchdb

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
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
