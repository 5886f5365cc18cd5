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
	Session uuid.UUID
	Lane    uuid.UUID // of Message; uuid.Nil: about the whole session
	Message int       // place in the client's list
	Author  uuid.UUID // uuid.Nil once they have left the workspace
	Name    string    // the author's address; "" once they have left
	Text    string    // plain, with secrets redacted
	At      time.Time
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

// Comments stores comments on sessions.
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
}
