package tenantsdb

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"palimpsest/pipeline/batchdb"
	"palimpsest/tenants"
)

// DeletedChannel notifies all replicas that a workspace was deleted or completely erased: its id.
const DeletedChannel = "palimpsest_deleted"

const (
	eraseSessions = 20   // with all their lanes, in one transaction
	eraseRows     = 2000 // of other tables
)

// Deletion closes and erases workspaces.
type Deletion struct{ *core }

// CloseWorkspace makes a workspace inaccessible on all replicas: it deletes its members, API keys, provider
// keys and alert channels, and its logins switch to another workspace of their person or end. It deletes the
// accounts of people without another workspace, except operators. then runs in the same transaction. It
// returns tenants.ErrNotFound for a closed or unknown workspace.
func (db Deletion) CloseWorkspace(ctx context.Context, workspace tenants.WorkspaceID, then func(tenant tenants.Tenant) error) error {
	err := db.together(ctx, workspace, func(tenant tenants.Tenant) error {
		if err := db.inTenant(ctx, tenant, func(tx *gorm.DB) error { return closeWorkspace(tx, workspace) }); err != nil {
			return err
		}
		return then(tenant)
	})
	return batchdb.Wrapf(err, "close workspace %s", workspace)
}

func closeWorkspace(tx *gorm.DB, workspace tenants.WorkspaceID) error {
	err := changedOne(tx.Exec("UPDATE workspaces SET deleted_at = now() WHERE workspace_id = ? AND deleted_at IS NULL", workspace), tenants.ErrNotFound)
	if err != nil {
		return err
	}
	members, err := moveLogins(tx, workspace)
	if err != nil {
		return err
	}
	for _, table := range []string{"members", "api_keys", "provider_keys", "alert_channels"} {
		if err := batchdb.Write(tx, "DELETE FROM "+table+" WHERE workspace_id = ?", workspace); err != nil {
			return fmt.Errorf("%s: %w", table, err)
		}
	}
	if err := deleteUsers(tx, members); err != nil {
		return fmt.Errorf("people who belong nowhere else: %w", err)
	}
	for _, channel := range []string{KeysChannel, SettingsChannel, LoginsChannel, DeletedChannel} {
		if err := notify(tx, channel, workspace.String()); err != nil {
			return err
		}
	}
	return nil
}

// keepOpen prevents the deletion of a workspace until the transaction ends, so that anyone who joins it
// meanwhile is removed with it or stays out. It returns tenants.ErrNotFound for a closed workspace.
func keepOpen(tx *gorm.DB, workspace tenants.WorkspaceID) error {
	return changedOne(tx.Exec("SELECT FROM workspaces WHERE workspace_id = ? AND deleted_at IS NULL FOR SHARE", workspace), tenants.ErrNotFound)
}

// moveLogins switches the logins of a workspace's members to the first joined of their other workspaces.
// Logins of people without another workspace end with the membership. It returns the members.
func moveLogins(tx *gorm.DB, workspace tenants.WorkspaceID) (members []uuid.UUID, err error) {
	if err := tx.Raw("SELECT user_id FROM members WHERE workspace_id = ? ORDER BY user_id", workspace).Scan(&members).Error; err != nil {
		return nil, err
	}
	for _, member := range members {
		err := errors.Join(workFor(tx, forUser, member.String()), batchdb.Write(tx, `UPDATE logins l SET workspace_id = n.workspace_id
			FROM (SELECT m.workspace_id FROM members m WHERE m.user_id = ? AND m.workspace_id <> ? ORDER BY m.created_at, m.workspace_id LIMIT 1) n
			WHERE l.user_id = ? AND l.workspace_id = ?`, member, workspace, member, workspace))
		if err != nil {
			return nil, fmt.Errorf("move logins: %w", err)
		}
	}
	return members, workFor(tx, forUser, "")
}

// deleteUsers deletes the people who belong to no workspace, except operators.
func deleteUsers(tx *gorm.DB, users []uuid.UUID) error {
	for _, user := range users {
		if err := workFor(tx, forUser, user.String()); err != nil {
			return err
		}
		if _, err := deleteUser(tx, user); err != nil {
			return err
		}
	}
	return workFor(tx, forUser, "")
}

