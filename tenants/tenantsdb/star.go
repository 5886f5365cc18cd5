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

// Stars stores starred sessions.
type Stars struct{ *core }

// Starred returns the sessions of a workspace that a person has starred, the newest star first.
func (db Stars) Starred(ctx context.Context, workspace tenants.WorkspaceID, user uuid.UUID) ([]uuid.UUID, error) {
	var sessions []uuid.UUID
	err := db.inTenant(ctx, workspace, func(tx *gorm.DB) error {
		return tx.Raw(`SELECT session_id FROM session_stars WHERE workspace_id = ? AND user_id = ?
			ORDER BY starred_at DESC, session_id LIMIT ?`, workspace, user, tenants.MaxStars).Scan(&sessions).Error
	})
	return sessions, batchdb.Wrapf(err, "stars of %s", user)
}

// Star stars a session for a person; an existing star stays unchanged. It returns tenants.ErrNotFound for an
// unknown session, and tenants.Invalid if the person has tenants.MaxStars.
func (db Stars) Star(ctx context.Context, workspace tenants.WorkspaceID, user, session uuid.UUID) error {
	err := db.inTenant(ctx, workspace, func(tx *gorm.DB) error {
		// The lock serializes stars, so that the bound holds.
		alone := "stars/" + workspace.String() + "/" + user.String()
		if err := tx.Exec("SELECT pg_advisory_xact_lock(hashtextextended(?, 0))", alone).Error; err != nil {
			return err
		}
		var others int
		err := tx.Raw("SELECT count(*) FROM session_stars WHERE workspace_id = ? AND user_id = ? AND session_id <> ?", workspace, user, session).Scan(&others).Error
		if err != nil {
			return err
		}
		if others >= tenants.MaxStars {
			return tenants.Invalid{Field: "session", Message: fmt.Sprintf("is one too many: you have %d stars. Take one away first", others)}
		}
		starred := tx.Exec(`INSERT INTO session_stars (workspace_id, user_id, session_id)
			SELECT workspace_id, ?, id FROM sessions WHERE workspace_id = ? AND id = ?
			ON CONFLICT DO NOTHING`, user, workspace, session)
		if starred.Error != nil || starred.RowsAffected > 0 {
			return starred.Error
		}
		var known int
		err = tx.Raw("SELECT count(*) FROM sessions WHERE workspace_id = ? AND id = ?", workspace, session).Scan(&known).Error
		if err == nil && known == 0 {
			err = tenants.ErrNotFound
		}
		return err
	})
	return batchdb.Wrapf(err, "star session %s", session)
}

// Unstar removes a person's star from a session, if it exists.
func (db Stars) Unstar(ctx context.Context, workspace tenants.WorkspaceID, user, session uuid.UUID) error {
	err := db.inTenant(ctx, workspace, func(tx *gorm.DB) error {
		return tx.Exec("DELETE FROM session_stars WHERE workspace_id = ? AND user_id = ? AND session_id = ?", workspace, user, session).Error
	})
	return batchdb.Wrapf(err, "unstar session %s", session)
}

// EveryStar returns up to limit stars of all people of a workspace after one, in the order of people and
// sessions; the zero Star starts at the first.
func (db Stars) EveryStar(ctx context.Context, workspace tenants.WorkspaceID, after tenants.Star, limit int) ([]tenants.Star, error) {
	var rows []struct {
		UserID    uuid.UUID
		SessionID uuid.UUID
		StarredAt time.Time
	}
	err := db.inTenant(ctx, workspace, func(tx *gorm.DB) error {
		return tx.Raw(`SELECT user_id, session_id, starred_at FROM session_stars
			WHERE workspace_id = ? AND (user_id, session_id) > (?, ?) ORDER BY user_id, session_id LIMIT ?`,
			workspace, after.User, after.Session, limit).Scan(&rows).Error
	})
	if err != nil {
		return nil, fmt.Errorf("stars of everybody: %w", err)
	}
	stars := make([]tenants.Star, len(rows))
	for i, row := range rows {
		stars[i] = tenants.Star{User: row.UserID, Session: row.SessionID, At: row.StarredAt}
	}
	return stars, nil
}

var _ tenants.Stars = Stars{}
