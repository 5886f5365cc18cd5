package tenantsdb

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"palimpsest/pipeline/batchdb"
	"palimpsest/tenants"
	"palimpsest/tenants/redaction"
)

// Comments stores comments on sessions.
type Comments struct{ *core }

const sqlComments = `SELECT c.id, c.session_id, c.lane_id, c.message, c.user_id, coalesce(u.email, '') AS email, c.text, c.created_at
	FROM session_comments c LEFT JOIN users u ON u.id = c.user_id WHERE c.workspace_id = ? `

// Comments returns the comments on a session, the oldest first.
func (db Comments) Comments(ctx context.Context, workspace tenants.WorkspaceID, session uuid.UUID) ([]tenants.Comment, error) {
	found, err := db.find(ctx, workspace, "AND c.session_id = ? ORDER BY c.id", session)
	return found, batchdb.Wrapf(err, "comments on session %s", session)
}

// EveryComment returns up to limit comments of a workspace with ids after one, in order; uuid.Nil starts at
// the first.
func (db Comments) EveryComment(ctx context.Context, workspace tenants.WorkspaceID, after uuid.UUID, limit int) ([]tenants.Comment, error) {
	found, err := db.find(ctx, workspace, "AND c.id > ? ORDER BY c.id LIMIT ?", after, limit)
	return found, batchdb.Wrapf(err, "comments on all sessions")
}

// CommentCounts returns the number of comments of each session, without sessions that have no comments.
func (db Comments) CommentCounts(ctx context.Context, workspace tenants.WorkspaceID, sessions []uuid.UUID) (map[uuid.UUID]int, error) {
	if len(sessions) == 0 {
		return map[uuid.UUID]int{}, nil
	}
	var rows []struct {
		SessionID uuid.UUID
		Count     int
	}
	err := db.inTenant(ctx, workspace, func(tx *gorm.DB) error {
		return tx.Raw("SELECT session_id, count(*) FROM session_comments WHERE workspace_id = ? AND session_id IN ? GROUP BY session_id", workspace, sessions).Scan(&rows).Error
	})
	if err != nil {
		return nil, fmt.Errorf("count comments: %w", err)
	}
	counts := make(map[uuid.UUID]int, len(rows))
	for _, row := range rows {
		counts[row.SessionID] = row.Count
	}
	return counts, nil
}

// AddComment stores a comment of its author, with secrets redacted, records it in the audit log, and returns
// it. It returns tenants.Invalid for an invalid comment, and tenants.ErrNotFound for an unknown session or an
// unknown message of the session.
func (db Comments) AddComment(ctx context.Context, workspace tenants.WorkspaceID, comment tenants.Comment) (tenants.Comment, error) {
	comment.Text = redaction.Clean(strings.ReplaceAll(strings.TrimSpace(comment.Text), "\r\n", "\n"))
	if err := comment.Check(); err != nil {
		return tenants.Comment{}, err
	}
	comment.ID = uuid.Must(uuid.NewV7())
	err := db.inTenant(ctx, workspace, func(tx *gorm.DB) error {
		if err := commentable(tx, workspace, comment); err != nil {
			return err
		}
		var lane uuid.NullUUID
		var message *int
		if comment.HasMessage() {
			lane, message = uuid.NullUUID{UUID: comment.Lane, Valid: true}, &comment.Message
		}
		err := tx.Exec("INSERT INTO session_comments (workspace_id, id, session_id, lane_id, message, user_id, text) VALUES (?, ?, ?, ?, ?, ?, ?)",
			workspace, comment.ID, comment.Session, lane, message, comment.Author, comment.Text).Error
		if err != nil {
			return err
		}
		return audit(tx, workspace, tenants.Change{Action: tenants.CommentAdded, Target: comment.Session.String(), After: commentFields(comment)})
	})
	if err != nil {
		return tenants.Comment{}, fmt.Errorf("comment on session %s: %w", comment.Session, err)
	}
	return db.comment(ctx, workspace, comment.Session, comment.ID)
}

// DeleteComment deletes a comment on a session on behalf of a person with some permissions, and records it in
// the audit log. It returns tenants.ErrNotFound for an unknown comment of the session, and tenants.ErrDenied
// if the person may not delete it.
func (db Comments) DeleteComment(ctx context.Context, workspace tenants.WorkspaceID, session, id, person uuid.UUID, may func(tenants.Permission) bool) error {
	comment, err := db.comment(ctx, workspace, session, id)
	if err != nil {
		return err
	}
	if !comment.MayDelete(person, may) {
		return fmt.Errorf("delete comment %s: %w", id, tenants.ErrDenied)
	}
	err = db.inTenant(ctx, workspace, func(tx *gorm.DB) error {
		deleted := tx.Exec("DELETE FROM session_comments WHERE workspace_id = ? AND id = ?", workspace, id)
		if deleted.Error == nil && deleted.RowsAffected == 0 {
			return tenants.ErrNotFound
		}
		if deleted.Error != nil {
			return deleted.Error
		}
		return audit(tx, workspace, tenants.Change{Action: tenants.CommentDeleted, Target: session.String(), Before: commentFields(comment)})
	})
	return batchdb.Wrapf(err, "delete comment %s", id)
}

