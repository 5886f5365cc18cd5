package tenantsdb

import (
	"context"

	"gorm.io/gorm"

	"palimpsest/pipeline/batchdb"
	"palimpsest/tenants"
)

// OriginAllowed reports whether a workspace, or one of its API keys, allows pages of an origin to read
// answers.
func (db APIKeys) OriginAllowed(ctx context.Context, origin string) (allowed bool, err error) {
	err = db.transaction(ctx, forOrigin, origin, func(tx *gorm.DB) error {
		return tx.Raw("SELECT EXISTS (SELECT FROM browser_origins WHERE origin = ?)", origin).Scan(&allowed).Error
	})
	return allowed, batchdb.Wrapf(err, "look for origin")
}

// keepOrigins stores, for preflights, the origins that a workspace and its API keys allow now.
func keepOrigins(tx *gorm.DB, workspace tenants.WorkspaceID) error {
	if err := tx.Exec("DELETE FROM browser_origins WHERE workspace_id = ?", workspace).Error; err != nil {
		return err
	}
	return tx.Exec(`INSERT INTO browser_origins (workspace_id, origin)
		SELECT w.workspace_id, o.origin FROM workspaces w CROSS JOIN LATERAL string_to_table(w.browser_origins, E'\n') AS o (origin)
		WHERE w.workspace_id = ? AND o.origin <> ''
		UNION
		SELECT k.workspace_id, o.origin FROM api_keys k CROSS JOIN LATERAL jsonb_array_elements_text(coalesce(k.limits -> 'origins', '[]'::jsonb)) AS o (origin)
		WHERE k.workspace_id = ? AND k.revoked_at IS NULL`, workspace, workspace).Error
}
