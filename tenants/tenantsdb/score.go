package tenantsdb

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"palimpsest/pipeline/batchdb"
	"palimpsest/tenants"
	"palimpsest/tenants/redaction"
)

const sqlScores = `SELECT s.id, s.session_id, s.user_id, coalesce(u.email, '') AS email, s.score, s.note, s.scored_at
	FROM session_scores s LEFT JOIN users u ON u.id = s.user_id WHERE s.workspace_id = ? `

// Judgments returns what members think of sessions, without sessions that have no score and no label.
func (db Comments) Judgments(ctx context.Context, workspace tenants.WorkspaceID, sessions []uuid.UUID) (map[uuid.UUID]tenants.Judgment, error) {
	found := map[uuid.UUID]tenants.Judgment{}
	if len(sessions) == 0 {
		return found, nil
	}
	var scores []scoreRow
	var labels []labelRow
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
		of := found[scores[i].SessionID]
		of.Scores = append(of.Scores, scores[i].toScore())
		found[scores[i].SessionID] = of
	}
	for i := range labels {
		of := found[labels[i].SessionID]
		of.Labels = append(of.Labels, labels[i].Label)
		found[labels[i].SessionID] = of
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
	var rows []scoreRow
	err := db.inTenant(ctx, workspace, func(tx *gorm.DB) error {
		return tx.Raw(sqlScores+"AND s.id > ? ORDER BY s.id LIMIT ?", workspace, after.ID, limit).Scan(&rows).Error
	})
	return each(rows, (*scoreRow).toScore), batchdb.Wrapf(err, "scores of all sessions")
}

// EveryLabel returns up to limit labels of a workspace after one, in the order of sessions and labels.
func (db Comments) EveryLabel(ctx context.Context, workspace tenants.WorkspaceID, after tenants.Label, limit int) ([]tenants.Label, error) {
	var rows []labelRow
	err := db.inTenant(ctx, workspace, func(tx *gorm.DB) error {
		return tx.Raw(`SELECT session_id, label, user_id, labeled_at FROM session_labels
			WHERE workspace_id = ? AND (session_id, label) > (?, ?) ORDER BY session_id, label LIMIT ?`, workspace, after.Session, after.Label, limit).Scan(&rows).Error
	})
	return each(rows, (*labelRow).toLabel), batchdb.Wrapf(err, "labels of all sessions")
}

// scoreRow is a row of session_scores, with the author's address.
type scoreRow struct {
	ID        uuid.UUID
	SessionID uuid.UUID
	UserID    uuid.NullUUID
	Email     string
	Score     int
	Note      string
	ScoredAt  time.Time
}

func (r *scoreRow) toScore() tenants.Score {
	return tenants.Score{ID: r.ID, Session: r.SessionID, Author: r.UserID.UUID, Name: r.Email, Score: r.Score, Note: r.Note, At: r.ScoredAt}
}

// labelRow is a row of session_labels.
type labelRow struct {
	SessionID uuid.UUID
	Label     string
	UserID    uuid.NullUUID
	LabeledAt time.Time
}

func (r *labelRow) toLabel() tenants.Label {
	return tenants.Label{Session: r.SessionID, Label: r.Label, Author: r.UserID.UUID, At: r.LabeledAt}
}
