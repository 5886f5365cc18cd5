package billingdb

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"palimpsest/billing"
	"palimpsest/pipeline/batchdb"
	"palimpsest/tenants"
	"palimpsest/tenants/tenantsdb"
)

// Store stores the accounts of all workspaces.
type Store struct {
	db    *tenantsdb.DB
	audit tenantsdb.Audit
}

// New returns the store of a database.
func New(db *tenantsdb.DB) *Store { return &Store{db: db, audit: db.Audit} }

const accountColumns = `customer, subscription, plan, status, seats, period_start, period_end, trial_end, ends_at, past_due_since,
	metered_from, metered_to, restraint, restrained_at, told`

// Account implements billing.Store.
func (s *Store) Account(ctx context.Context, tenant tenants.Tenant) (billing.Account, error) {
	workspace := tenant.Workspace()
	account, err := batchdb.Read(ctx, batchdb.Of(s.db, tenant), func(tx *gorm.DB) (billing.Account, error) { return accountOf(tx, workspace) })
	return account, batchdb.Wrapf(err, "account of workspace %s", workspace)
}

// Restraint returns a workspace's restraint.
func (s *Store) Restraint(ctx context.Context, workspace tenants.WorkspaceID) (tenants.Restraint, error) {
	account, err := s.Account(ctx, workspace)
	return account.Restraint, err
}

// KeepCustomer implements billing.Store.
func (s *Store) KeepCustomer(ctx context.Context, workspace tenants.WorkspaceID, customer string) (string, error) {
	kept, err := batchdb.Scan[string](ctx, batchdb.Of(s.db, workspace), `INSERT INTO billing_accounts (workspace_id, customer) VALUES (?, ?)
			ON CONFLICT (workspace_id) DO UPDATE SET customer = CASE billing_accounts.customer WHEN '' THEN EXCLUDED.customer ELSE billing_accounts.customer END
			RETURNING customer`, workspace, customer)
	return kept, batchdb.Wrapf(err, "keep customer of workspace %s", workspace)
}

// WorkspaceOf implements billing.Store.
func (s *Store) WorkspaceOf(ctx context.Context, customer string) (tenants.WorkspaceID, error) {
	var found []tenants.WorkspaceID
	err := s.db.InTenant(ctx, tenants.WorkspaceID{}, func(tx *gorm.DB) error {
		if err := tx.Exec("SELECT set_config('app.stripe_customer', ?, true)", customer).Error; err != nil {
			return err
		}
		return tx.Raw("SELECT workspace_id FROM billing_accounts WHERE customer = ?", customer).Scan(&found).Error
	})
	one, err := batchdb.First(found, err, tenants.ErrNotFound)
	return one, batchdb.Wrapf(err, "workspace of customer %s", customer)
}

// Members implements billing.Store.
func (s *Store) Members(ctx context.Context, workspace tenants.WorkspaceID) (int64, error) {
	count, err := batchdb.Scan[int64](ctx, batchdb.Of(s.db, workspace), "SELECT count(*) FROM members WHERE workspace_id = ?", workspace)
	return count, batchdb.Wrapf(err, "members of workspace %s", workspace)
}

// Note implements billing.Store.
func (s *Store) Note(ctx context.Context, workspace tenants.WorkspaceID, change tenants.Change) error {
	return s.audit.Note(ctx, workspace, change)
}

// Restrain implements billing.Store.
func (s *Store) Restrain(ctx context.Context, workspace tenants.WorkspaceID, restraint tenants.Restraint) error {
	err := s.db.InTenant(ctx, workspace, func(tx *gorm.DB) error {
		return errors.Join(batchdb.Write(tx, `INSERT INTO billing_accounts (workspace_id, restraint, restrained_at) VALUES (?, ?, ?)
			ON CONFLICT (workspace_id) DO UPDATE SET restraint = EXCLUDED.restraint, restrained_at = EXCLUDED.restrained_at`,
			workspace, restraint.Reason, nullable(restraint.Since)),
			batchdb.Write(tx, "SELECT pg_notify(?, ?)", tenantsdb.SettingsChannel, workspace.String()))
	})
	return batchdb.Wrapf(err, "restrain workspace %s", workspace)
}

// Tell implements billing.Store.
func (s *Store) Tell(ctx context.Context, workspace tenants.WorkspaceID, trouble string, send func(tenant tenants.Tenant, to []string) error) error {
	err := s.db.Together(ctx, workspace, func(tenant tenants.Tenant) error {
		var to []string
		isNew := false
		err := s.db.InTenant(ctx, tenant, func(tx *gorm.DB) error {
			noted := tx.Exec(`INSERT INTO billing_accounts (workspace_id, told) VALUES (?, ?)
				ON CONFLICT (workspace_id) DO UPDATE SET told = EXCLUDED.told WHERE billing_accounts.told <> EXCLUDED.told`, workspace, trouble)
			isNew = noted.RowsAffected > 0
			if noted.Error != nil || !isNew {
				return noted.Error
			}
			return tx.Raw(`SELECT u.email FROM members m JOIN users u ON u.id = m.user_id
				WHERE m.workspace_id = ? AND m.role IN ('owner', 'billing') ORDER BY u.email`, workspace).Scan(&to).Error
		})
		if err != nil || !isNew {
			return err
		}
		return send(tenant, to)
	})
	return batchdb.Wrapf(err, "tell workspace %s of %q", workspace, trouble)
}

