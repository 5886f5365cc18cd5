// Package batchdb sends several statements of a database transaction in one round trip, so that
// what others wait for, such as a locked row, is held for a shorter time.
package batchdb

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"gorm.io/gorm"

	"palimpsest/tenants"
)

// transaction is one that keeps statements until an answer is waited for.
type transaction interface {
	tenants.Tenant

	Later(query string, args ...any)
	Each(ctx context.Context, scan func(row pgx.CollectableRow) error, query string, args ...any) error
}

// Later has a statement sent with the next one of the transaction whose answer is waited for,
// or with its end. An error of the statement is an error of those. What args refer to must not
// change until then.
func Later(tx *gorm.DB, query string, args ...any) error {
	waiting, err := of(tx)
	if err == nil {
		waiting.Later(query, args...)
	}
	return err
}

// Each sends a query with all that waits, and calls scan with each row of its answer.
func Each(tx *gorm.DB, scan func(row pgx.CollectableRow) error, query string, args ...any) error {
	waiting, err := of(tx)
	if err != nil {
		return err
	}
	return waiting.Each(tx.Statement.Context, scan, query, args...)
}

// Rows returns what scan makes of each row of a query's answer. It sends the query as Each does.
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

// Tenant returns the tenant of a transaction: what is done for it is a part of that one.
func Tenant(tx *gorm.DB) (tenants.Tenant, error) { return of(tx) }

func of(tx *gorm.DB) (transaction, error) {
	waiting, ok := tx.Statement.ConnPool.(transaction)
	if !ok {
		return nil, fmt.Errorf("a %T is no transaction of tenantsdb", tx.Statement.ConnPool)
	}
	return waiting, nil
}
