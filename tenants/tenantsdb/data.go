package tenantsdb

import (
	"cmp"
	"context"
	"errors"
	"reflect"
	"slices"

	"github.com/google/uuid"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"palimpsest/pipeline/batchdb"
	"palimpsest/tenants"
)

// Data stores the rules for storing and reading a workspace's data, and its retention.
type Data struct{ *core }

// DataSettings returns a workspace's data settings. It returns tenants.ErrNotFound.
func (db Data) DataSettings(ctx context.Context, workspace tenants.WorkspaceID) (tenants.DataSettings, error) {
	settings, err := batchdb.Read(ctx, db.tenant(workspace), func(tx *gorm.DB) (tenants.DataSettings, error) { return findDataSettings(tx, workspace) })
	return settings, batchdb.Wrapf(err, "data settings of workspace %s", workspace)
}

// SetDataSettings sets a workspace's data settings on all replicas. It returns tenants.Invalid or
// tenants.ErrNotFound.
func (db Data) SetDataSettings(ctx context.Context, tenant tenants.Tenant, settings tenants.DataSettings) error {
	workspace := tenant.Workspace()
	if err := settings.Validate(); err != nil {
		return err
	}
	settings = settings.Normal()
	err := db.inTenant(ctx, tenant, func(tx *gorm.DB) error {
		before, err := findDataSettings(tx, workspace, locked())
		if err != nil {
			return err
		}
		if reflect.DeepEqual(before, settings) {
			return nil
		}
		if err := update(tx, "workspaces", &settings, []string{"*"}, "workspace_id = ?", workspace); err != nil {
			return err
		}
		if !slices.Equal(before.Origins, settings.Origins) {
			if err := keepOrigins(tx, workspace); err != nil {
				return err
			}
		}
		if settings.EndUsers == tenants.EndUsersHashed {
			if err := batchdb.Write(tx, "UPDATE end_users SET name = NULL WHERE workspace_id = ? AND name IS NOT NULL", workspace); err != nil {
				return err
			}
		}
		change := tenants.Change{Action: tenants.SettingsSaved, Before: before.Fields(), After: settings.Fields()}
		if before.Text != settings.Text { // cached keys contain it
			if err := notify(tx, KeysChannel, workspace.String()); err != nil {
				return err
			}
		}
		return errors.Join(audit(tx, workspace, change), notify(tx, SettingsChannel, workspace.String()))
	})
	return batchdb.Wrapf(err, "set data settings of workspace %s", workspace)
}

func findDataSettings(tx *gorm.DB, workspace tenants.WorkspaceID, clauses ...clause.Expression) (tenants.DataSettings, error) {
	return find[tenants.DataSettings](tx.Table("workspaces").Where("workspace_id = ?", workspace).Clauses(clauses...))
}

// RedactionCounts returns the number of replacements per kind of personal data in a workspace.
func (db Data) RedactionCounts(ctx context.Context, workspace tenants.WorkspaceID) ([]tenants.RedactionCount, error) {
	counts, err := batchdb.Scan[[]tenants.RedactionCount](ctx, db.tenant(workspace), "SELECT kind, found FROM redaction_counts WHERE workspace_id = ?", workspace)
	kinds := tenants.RedactionKinds()
	slices.SortFunc(counts, func(a, b tenants.RedactionCount) int {
		return cmp.Compare(slices.Index(kinds, a.Kind), slices.Index(kinds, b.Kind))
	})
	return counts, batchdb.Wrapf(err, "counts of what was redacted in workspace %s", workspace)
}

// holder is a person who holds an API key or asks to read. It has their role in a workspace, "" for
// non-members, and the workspace's reading rights by role.
type holder struct {
	Person uuid.UUID
	Role   tenants.Role
	Text   tenants.TextPolicy `gorm:"embedded"`
	Owner  uuid.UUID          // the first owner of the workspace; set by personBehind only
}

const memberColumns = `coalesce(m.role, '') AS role, w.managers_read, w.members_read, w.viewers_read`

