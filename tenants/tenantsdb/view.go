package tenantsdb

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"palimpsest/pipeline/batchdb"
	"palimpsest/tenants"
)

// Views keeps how people look at lists.
type Views struct{ *core }

// Views returns the views that a person has saved of a list in a workspace, by name.
func (db Views) Views(ctx context.Context, workspace tenants.WorkspaceID, user uuid.UUID, list tenants.ViewList) ([]tenants.View, error) {
	var rows []viewRow
	err := db.inTenant(ctx, workspace, func(tx *gorm.DB) error {
		return tx.Table("views").Select("id, user_id, list, name, query, saved_at").
			Where("workspace_id = ? AND user_id = ? AND list = ?", workspace, user, string(list)).
			Order("lower(name), name").Find(&rows).Error
	})
	return viewsOf(rows), batchdb.Wrapf(err, "views of %s", list)
}

// EveryView returns up to limit views of all people of a workspace whose ids follow one,
// in order; for uuid.Nil the first ones.
func (db Views) EveryView(ctx context.Context, workspace tenants.WorkspaceID, after uuid.UUID, limit int) ([]tenants.View, error) {
	var rows []viewRow
	err := db.inTenant(ctx, workspace, func(tx *gorm.DB) error {
		return tx.Table("views").Select("id, user_id, list, name, query, saved_at").
			Where("workspace_id = ? AND id > ?", workspace, after).Order("id").Limit(limit).Find(&rows).Error
	})
	return viewsOf(rows), batchdb.Wrapf(err, "views of everybody")
}

// SaveView keeps a view of a person and returns it; the one that had its name has its
// filters from now on. It returns tenants.Invalid for what cannot be saved, and where
// the person has tenants.MaxViews of the list.
func (db Views) SaveView(ctx context.Context, workspace tenants.WorkspaceID, user uuid.UUID, view tenants.View) (tenants.View, error) {
	if err := view.Check(); err != nil {
		return tenants.View{}, err
	}
	var row viewRow
	err := db.inTenant(ctx, workspace, func(tx *gorm.DB) error {
		// One at a time, so that the bound holds.
		alone := "views/" + workspace.String() + "/" + user.String()
		if err := tx.Exec("SELECT pg_advisory_xact_lock(hashtextextended(?, 0))", alone).Error; err != nil {
			return err
		}
		others, err := otherViews(tx, workspace, user, view)
		if err != nil {
			return err
		}
		if others >= tenants.MaxViews {
			return tenants.Invalid{Field: "name", Message: fmt.Sprintf("is one too many: you have %d views of this list. Delete one first", others)}
		}
		return tx.Raw(`INSERT INTO views (workspace_id, id, user_id, list, name, query) VALUES (?, ?, ?, ?, ?, ?)
			ON CONFLICT (workspace_id, user_id, list, name) DO UPDATE SET query = excluded.query, saved_at = now()
			RETURNING id, user_id, list, name, query, saved_at`,
			workspace, uuid.Must(uuid.NewV7()), user, string(view.List), view.Name, view.Query).Scan(&row).Error
	})
	return row.toView(), batchdb.Wrapf(err, "save view")
}

// otherViews counts a person's views of a list with other names.
func otherViews(tx *gorm.DB, workspace tenants.WorkspaceID, user uuid.UUID, view tenants.View) (int, error) {
	var count int
	err := tx.Raw("SELECT count(*) FROM views WHERE workspace_id = ? AND user_id = ? AND list = ? AND name <> ?",
		workspace, user, string(view.List), view.Name).Scan(&count).Error
	return count, err
}

// DeleteView deletes a view of a person. It returns tenants.ErrNotFound for one of
// another list, person or workspace.
func (db Views) DeleteView(ctx context.Context, workspace tenants.WorkspaceID, user uuid.UUID, list tenants.ViewList, id uuid.UUID) error {
	err := db.inTenant(ctx, workspace, func(tx *gorm.DB) error {
		deleted := tx.Exec("DELETE FROM views WHERE workspace_id = ? AND user_id = ? AND list = ? AND id = ?", workspace, user, string(list), id)
		if deleted.Error == nil && deleted.RowsAffected == 0 {
			return tenants.ErrNotFound
		}
		return deleted.Error
	})
	return batchdb.Wrapf(err, "delete view %s", id)
}

type viewRow struct {
	ID      uuid.UUID
	UserID  uuid.UUID
	List    string
	Name    string
	Query   string
	SavedAt time.Time
}

func (r viewRow) toView() tenants.View {
	return tenants.View{ID: r.ID, User: r.UserID, List: tenants.ViewList(r.List), Name: r.Name, Query: r.Query, SavedAt: r.SavedAt}
}

func viewsOf(rows []viewRow) []tenants.View {
	return each(rows, (*viewRow).toView)
}
