// Package recordertest has a database for the tests of what records.
package recordertest

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/google/uuid"

	"palimpsest/pipeline/session"
	"palimpsest/tenants"
)

// exchanges is what a Database does not implement of tenants.Exchanges.
type exchanges interface{ tenants.Exchanges }

// Database waits for leave to write, fails when it is told to, and forgets what it is given.
type Database struct {
	exchanges
	session.Store

	Open    chan struct{} // closed: it writes
	Tried   chan struct{} // hears of attempts that fail
	Fails   atomic.Bool
	Written atomic.Int64 // exchanges
}

// NewDatabase returns a Database that waits.
func NewDatabase() *Database {
	return &Database{Open: make(chan struct{}), Tried: make(chan struct{}, 1)}
}

// Together implements tenants.Transactor.
func (d *Database) Together(_ context.Context, tenant tenants.Tenant, fn func(tenant tenants.Tenant) error) error {
	<-d.Open
	if d.Fails.Load() {
		select {
		case d.Tried <- struct{}{}:
		default:
		}
		return errors.New("no database")
	}
	return fn(tenant)
}

// Record implements session.Store.
func (*Database) Record(context.Context, tenants.Tenant, []session.Update) error { return nil }

// RecordExchanges implements tenants.Exchanges.
func (d *Database) RecordExchanges(_ context.Context, _ tenants.Tenant, exchanges []tenants.Exchange) error {
	d.Written.Add(int64(len(exchanges)))
	return nil
}

// RecordedExchanges implements tenants.Exchanges.
func (*Database) RecordedExchanges(context.Context, tenants.Tenant, []uuid.UUID) ([]uuid.UUID, error) {
	return nil, nil
}
