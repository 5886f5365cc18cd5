package tenantsdb

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

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
	type row struct {
		SessionID uuid.UUID
		Count     int
	}
	rows, err := batchdb.Scan[[]row](ctx, db.tenant(workspace), "SELECT session_id, count(*) FROM session_comments WHERE workspace_id = ? AND session_id IN ? GROUP BY session_id", workspace, sessions)
	counts := make(map[uuid.UUID]int, len(rows))
	for _, row := range rows {
		counts[row.SessionID] = row.Count
	}
	return counts, batchdb.Wrapf(err, "count comments")
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
		return errors.Join(
			batchdb.Write(tx, "INSERT INTO session_comments (workspace_id, id, session_id, lane_id, message, user_id, text) VALUES (?, ?, ?, ?, ?, ?, ?)",
				workspace, comment.ID, comment.Session, lane, message, comment.Author, comment.Text),
			audit(tx, workspace, tenants.Change{Action: tenants.CommentAdded, Target: comment.Session.String(), After: commentFields(comment)}))
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
		if err := changedOne(tx.Exec("DELETE FROM session_comments WHERE workspace_id = ? AND id = ?", workspace, id), tenants.ErrNotFound); err != nil {
			return err
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
	return batchdb.Scan[[]tenants.Comment](ctx, db.tenant(workspace), sqlComments+which, append([]any{workspace}, values...)...)
}