// comment returns one comment on a session, or tenants.ErrNotFound.
func (db Comments) comment(ctx context.Context, workspace tenants.WorkspaceID, session, id uuid.UUID) (tenants.Comment, error) {
	found, err := db.find(ctx, workspace, "AND c.session_id = ? AND c.id = ?", session, id)
	one, err := batchdb.First(found, err, tenants.ErrNotFound)
	return one, batchdb.Wrapf(err, "comment %s", id)
}

func (db Comments) find(ctx context.Context, workspace tenants.WorkspaceID, which string, values ...any) ([]tenants.Comment, error) {
	var rows []commentRow
	err := db.inTenant(ctx, workspace, func(tx *gorm.DB) error {
		return tx.Raw(sqlComments+which, append([]any{workspace}, values...)...).Scan(&rows).Error
	})
	return each(rows, (*commentRow).toComment), err
}

// commentable returns the error of a comment's place. It locks the session, so that the bound holds.
func commentable(tx *gorm.DB, workspace tenants.WorkspaceID, comment tenants.Comment) error {
	alone := "comments/" + workspace.String() + "/" + comment.Session.String()
	if err := tx.Exec("SELECT pg_advisory_xact_lock(hashtextextended(?, 0))", alone).Error; err != nil {
		return err
	}
	var found struct {
		Sessions int
		Lanes    int
		Comments int
	}
	err := tx.Raw(`SELECT (SELECT count(*) FROM sessions WHERE workspace_id = ? AND id = ?) AS sessions,
			(SELECT count(*) FROM lanes WHERE workspace_id = ? AND id = ? AND session_id = ? AND position > ?) AS lanes,
			(SELECT count(*) FROM session_comments WHERE workspace_id = ? AND session_id = ?) AS comments`,
		workspace, comment.Session, workspace, comment.Lane, comment.Session, comment.Message, workspace, comment.Session).Scan(&found).Error
	switch {
	case err != nil:
		return err
	case found.Sessions == 0, comment.HasMessage() && (found.Lanes == 0 || comment.Message < 0):
		return tenants.ErrNotFound
	case found.Comments >= tenants.MaxComments:
		return tenants.Invalid{Field: "text", Message: fmt.Sprintf("is one too many: the session has %d comments. Delete one first", found.Comments)}
	}
	return nil
}

// commentFields returns a comment's place for the audit log, without its text.
func commentFields(comment tenants.Comment) tenants.Fields {
	fields := tenants.Fields{"comment": comment.ID.String()}
	if comment.HasMessage() {
		fields["thread"], fields["message"] = comment.Lane.String(), strconv.Itoa(comment.Message)
	}
	return fields
}

// commentRow is a row of session_comments, with the author's address.
type commentRow struct {
	ID        uuid.UUID
	SessionID uuid.UUID
	LaneID    uuid.NullUUID
	Message   *int
	UserID    uuid.NullUUID
	Email     string
	Text      string
	CreatedAt time.Time
}

func (r commentRow) toComment() tenants.Comment {
	comment := tenants.Comment{ID: r.ID, Session: r.SessionID, Author: r.UserID.UUID, Name: r.Email, Text: r.Text, At: r.CreatedAt}
	if r.LaneID.Valid && r.Message != nil {
		comment.Lane, comment.Message = r.LaneID.UUID, *r.Message
	}
	return comment
}

var _ tenants.Comments = Comments{}

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

// Views reads saved views from an earlier version.
type Views struct{ *core }

// EveryView returns up to limit views of all people of a workspace with ids after one, in order; uuid.Nil
// starts at the first.
func (db Views) EveryView(ctx context.Context, workspace tenants.WorkspaceID, after uuid.UUID, limit int) (views []tenants.View, err error) {
	err = db.inTenant(ctx, workspace, func(tx *gorm.DB) error {
		return tx.Table("views").Select(`id, user_id AS "user", list, name, query, saved_at`).
			Where("workspace_id = ? AND id > ?", workspace, after).Order("id").Limit(limit).Find(&views).Error
	})
	return views, batchdb.Wrapf(err, "views of everybody")
}
