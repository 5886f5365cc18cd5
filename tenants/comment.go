package tenants

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
)

// The bounds of comments.
const (
	MaxComment  = 4000 // characters
	MaxComments = 500  // on one session
)

// Comment is a member's remark about a session or one of its messages. People who may read the session's text
// may read its comments.
type Comment struct {
	ID      uuid.UUID // version 7: ordered by time
	Session uuid.UUID `gorm:"column:session_id"`
	Lane    uuid.UUID `gorm:"column:lane_id"` // of Message; uuid.Nil: about the whole session
	Message int       // place in the client's list
	Author  uuid.UUID `gorm:"column:user_id"` // uuid.Nil once they have left the workspace
	Name    string    `gorm:"column:email"`   // the author's address; "" once they have left
	Text    string    // plain, with secrets redacted
	At      time.Time `gorm:"column:created_at"`
}

// Check returns Invalid for an invalid comment.
func (c Comment) Check() error {
	switch length := utf8.RuneCountInString(c.Text); {
	case strings.TrimSpace(c.Text) == "":
		return Invalid{Field: "text", Message: fmt.Sprintf("must have 1 to %d characters", MaxComment)}
	case length > MaxComment:
		return Invalid{Field: "text", Message: fmt.Sprintf("must have 1 to %d characters; it has %d", MaxComment, length)}
	case !utf8.ValidString(c.Text), strings.ContainsRune(c.Text, 0):
		return Invalid{Field: "text", Message: "must be text"}
	}
	return nil
}

// HasMessage reports whether the comment is about one message.
func (c Comment) HasMessage() bool { return c.Lane != uuid.Nil }

// MayDelete reports whether a person with some permissions may delete the comment: authors their own, admins
// any.
func (c Comment) MayDelete(person uuid.UUID, may func(Permission) bool) bool {
	isOwn := c.Author != uuid.Nil && c.Author == person
	return may(ManageComments) || isOwn && may(CommentSessions)
}

// Comments stores comments, scores and labels of sessions. Changes are recorded in the audit log.
type Comments interface {
	// Comments returns the comments on a session, the oldest first.
	Comments(ctx context.Context, workspace WorkspaceID, session uuid.UUID) ([]Comment, error)

	// CommentCounts returns the number of comments of each session, without sessions that have no comments.
	CommentCounts(ctx context.Context, workspace WorkspaceID, sessions []uuid.UUID) (map[uuid.UUID]int, error)

	// AddComment stores a comment of its author, with secrets redacted, and records it in the audit log. It
	// returns Invalid for an invalid comment, and ErrNotFound for an unknown session or message.
	AddComment(ctx context.Context, workspace WorkspaceID, comment Comment) (Comment, error)

	// DeleteComment deletes a comment on behalf of a person with some permissions, and records it in the
	// audit log. It returns ErrNotFound, or ErrDenied if the person may not delete it.
	DeleteComment(ctx context.Context, workspace WorkspaceID, session, id, person uuid.UUID, may func(Permission) bool) error

	// EveryComment returns up to limit comments on all sessions with ids after one, in order; uuid.Nil starts
	// at the first.
	EveryComment(ctx context.Context, workspace WorkspaceID, after uuid.UUID, limit int) ([]Comment, error)

	// Judgments returns what members think of sessions, without sessions that have no score and no label.
	Judgments(ctx context.Context, workspace WorkspaceID, sessions []uuid.UUID) (map[uuid.UUID]Judgment, error)

	// SetScore sets the author's score of a session, with secrets in its note redacted. It returns Invalid for
	// an invalid score, and ErrNotFound for an unknown session.
	SetScore(ctx context.Context, workspace WorkspaceID, score Score) error

	// RemoveScore removes a person's score of a session, if it exists.
	RemoveScore(ctx context.Context, workspace WorkspaceID, session, person uuid.UUID) error

	// AddLabel puts a label on a session. It returns Invalid for an invalid label or too many of them, and
	// ErrNotFound for an unknown session.
	AddLabel(ctx context.Context, workspace WorkspaceID, label Label) error

	// RemoveLabel takes a label off a session, if it is there.
	RemoveLabel(ctx context.Context, workspace WorkspaceID, session uuid.UUID, label string) error

	// EveryScore and EveryLabel return up to limit scores and labels of all sessions after one, in order; the
	// zero value starts at the first.
	EveryScore(ctx context.Context, workspace WorkspaceID, after Score, limit int) ([]Score, error)
	EveryLabel(ctx context.Context, workspace WorkspaceID, after Label, limit int) ([]Label, error)
}

// MaxStars bounds the stars of one person in a workspace.
const MaxStars = 1000

// Star is a session that someone has marked. Others in the workspace do not see it, except in an export of
// all data.
type Star struct {
	User    uuid.UUID `gorm:"column:user_id"`
	Session uuid.UUID `gorm:"column:session_id"`
	At      time.Time `gorm:"column:starred_at"`
}

// Stars stores starred sessions.
type Stars interface {
	// Starred returns the sessions that a person has starred, the newest star first.
	Starred(ctx context.Context, workspace WorkspaceID, user uuid.UUID) ([]uuid.UUID, error)

	// Star returns ErrNotFound for an unknown session, and Invalid after too many stars. An existing star
	// stays unchanged.
	Star(ctx context.Context, workspace WorkspaceID, user, session uuid.UUID) error

	// Unstar removes a star, if it exists.
	Unstar(ctx context.Context, workspace WorkspaceID, user, session uuid.UUID) error

	// EveryStar returns up to limit stars of all people after one, in order; the zero Star starts at the
	// first.
	EveryStar(ctx context.Context, workspace WorkspaceID, after Star, limit int) ([]Star, error)
}

// View is a saved filter of a list, with its owner's name for it, from a version that had views. An export of
// all data includes it.
type View struct {
	ID      uuid.UUID
	User    uuid.UUID // the owner
	List    string    // "sessions" or "requests"
	Name    string
	Query   string // the filters as a URL's query
	SavedAt time.Time
}

// Views returns saved views from an earlier version.
type Views interface {
	// EveryView returns the views of all people with ids after one, in order.
	EveryView(ctx context.Context, workspace WorkspaceID, after uuid.UUID, limit int) ([]View, error)
}
