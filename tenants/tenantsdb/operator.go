package tenantsdb

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"gorm.io/gorm"

	"palimpsest/pipeline/batchdb"
	"palimpsest/tenants"
)

// notOperator is the SQLSTATE of the operator functions for other users.
const notOperator = "42501"

// Operators stores operators' actions and reads their view of the installation.
type Operators struct{ *core }

// OperatedWorkspaces returns a page of an operator's view of the installation's workspaces. It returns
// tenants.ErrNotFound for other users.
func (db Operators) OperatedWorkspaces(ctx context.Context, operator uuid.UUID, query tenants.OperatedQuery) ([]tenants.OperatedWorkspace, error) {
	var before *time.Time
	if !query.BeforeAt.IsZero() {
		before = &query.BeforeAt
	}
	return db.operated(ctx, operator, storable(query.Search), before, nullable(query.BeforeID), uuid.NullUUID{}, query.Limit)
}

// OperatedWorkspace returns an operator's view of one workspace, or tenants.ErrNotFound.
func (db Operators) OperatedWorkspace(ctx context.Context, operator uuid.UUID, workspace tenants.WorkspaceID) (tenants.OperatedWorkspace, error) {
	found, err := db.operated(ctx, operator, "", nil, uuid.NullUUID{}, nullable(workspace), 1)
	return batchdb.First(found, err, tenants.ErrNotFound)
}

func (db Operators) operated(ctx context.Context, operator uuid.UUID, search string, before *time.Time, beforeID, only uuid.NullUUID, limit int) ([]tenants.OperatedWorkspace, error) {
	rows, err := batchdb.Scan[[]operatedRow](ctx, db.operator(operator), "SELECT "+operatedColumns+" FROM operator_workspaces(?, ?, ?, ?, ?)", search, before, beforeID, only, limit)
	if err != nil {
		return nil, fmt.Errorf("workspaces of the installation: %w", onlyOperators(err))
	}
	return each(rows, func(row *operatedRow) tenants.OperatedWorkspace {
		row.Suspension = row.Suspended.suspension()
		return row.OperatedWorkspace
	}), nil
}

// SuspendWorkspace refuses all keys and pages of a workspace on all replicas, on behalf of an operator; the
// reason is for its members. A second call has no effect. It returns tenants.ErrNotFound, also for other
// users.
func (db Operators) SuspendWorkspace(ctx context.Context, operator uuid.UUID, workspace tenants.WorkspaceID, reason string) error {
	return db.setSuspended(ctx, operator, workspace, true, reason)
}

// ResumeWorkspace ends a suspension by SuspendWorkspace.
func (db Operators) ResumeWorkspace(ctx context.Context, operator uuid.UUID, workspace tenants.WorkspaceID, reason string) error {
	return db.setSuspended(ctx, operator, workspace, false, reason)
}

func (db Operators) setSuspended(ctx context.Context, operator uuid.UUID, workspace tenants.WorkspaceID, suspended bool, reason string) error {
	err := db.asOperator(ctx, operator, func(tx *gorm.DB) error {
		var found bool
		err := tx.Raw("SELECT operator_suspend(?, ?, ?, ?, ?)", workspace, suspended, storable(reason), tenants.ActorOf(ctx).From,
			uuid.Must(uuid.NewV7())).Scan(&found).Error
		if err != nil {
			return onlyOperators(err)
		}
		if !found {
			return tenants.ErrNotFound
		}
		return errors.Join(notify(tx, KeysChannel, workspace.String()), notify(tx, LoginsChannel, workspace.String()))
	})
	return batchdb.Wrapf(err, "suspend or resume workspace %s", workspace)
}

// OperatorLog returns the operators' actions, the newest first. It returns tenants.ErrNotFound for other
// users.
func (db Operators) OperatorLog(ctx context.Context, operator uuid.UUID, limit int) ([]tenants.OperatorEntry, error) {
	entries, err := batchdb.Scan[[]tenants.OperatorEntry](ctx, db.operator(operator), "SELECT at, actor, action, target, name, reason FROM operator_log(?)", limit)
	return entries, batchdb.Wrapf(onlyOperators(err), "operators' log")
}

// AppointOperator makes a person an operator, on behalf of the installation's command line. It uses the login
// of the database's owner because the application's login lacks the right. It reports whether the person was
// not an operator before.
func AppointOperator(ctx context.Context, ownerURL string, user uuid.UUID) (bool, error) {
	var appointed bool
	err := asOwner(ctx, ownerURL, func(tx pgx.Tx) error {
		if err := tx.QueryRow(ctx, "SELECT appoint_operator($1)", user).Scan(&appointed); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, "SELECT pg_notify($1, $2)", LoginsChannel, user.String())
		return err
	})
	return appointed, batchdb.Wrapf(err, "appoint operator %s", user)
}

// claimOperator makes the person whom the transaction signs up an operator if they are the installation's
// first, and reports whether they are.
func claimOperator(tx *gorm.DB) (isFirst bool, err error) {
	if err := tx.Raw("SELECT claim_operator()").Scan(&isFirst).Error; err != nil {
		return false, fmt.Errorf("look for an operator: %w", err)
	}
	return isFirst, nil
}

// withRestraint adds to an API key whether the operator has suspended its workspace, and whether it is verified.
func withRestraint(tx *gorm.DB, key tenants.APIKey) (tenants.APIKey, error) {
	var found struct{ Suspended, Verified bool }
	err := tx.Raw("SELECT suspended, verified FROM workspace_standing(?)", key.Workspace).Scan(&found).Error
	key.Suspended, key.Unverified = found.Suspended, !found.Verified
	return key, err
}

// onlyOperators converts the database functions' error for non-operators to tenants.ErrNotFound.
func onlyOperators(err error) error {
	if failure, is := errors.AsType[*pgconn.PgError](err); is && failure.Code == notOperator {
		return tenants.ErrNotFound
	}
	return err
}

const operatedColumns = `id, workspace_name, created, owner, member_count, exchange_count, failure_count, token_count, last_exchange,
	archived, suspended_since, suspended_reason`

type operatedRow struct {
	tenants.OperatedWorkspace

	Suspended suspended `gorm:"embedded"`
}
