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
