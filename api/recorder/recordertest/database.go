// Package recordertest provides a database for tests of packages that record.
package recordertest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/google/uuid"

	"palimpsest/pipeline/faulttest"
	"palimpsest/pipeline/session"
	"palimpsest/tenants"
)

// exchanges covers the methods of tenants.Exchanges that a Database does not implement.
type exchanges interface{ tenants.Exchanges }

// Database waits for permission to write, fails on demand, and keeps the rows of committed transactions.
type Database struct {
	exchanges
	session.Store

	Open    chan struct{} // closed to allow writes
	Tried   chan struct{} // receives failed attempts
	Fails   atomic.Bool
	Written atomic.Int64 // exchanges

	Calls *faulttest.Calls // of its methods; optional

	mu   sync.Mutex
	kept Kept
}

// Kept are the rows of a Database.
type Kept struct {
	Updates   []session.Update
	Exchanges []tenants.Exchange
}

// transaction is a tenant with an open transaction.
type transaction struct {
	tenants.Tenant

	kept Kept
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
	if _, joins := tenant.(*transaction); joins {
		return fn(tenant)
	}
	return d.Calls.Do(func() error {
		begun := &transaction{Tenant: tenant}
		if err := fn(begun); err != nil {
			return err
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		d.kept.Updates = append(d.kept.Updates, begun.kept.Updates...)
		for _, one := range begun.kept.Exchanges { // an existing one stays
			if !slices.ContainsFunc(d.kept.Exchanges, func(known tenants.Exchange) bool { return known.ID == one.ID }) {
				d.kept.Exchanges = append(d.kept.Exchanges, one)
			}
		}
		d.Written.Add(int64(len(begun.kept.Exchanges)))
		return nil
	})
}

// Kept returns the rows of committed transactions.
func (d *Database) Kept() Kept {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.kept
}

// Record implements session.Store.
func (d *Database) Record(_ context.Context, tenant tenants.Tenant, updates []session.Update) error {
	return d.Calls.Do(func() error {
		if begun, joins := tenant.(*transaction); joins {
			begun.kept.Updates = append(begun.kept.Updates, updates...)
		}
		return nil
	})
}

// RecordExchanges implements tenants.Exchanges.
func (d *Database) RecordExchanges(_ context.Context, tenant tenants.Tenant, exchanges []tenants.Exchange) error {
	return d.Calls.Do(func() error {
		if begun, joins := tenant.(*transaction); joins {
			begun.kept.Exchanges = append(begun.kept.Exchanges, exchanges...)
		}
		return nil
	})
}

// RecordedExchanges implements tenants.Exchanges.
func (d *Database) RecordedExchanges(_ context.Context, _ tenants.Tenant, ids []uuid.UUID) (recorded []uuid.UUID, err error) {
	err = d.Calls.Do(func() error {
		for _, one := range d.Kept().Exchanges {
			if slices.Contains(ids, one.ID) {
				recorded = append(recorded, one.ID)
			}
		}
		return nil
	})
	return recorded, err
}