// Due implements billing.Store.
func (s *Store) Due(ctx context.Context, now time.Time, limit int) ([]tenants.WorkspaceID, error) {
	due, err := batchdb.Scan[[]tenants.WorkspaceID](ctx, s.db.AsWorker, `SELECT workspace_id FROM billing_accounts WHERE due_at <= ?
			UNION SELECT workspace_id FROM usage_meter WHERE exchanges <> looked_at
			UNION SELECT workspace_id FROM usage_meter_deltas
			ORDER BY workspace_id LIMIT ?`, now, limit)
	return due, batchdb.Wrapf(err, "workspaces that are due")
}

// LookAt implements billing.Store.
func (s *Store) LookAt(ctx context.Context, workspace tenants.WorkspaceID) error {
	err := s.db.InTenant(ctx, workspace, func(tx *gorm.DB) error {
		return errors.Join(batchdb.Write(tx, `INSERT INTO billing_accounts (workspace_id, due_at) VALUES (?, '-infinity')
			ON CONFLICT (workspace_id) DO UPDATE SET due_at = EXCLUDED.due_at`, workspace),
			fold(tx, workspace), batchdb.Write(tx, "UPDATE usage_meter SET looked_at = exchanges WHERE workspace_id = ? AND exchanges <> looked_at", workspace))
	})
	return batchdb.Wrapf(err, "look at workspace %s", workspace)
}

// LookAgain implements billing.Store.
func (s *Store) LookAgain(ctx context.Context, workspace tenants.WorkspaceID, at time.Time) error {
	err := batchdb.Exec(ctx, batchdb.Of(s.db, workspace), "UPDATE billing_accounts SET due_at = ? WHERE workspace_id = ?", at, workspace)
	return batchdb.Wrapf(err, "look at workspace %s again", workspace)
}

func accountOf(tx *gorm.DB, workspace tenants.WorkspaceID) (billing.Account, error) {
	rows, err := batchdb.Query[[]billing.Account](tx, "SELECT workspace_id, "+accountColumns+" FROM billing_accounts WHERE workspace_id = ?", workspace)
	return append(rows, billing.Account{Workspace: workspace, State: billing.State{Plan: billing.Free}})[0], err
}

// nullable returns a time for a column: NULL if zero.
func nullable(at time.Time) *time.Time {
	if at.IsZero() {
		return nil
	}
	return &at
}

// Interface guard.
var _ billing.Store = (*Store)(nil)

// AskEnd implements billing.Store. It takes part in the transaction of Together. The database rejects a
// customer that does not belong to the workspace.
func (s *Store) AskEnd(ctx context.Context, tenant tenants.Tenant, end billing.End) error {
	err := batchdb.Exec(ctx, batchdb.Of(s.db, tenant), "INSERT INTO subscription_ends (id, customer, asked_at, next_at) VALUES (?, ?, ?, ?)", end.ID, end.Customer, end.AskedAt, end.AskedAt)
	return batchdb.Wrapf(err, "ask for the end of subscriptions of %s", end.Customer)
}

// DueEnds implements billing.Store.
func (s *Store) DueEnds(ctx context.Context, now time.Time, limit int) ([]billing.End, error) {
	ends, err := batchdb.Scan[[]billing.End](ctx, s.db.AsWorker, "SELECT id, customer, asked_at, attempts FROM subscription_ends WHERE next_at <= ? ORDER BY next_at, id LIMIT ?", now, limit)
	return ends, batchdb.Wrapf(err, "subscriptions that are to end")
}

// DelayEnd implements billing.Store.
func (s *Store) DelayEnd(ctx context.Context, id uuid.UUID, until time.Time) error {
	err := batchdb.Exec(ctx, s.db.AsWorker, "UPDATE subscription_ends SET attempts = attempts + 1, next_at = ? WHERE id = ?", until, id)
	return batchdb.Wrapf(err, "delay the end of a subscription")
}

// CloseEnd implements billing.Store.
func (s *Store) CloseEnd(ctx context.Context, end billing.End, ended bool, why string) error {
	err := s.db.AsWorker(ctx, func(tx *gorm.DB) error {
		closed := tx.Exec("DELETE FROM subscription_ends WHERE id = ?", end.ID)
		if closed.Error != nil || closed.RowsAffected == 0 {
			return closed.Error // another process has closed it
		}
		return batchdb.Write(tx, "SELECT note_subscription_end(?, ?, ?)", end.Customer, ended, why)
	})
	return batchdb.Wrapf(err, "close the end of subscriptions of %s", end.Customer)
}