// ClosedWorkspaces returns the deleted workspaces with remaining data.
func (db Deletion) ClosedWorkspaces(ctx context.Context) ([]tenants.WorkspaceID, error) {
	closed, err := batchdb.Scan[[]tenants.WorkspaceID](ctx, db.asWorker, "SELECT workspace_id FROM workspaces WHERE deleted_at IS NOT NULL ORDER BY deleted_at, workspace_id")
	return closed, batchdb.Wrapf(err, "list deleted workspaces")
}

// EraseSessions deletes the sessions and exchanges of a closed workspace in batches, one transaction each,
// and other large tables. Archived bytes stay, without references.
func (db Deletion) EraseSessions(ctx context.Context, workspace tenants.WorkspaceID) error {
	for _, table := range []struct {
		name  string
		batch int
	}{
		{"sessions", eraseSessions}, {"exchanges", eraseRows}, {"exchange_tags", eraseRows}, {"rollup_deltas", eraseRows}, {"tag_sum_deltas", eraseRows}, {"usage_meter_deltas", eraseRows},
		{"cached_answers", eraseRows}, {"patterns", eraseRows},
	} {
		for {
			deleted, err := db.eraseSome(ctx, workspace, table.name, table.batch)
			if err != nil {
				return fmt.Errorf("erase %s of workspace %s: %w", table.name, workspace, err)
			}
			if deleted == 0 {
				break
			}
		}
	}
	return nil
}

// eraseSome deletes rows of a closed workspace, and returns their number. For partitioned tables it may
// delete more than limit, because a ctid can occur in each partition.
func (db Deletion) eraseSome(ctx context.Context, workspace tenants.WorkspaceID, table string, limit int) (int64, error) {
	var deleted int64
	err := db.inTenant(ctx, workspace, func(tx *gorm.DB) error {
		erased := tx.Exec("DELETE FROM "+table+" WHERE workspace_id = ? AND ctid = ANY(ARRAY(SELECT ctid FROM "+table+
			" WHERE workspace_id = ? AND EXISTS (SELECT FROM workspaces w WHERE w.workspace_id = ? AND w.deleted_at IS NOT NULL) LIMIT ?))",
			workspace, workspace, workspace, limit)
		deleted = erased.RowsAffected
		return erased.Error
	})
	return deleted, err
}

// EraseWorkspace deletes a closed workspace with all its rows, including the data key. It fails while
// archived bytes are still referenced, because someone wrote in the meantime. Then the deletion must run
// again.
func (db Deletion) EraseWorkspace(ctx context.Context, workspace tenants.WorkspaceID) error {
	err := db.inTenant(ctx, workspace, func(tx *gorm.DB) error {
		return errors.Join(batchdb.Write(tx, "DELETE FROM workspaces WHERE workspace_id = ? AND deleted_at IS NOT NULL", workspace), notify(tx, DeletedChannel, workspace.String()))
	})
	return batchdb.Wrapf(err, "erase workspace %s", workspace)
}

// Retention returns how long a workspace keeps its sessions. It returns tenants.ErrNotFound.
func (db Data) Retention(ctx context.Context, workspace tenants.WorkspaceID) (tenants.Retention, error) {
	days, err := batchdb.Scan[[]int](ctx, db.tenant(workspace), "SELECT coalesce(retention_days, 0) FROM workspaces WHERE workspace_id = ?", workspace)
	kept, err := batchdb.First(days, err, tenants.ErrNotFound)
	return tenants.Retention{Days: kept}, batchdb.Wrapf(err, "retention of workspace %s", workspace)
}

// SetRetention sets how long a workspace keeps its sessions. It returns tenants.Invalid or
// tenants.ErrNotFound.
func (db Data) SetRetention(ctx context.Context, tenant tenants.Tenant, retention tenants.Retention) error {
	workspace := tenant.Workspace()
	if err := retention.Validate(); err != nil {
		return err
	}
	err := db.inTenant(ctx, tenant, func(tx *gorm.DB) error {
		days, err := batchdb.Query[[]int](tx, "SELECT coalesce(retention_days, 0) FROM workspaces WHERE workspace_id = ? FOR UPDATE", workspace)
		before, err := batchdb.First(days, err, tenants.ErrNotFound)
		if err != nil {
			return err
		}
		return errors.Join(
			batchdb.Write(tx, "UPDATE workspaces SET retention_days = nullif(?::int, 0) WHERE workspace_id = ?", retention.Days, workspace),
			audit(tx, workspace, tenants.Change{Action: tenants.RetentionSet, Before: tenants.Retention{Days: before}.Fields(), After: retention.Fields()}))
	})
	return batchdb.Wrapf(err, "set retention of workspace %s", workspace)
}
