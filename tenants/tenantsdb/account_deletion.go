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

// DeleteAccount deletes a person with their memberships, logins, second factors and passkeys. If their API
// keys are not revoked, they continue as endKeysOf describes. Entries about the person in audit logs
// stay. It returns a tenants.OnlyOwner of a workspace without another owner, and tenants.ErrOperator.
func (db Accounts) DeleteAccount(ctx context.Context, user uuid.UUID, revokeKeys bool) error {
	err := db.inUser(ctx, user, func(tx *gorm.DB) error {
		var workspaces []struct {
			WorkspaceID tenants.WorkspaceID
			Name        string
		}
		err := tx.Raw(`SELECT w.workspace_id, w.name FROM members m JOIN workspaces w USING (workspace_id)
			WHERE m.user_id = ? ORDER BY w.workspace_id`, user).Scan(&workspaces).Error
		if err != nil {
			return err
		}
		for _, workspace := range workspaces {
			err := leave(tx, workspace.WorkspaceID, user, revokeKeys)
			if errors.Is(err, tenants.ErrLastOwner) {
				return tenants.OnlyOwner{Workspace: workspace.Name}
			}
			if err != nil {
				return fmt.Errorf("leave workspace %s: %w", workspace.WorkspaceID, err)
			}
		}
		deleted, err := deleteUser(tx, user)
		if err == nil && !deleted {
			return tenants.ErrOperator
		}
		return err
	})
	return batchdb.Wrapf(err, "delete account %s", user)
}

// deleteUser deletes the transaction's person, unless they belong to a workspace or are an operator, and
// makes all replicas forget their logins. Operators stay because otherwise the next person to sign up would
// become one.
func deleteUser(tx *gorm.DB, user uuid.UUID) (deleted bool, err error) {
	gone := tx.Exec(`DELETE FROM users u WHERE u.id = ? AND NOT EXISTS (SELECT FROM members m WHERE m.user_id = u.id)
		AND NOT EXISTS (SELECT FROM operators o WHERE o.user_id = u.id)`, user)
	if gone.Error != nil || gone.RowsAffected == 0 {
		return false, gone.Error
	}
	return true, notify(tx, LoginsChannel, user.String())
}
