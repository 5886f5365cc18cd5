package billingdb

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"palimpsest/billing"
	"palimpsest/pipeline/batchdb"
	"palimpsest/tenants"
)

// AskEnd implements billing.Store. It takes part in the transaction of Together. The database rejects a
// customer that does not belong to the workspace.
func (s *Store) AskEnd(ctx context.Context, tenant tenants.Tenant, end billing.End) error {
	err := s.db.InTenant(ctx, tenant, func(tx *gorm.DB) error {
		return tx.Exec("INSERT INTO subscription_ends (id, customer, asked_at, next_at) VALUES (?, ?, ?, ?)", end.ID, end.Customer, end.AskedAt, end.AskedAt).Error
	})
	return batchdb.Wrapf(err, "ask for the end of subscriptions of %s", end.Customer)
}

// DueEnds implements billing.Store.
func (s *Store) DueEnds(ctx context.Context, now time.Time, limit int) ([]billing.End, error) {
	var rows []struct {
		ID       uuid.UUID
		Customer string
		AskedAt  time.Time
		Attempts int
	}
	err := s.db.AsWorker(ctx, func(tx *gorm.DB) error {
		return tx.Raw("SELECT id, customer, asked_at, attempts FROM subscription_ends WHERE next_at <= ? ORDER BY next_at, id LIMIT ?", now, limit).Scan(&rows).Error
	})
	if err != nil {
		return nil, fmt.Errorf("subscriptions that are to end: %w", err)
	}
	ends := make([]billing.End, len(rows))
	for i, row := range rows {
		ends[i] = billing.End{ID: row.ID, Customer: row.Customer, AskedAt: row.AskedAt.UTC(), Attempts: row.Attempts}
	}
	return ends, nil
}

// DelayEnd implements billing.Store.
func (s *Store) DelayEnd(ctx context.Context, id uuid.UUID, until time.Time) error {
	err := s.db.AsWorker(ctx, func(tx *gorm.DB) error {
		return tx.Exec("UPDATE subscription_ends SET attempts = attempts + 1, next_at = ? WHERE id = ?", until, id).Error
	})
	return batchdb.Wrapf(err, "delay the end of a subscription")
}

// CloseEnd implements billing.Store.
func (s *Store) CloseEnd(ctx context.Context, end billing.End, ended bool, why string) error {
	err := s.db.AsWorker(ctx, func(tx *gorm.DB) error {
		closed := tx.Exec("DELETE FROM subscription_ends WHERE id = ?", end.ID)
		if closed.Error != nil || closed.RowsAffected == 0 {
			return closed.Error // another process has closed it
		}
		return tx.Exec("SELECT note_subscription_end(?, ?, ?)", end.Customer, ended, why).Error
	})
	return batchdb.Wrapf(err, "close the end of subscriptions of %s", end.Customer)
}