// reads returns the reading rights of the person now. Every path to text must check this.
func (m holder) reads() tenants.Reads { return m.Text.For(m.Role) }

// rights returns the rights of the person's keys.
func (m holder) rights() tenants.KeyRights {
	return tenants.KeyRights{Reads: m.reads()}
}

// memberOf returns a person as a member of a workspace.
func memberOf(tx *gorm.DB, workspace tenants.WorkspaceID, person uuid.UUID) (holder, error) {
	found := holder{Person: person}
	err := tx.Raw(`SELECT m.user_id AS person, `+memberColumns+`
		FROM members m JOIN workspaces w ON w.workspace_id = m.workspace_id
		WHERE m.workspace_id = ? AND m.user_id = ?`, workspace, person).Scan(&found).Error
	return found, err
}

// personBehind returns the person responsible for an API key, or the zero holder if absent. For a key that
// another key created, it follows that key to its person. start may also be a person.
func personBehind(tx *gorm.DB, workspace tenants.WorkspaceID, start uuid.UUID) (holder, error) {
	found, err := batchdb.Query[[]holder](tx, `WITH RECURSIVE behind (person) AS (
			SELECT ?::uuid
			UNION
			SELECT coalesce(k.person_id, k.created_by) FROM behind b JOIN api_keys k ON k.workspace_id = ? AND k.id = b.person)
		SELECT b.person, `+memberColumns+`,
			(SELECT o.user_id FROM members o WHERE o.workspace_id = w.workspace_id AND o.role = 'owner' ORDER BY o.created_at, o.user_id LIMIT 1) AS owner
		FROM behind b JOIN workspaces w ON w.workspace_id = ?
		LEFT JOIN members m ON m.workspace_id = ? AND m.user_id = b.person
		WHERE NOT EXISTS (SELECT FROM api_keys k WHERE k.workspace_id = ? AND k.id = b.person)`,
		start, workspace, workspace, workspace, workspace)
	return append(found, holder{})[0], err
}

// Reader returns a person's reading rights for a workspace's text, which are empty for non-members.
func (db Data) Reader(ctx context.Context, workspace tenants.WorkspaceID, user uuid.UUID) (tenants.Reader, error) {
	reader, err := batchdb.Read(ctx, db.tenant(workspace), func(tx *gorm.DB) (tenants.Reader, error) {
		member, err := memberOf(tx, workspace, user)
		if err != nil {
			return tenants.Reader{}, err
		}
		return readerOf(tx, workspace, member)
	})
	return reader, batchdb.Wrapf(err, "what %s may read", user)
}

// KeyReader returns the reading rights of a presented API key.
func (db Data) KeyReader(ctx context.Context, key tenants.APIKey) (tenants.Reader, error) {
	var reader tenants.Reader
	err := db.inTenant(ctx, key.Workspace, func(tx *gorm.DB) error {
		behind, err := memberOf(tx, key.Workspace, key.Person)
		if err != nil {
			return err
		}
		if reader, err = readerOf(tx, key.Workspace, behind); err != nil || key.CreatedBy == key.Person {
			return err
		}
		creator, err := personBehind(tx, key.Workspace, key.CreatedBy)
		if err != nil {
			return err
		}
		created, err := readerOf(tx, key.Workspace, creator)
		reader = reader.And(created)
		return err
	})
	return reader, batchdb.Wrapf(err, "what API key %s may read", key.ID)
}

// readerOf returns a member's reading rights.
func readerOf(tx *gorm.DB, workspace tenants.WorkspaceID, member holder) (reader tenants.Reader, err error) {
	switch member.reads() {
	case tenants.ReadsAll:
		reader.All = true
	case tenants.ReadsOwn:
		reader.Own = true
		err = tx.Raw("SELECT id FROM api_keys WHERE workspace_id = ? AND created_by = ?", workspace, member.Person).Scan(&reader.Keys).Error
	case tenants.ReadsNone:
	}
	return reader, err
}