// commentable returns the error of a comment's place. It locks the session, so that the bound holds.
func commentable(tx *gorm.DB, workspace tenants.WorkspaceID, comment tenants.Comment) error {
	alone := "comments/" + workspace.String() + "/" + comment.Session.String()
	if err := batchdb.Write(tx, "SELECT pg_advisory_xact_lock(hashtextextended(?, 0))", alone); err != nil {
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

var _ tenants.Comments = Comments{}

// Stars stores starred sessions.
type Stars struct{ *core }

// Starred returns the sessions of a workspace that a person has starred, the newest star first.
func (db Stars) Starred(ctx context.Context, workspace tenants.WorkspaceID, user uuid.UUID) ([]uuid.UUID, error) {
	sessions, err := batchdb.Scan[[]uuid.UUID](ctx, db.tenant(workspace), `SELECT session_id FROM session_stars WHERE workspace_id = ? AND user_id = ?
			ORDER BY starred_at DESC, session_id LIMIT ?`, workspace, user, tenants.MaxStars)
	return sessions, batchdb.Wrapf(err, "stars of %s", user)
}

// Star stars a session for a person; an existing star stays unchanged. It returns tenants.ErrNotFound for an
// unknown session, and tenants.Invalid if the person has tenants.MaxStars.
func (db Stars) Star(ctx context.Context, workspace tenants.WorkspaceID, user, session uuid.UUID) error {
	err := db.inTenant(ctx, workspace, func(tx *gorm.DB) error {
		// The lock serializes stars, so that the bound holds.
		alone := "stars/" + workspace.String() + "/" + user.String()
		if err := batchdb.Write(tx, "SELECT pg_advisory_xact_lock(hashtextextended(?, 0))", alone); err != nil {
			return err
		}
		others, err := batchdb.Query[int](tx, "SELECT count(*) FROM session_stars WHERE workspace_id = ? AND user_id = ? AND session_id <> ?", workspace, user, session)
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
		known, err := batchdb.Query[bool](tx, "SELECT EXISTS (SELECT FROM sessions WHERE workspace_id = ? AND id = ?)", workspace, session)
		if err == nil && !known {
			err = tenants.ErrNotFound
		}
		return err
	})
	return batchdb.Wrapf(err, "star session %s", session)
}

// Unstar removes a person's star from a session, if it exists.
func (db Stars) Unstar(ctx context.Context, workspace tenants.WorkspaceID, user, session uuid.UUID) error {
	err := batchdb.Exec(ctx, db.tenant(workspace), "DELETE FROM session_stars WHERE workspace_id = ? AND user_id = ? AND session_id = ?", workspace, user, session)
	return batchdb.Wrapf(err, "unstar session %s", session)
}

// EveryStar returns up to limit stars of all people of a workspace after one, in the order of people and
// sessions; the zero Star starts at the first.
func (db Stars) EveryStar(ctx context.Context, workspace tenants.WorkspaceID, after tenants.Star, limit int) ([]tenants.Star, error) {
	stars, err := batchdb.Scan[[]tenants.Star](ctx, db.tenant(workspace), `SELECT user_id, session_id, starred_at FROM session_stars
		WHERE workspace_id = ? AND (user_id, session_id) > (?, ?) ORDER BY user_id, session_id LIMIT ?`, workspace, after.User, after.Session, limit)
	return stars, batchdb.Wrapf(err, "stars of everybody")
}

var _ tenants.Stars = Stars{}

// Views reads saved views from an earlier version.
type Views struct{ *core }

// EveryView returns up to limit views of all people of a workspace with ids after one, in order; uuid.Nil
// starts at the first.
func (db Views) EveryView(ctx context.Context, workspace tenants.WorkspaceID, after uuid.UUID, limit int) ([]tenants.View, error) {
	views, err := batchdb.Scan[[]tenants.View](ctx, db.tenant(workspace), `SELECT id, user_id AS "user", list, name, query, saved_at
		FROM views WHERE workspace_id = ? AND id > ? ORDER BY id LIMIT ?`, workspace, after, limit)
	return views, batchdb.Wrapf(err, "views of everybody")
}

const sqlScores = `SELECT s.id, s.session_id, s.user_id, coalesce(u.email, '') AS email, s.score, s.note, s.scored_at
	FROM session_scores s LEFT JOIN users u ON u.id = s.user_id WHERE s.workspace_id = ? `

// Judgments returns what members think of sessions, without sessions that have no score and no label.
func (db Comments) Judgments(ctx context.Context, workspace tenants.WorkspaceID, sessions []uuid.UUID) (map[uuid.UUID]tenants.Judgment, error) {
	found := map[uuid.UUID]tenants.Judgment{}
	if len(sessions) == 0 {
		return found, nil
	}
	var scores []tenants.Score
	var labels []tenants.Label
	err := db.inTenant(ctx, workspace, func(tx *gorm.DB) error {
		if err := tx.Raw(sqlScores+"AND s.session_id IN ? ORDER BY s.id", workspace, sessions).Scan(&scores).Error; err != nil {
			return err
		}
		return tx.Raw("SELECT session_id, label, user_id, labeled_at FROM session_labels WHERE workspace_id = ? AND session_id IN ? ORDER BY label", workspace, sessions).Scan(&labels).Error
	})
	if err != nil {
		return nil, fmt.Errorf("scores and labels of sessions: %w", err)
	}
	for i := range scores {
		of := found[scores[i].Session]
		of.Scores = append(of.Scores, scores[i])
		found[scores[i].Session] = of
	}
	for i := range labels {
		of := found[labels[i].Session]
		of.Labels = append(of.Labels, labels[i].Label)
		found[labels[i].Session] = of
	}
	return found, nil
}

// SetScore sets the author's score of a session, with secrets in its note redacted, and records it in the audit
// log. It returns tenants.Invalid for an invalid score, and tenants.ErrNotFound for an unknown session.
func (db Comments) SetScore(ctx context.Context, workspace tenants.WorkspaceID, score tenants.Score) error {
	score.Note = redaction.Clean(strings.ReplaceAll(strings.TrimSpace(score.Note), "\r\n", "\n"))
	if err := score.Check(); err != nil {
		return err
	}
	err := db.inTenant(ctx, workspace, func(tx *gorm.DB) error {
		stored := tx.Exec(`INSERT INTO session_scores (workspace_id, id, session_id, user_id, score, note)
			SELECT workspace_id, ?, id, ?, ?, ? FROM sessions WHERE workspace_id = ? AND id = ?
			ON CONFLICT (workspace_id, session_id, user_id) DO UPDATE SET score = EXCLUDED.score, note = EXCLUDED.note, scored_at = now()`,
			uuid.Must(uuid.NewV7()), score.Author, score.Score, score.Note, workspace, score.Session)
		if stored.Error != nil {
			return stored.Error
		}
		if stored.RowsAffected == 0 {
			return tenants.ErrNotFound
		}
		return audit(tx, workspace, tenants.Change{Action: tenants.SessionScored, Target: score.Session.String(), After: tenants.Fields{"score": fmt.Sprintf("%+d", score.Score)}})
	})
	return batchdb.Wrapf(err, "score of session %s", score.Session)
}

// RemoveScore removes a person's score of a session, if it exists, and records it in the audit log.
func (db Comments) RemoveScore(ctx context.Context, workspace tenants.WorkspaceID, session, person uuid.UUID) error {
	err := db.inTenant(ctx, workspace, func(tx *gorm.DB) error {
		removed := tx.Exec("DELETE FROM session_scores WHERE workspace_id = ? AND session_id = ? AND user_id = ?", workspace, session, person)
		if removed.Error != nil || removed.RowsAffected == 0 {
			return removed.Error
		}
		return audit(tx, workspace, tenants.Change{Action: tenants.SessionScored, Target: session.String(), After: tenants.Fields{"score": "none"}})
	})
	return batchdb.Wrapf(err, "score of session %s", session)
}

// AddLabel puts a label on a session and records it in the audit log. It returns tenants.Invalid for an invalid
// label or too many of them, and tenants.ErrNotFound for an unknown session.
func (db Comments) AddLabel(ctx context.Context, workspace tenants.WorkspaceID, label tenants.Label) (err error) {
	if label.Label, err = tenants.CheckLabel(redaction.Clean(label.Label)); err != nil {
		return err
	}
	err = db.inTenant(ctx, workspace, func(tx *gorm.DB) error {
		// The lock keeps the bound.
		locked := tx.Exec("SELECT FROM sessions WHERE workspace_id = ? AND id = ? FOR NO KEY UPDATE", workspace, label.Session)
		if locked.Error != nil {
			return locked.Error
		}
		if locked.RowsAffected == 0 {
			return tenants.ErrNotFound
		}
		var others int
		err := tx.Raw("SELECT count(*) FROM session_labels WHERE workspace_id = ? AND session_id = ? AND label <> ?", workspace, label.Session, label.Label).Scan(&others).Error
		if err != nil {
			return err
		}
		if others >= tenants.MaxLabels {
			return tenants.Invalid{Field: "label", Message: fmt.Sprintf("is one too many: the session has %d labels. Remove one first", others)}
		}
		added := tx.Exec("INSERT INTO session_labels (workspace_id, session_id, label, user_id) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
			workspace, label.Session, label.Label, label.Author)
		if added.Error != nil || added.RowsAffected == 0 {
			return added.Error
		}
		return audit(tx, workspace, tenants.Change{Action: tenants.SessionLabeled, Target: label.Session.String(), After: tenants.Fields{"label": label.Label}})
	})
	return batchdb.Wrapf(err, "label of session %s", label.Session)
}

// RemoveLabel takes a label off a session, if it is there, and records it in the audit log.
func (db Comments) RemoveLabel(ctx context.Context, workspace tenants.WorkspaceID, session uuid.UUID, label string) error {
	err := db.inTenant(ctx, workspace, func(tx *gorm.DB) error {
		removed := tx.Exec("DELETE FROM session_labels WHERE workspace_id = ? AND session_id = ? AND label = ?", workspace, session, strings.TrimSpace(label))
		if removed.Error != nil || removed.RowsAffected == 0 {
			return removed.Error
		}
		return audit(tx, workspace, tenants.Change{Action: tenants.SessionLabeled, Target: session.String(), Before: tenants.Fields{"label": strings.TrimSpace(label)}})
	})
	return batchdb.Wrapf(err, "label of session %s", session)
}

// EveryScore returns up to limit scores of a workspace with ids after one, in order.
func (db Comments) EveryScore(ctx context.Context, workspace tenants.WorkspaceID, after tenants.Score, limit int) ([]tenants.Score, error) {
	scores, err := batchdb.Scan[[]tenants.Score](ctx, db.tenant(workspace), sqlScores+"AND s.id > ? ORDER BY s.id LIMIT ?", workspace, after.ID, limit)
	return scores, batchdb.Wrapf(err, "scores of all sessions")
}

// EveryLabel returns up to limit labels of a workspace after one, in the order of sessions and labels.
func (db Comments) EveryLabel(ctx context.Context, workspace tenants.WorkspaceID, after tenants.Label, limit int) ([]tenants.Label, error) {
	labels, err := batchdb.Scan[[]tenants.Label](ctx, db.tenant(workspace), `SELECT session_id, label, user_id, labeled_at FROM session_labels
		WHERE workspace_id = ? AND (session_id, label) > (?, ?) ORDER BY session_id, label LIMIT ?`, workspace, after.Session, after.Label, limit)
	return labels, batchdb.Wrapf(err, "labels of all sessions")
}
