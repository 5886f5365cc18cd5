package tenantsdb

import (
	"context"
	"errors"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"palimpsest/pipeline/batchdb"
	"palimpsest/tenants"
)

// Workspaces stores workspaces and their members.
type Workspaces struct{ *core }

// EnterWorkspace switches a login to another workspace of its user. It returns tenants.ErrNotFound if the
// user is not a member, or the login has ended or is limited to another workspace.
func (db Workspaces) EnterWorkspace(ctx context.Context, user, login uuid.UUID, workspace tenants.WorkspaceID) error {
	err := db.inUser(ctx, user, func(tx *gorm.DB) error { return enter(tx, user, login, workspace) })
	return batchdb.Wrapf(err, "enter workspace %s", workspace)
}

// WorkspaceName returns the name of a workspace, or tenants.ErrNotFound.
func (db Workspaces) WorkspaceName(ctx context.Context, workspace tenants.WorkspaceID) (string, error) {
	names, err := batchdb.Scan[[]string](ctx, db.tenant(workspace), "SELECT name FROM workspaces WHERE workspace_id = ?", workspace)
	name, err := batchdb.First(names, err, tenants.ErrNotFound)
	return name, batchdb.Wrapf(err, "name of workspace %s", workspace)
}

// RenameWorkspace renames a workspace. It returns tenants.ErrNotFound.
func (db Workspaces) RenameWorkspace(ctx context.Context, workspace tenants.WorkspaceID, name string) error {
	name = storable(name)
	err := db.inTenant(ctx, workspace, func(tx *gorm.DB) error {
		names, err := batchdb.Query[[]string](tx, "SELECT name FROM workspaces WHERE workspace_id = ? FOR NO KEY UPDATE", workspace)
		before, err := batchdb.First(names, err, tenants.ErrNotFound)
		if err != nil || before == name {
			return err
		}
		return errors.Join(
			batchdb.Write(tx, "UPDATE workspaces SET name = ? WHERE workspace_id = ?", name, workspace),
			audit(tx, workspace, tenants.Change{
				Action: tenants.WorkspaceRenamed, Target: workspace.String(), Before: tenants.Fields{"name": before}, After: tenants.Fields{"name": name},
			}),
			notify(tx, LoginsChannel, workspace.String()))
	})
	return batchdb.Wrapf(err, "rename workspace %s", workspace)
}

// enter switches a login to a workspace; the transaction works for the user.
func enter(tx *gorm.DB, user, login uuid.UUID, workspace tenants.WorkspaceID) error {
	err := changedOne(tx.Exec(`UPDATE logins l SET workspace_id = m.workspace_id FROM members m
		WHERE l.id = ? AND l.user_id = ? AND l.revoked_at IS NULL AND m.user_id = l.user_id AND m.workspace_id = ?
			AND (l.sign_on_workspace IS NULL OR l.sign_on_workspace = m.workspace_id)`, login, user, workspace), tenants.ErrNotFound)
	if err != nil {
		return err
	}
	return errors.Join(seen(tx, user, workspace), notify(tx, LoginsChannel, login.String()))
}

// seen records that someone uses a workspace; the rest of the transaction also works for it.
func seen(tx *gorm.DB, user uuid.UUID, workspace tenants.WorkspaceID) error {
	return errors.Join(workFor(tx, forWorkspace, workspace.String()),
		batchdb.Write(tx, "UPDATE members SET seen_at = clock_timestamp() WHERE workspace_id = ? AND user_id = ?", workspace, user))
}

// AllWorkspaces returns the ids of all workspaces, for upkeep.
func (db Workspaces) AllWorkspaces(ctx context.Context) ([]tenants.WorkspaceID, error) {
	workspaces, err := batchdb.Scan[[]tenants.WorkspaceID](ctx, db.asWorker, "SELECT workspace_id FROM workspaces ORDER BY workspace_id")
	return workspaces, batchdb.Wrapf(err, "list workspaces")
}

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
	return errors.Join(batchdb.Write(tx, "DELETE FROM browser_origins WHERE workspace_id = ?", workspace), batchdb.Write(tx, `INSERT INTO browser_origins (workspace_id, origin)
		SELECT w.workspace_id, o.origin FROM workspaces w CROSS JOIN LATERAL string_to_table(w.browser_origins, E'\n') AS o (origin)
		WHERE w.workspace_id = ? AND o.origin <> ''
		UNION
		SELECT k.workspace_id, o.origin FROM api_keys k CROSS JOIN LATERAL jsonb_array_elements_text(coalesce(k.limits -> 'origins', '[]'::jsonb)) AS o (origin)
		WHERE k.workspace_id = ? AND k.revoked_at IS NULL`, workspace, workspace))
}
