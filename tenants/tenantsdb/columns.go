package tenantsdb

import (
	"context"
	"encoding/json"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"palimpsest/pipeline/batchdb"
	"palimpsest/tenants"
)

// HiddenColumns returns the columns of a list that a member has hidden; none for a person who is not a member.
func (db Views) HiddenColumns(ctx context.Context, workspace tenants.WorkspaceID, user uuid.UUID, list tenants.ViewList) ([]string, error) {
	var encoded []string
	err := db.inTenant(ctx, workspace, func(tx *gorm.DB) error {
		return tx.Raw("SELECT coalesce(hidden_columns -> ?, '[]')::text FROM members WHERE workspace_id = ? AND user_id = ?", string(list), workspace, user).Scan(&encoded).Error
	})
	var hidden []string
	if err == nil && len(encoded) > 0 {
		err = json.Unmarshal([]byte(encoded[0]), &hidden)
	}
	return hidden, batchdb.Wrapf(err, "hidden columns of %s", list)
}

// HideColumns hides columns of a list from a member, and shows all others.
func (db Views) HideColumns(ctx context.Context, workspace tenants.WorkspaceID, user uuid.UUID, list tenants.ViewList, hidden []string) error {
	encoded, err := json.Marshal(append([]string{}, hidden...))
	if err == nil {
		err = db.inTenant(ctx, workspace, func(tx *gorm.DB) error {
			return tx.Exec("UPDATE members SET hidden_columns = hidden_columns || jsonb_build_object(?::text, ?::jsonb) WHERE workspace_id = ? AND user_id = ?",
				string(list), string(encoded), workspace, user).Error
		})
	}
	return batchdb.Wrapf(err, "hide columns of %s", list)
}
