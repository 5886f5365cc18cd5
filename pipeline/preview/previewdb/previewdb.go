// Package previewdb keeps the advice about triggers in Postgres.
package previewdb

import (
	"context"

	"palimpsest/pipeline/batchdb"
	"palimpsest/pipeline/preview"
	"palimpsest/tenants"
)

// Store keeps the advice of all workspaces.
type Store struct{ transactions batchdb.TxRunner }

// New returns a store that uses transactions.
func New(transactions batchdb.TxRunner) *Store { return &Store{transactions: transactions} }

const (
	sqlAdvice = `SELECT made_at, since, trigger, sessions, has_more, received, verbatim, other_verbatim, cost, other_cost,
			dismissed_at IS NOT NULL AS dismissed
		FROM trigger_advice WHERE workspace_id = ?`
	// Dismissed advice stays dismissed, unless the trigger has changed.
	sqlKeep = `INSERT INTO trigger_advice (workspace_id, made_at, since, trigger, sessions, has_more, received,
			verbatim, other_verbatim, cost, other_cost) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (workspace_id) DO UPDATE SET made_at = excluded.made_at, since = excluded.since, trigger = excluded.trigger,
			sessions = excluded.sessions, has_more = excluded.has_more, received = excluded.received, verbatim = excluded.verbatim,
			other_verbatim = excluded.other_verbatim, cost = excluded.cost, other_cost = excluded.other_cost,
			dismissed_at = CASE WHEN trigger_advice.trigger = excluded.trigger THEN trigger_advice.dismissed_at END`
	sqlDismiss = `UPDATE trigger_advice SET dismissed_at = now() WHERE workspace_id = ? AND dismissed_at IS NULL`
)

// Advice returns a workspace's advice. It returns preview.ErrNoAdvice.
func (s *Store) Advice(ctx context.Context, workspace tenants.WorkspaceID) (preview.Advice, error) {
	rows, err := batchdb.Scan[[]preview.Advice](ctx, batchdb.Of(s.transactions, workspace), sqlAdvice, workspace)
	row, err := batchdb.First(rows, err, preview.ErrNoAdvice)
	return row, batchdb.Wrapf(err, "advice about the trigger")
}

// KeepAdvice replaces a workspace's advice. Advice for the same trigger stays dismissed.
func (s *Store) KeepAdvice(ctx context.Context, workspace tenants.WorkspaceID, advice preview.Advice) error {
	err := batchdb.Exec(ctx, batchdb.Of(s.transactions, workspace), sqlKeep, workspace, advice.MadeAt, advice.Since, advice.Trigger, advice.Sessions, advice.HasMore, advice.Received,
		advice.Verbatim, advice.OtherVerbatim, advice.Cost, advice.OtherCost)
	return batchdb.Wrapf(err, "keep advice about the trigger")
}

// DismissAdvice hides a workspace's advice as long as its trigger stays.
func (s *Store) DismissAdvice(ctx context.Context, workspace tenants.WorkspaceID) error {
	err := batchdb.Exec(ctx, batchdb.Of(s.transactions, workspace), sqlDismiss, workspace)
	return batchdb.Wrapf(err, "dismiss advice about the trigger")
}

// Interface guard.
var _ preview.AdviceStore = (*Store)(nil)
