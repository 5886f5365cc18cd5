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

// Comment is what someone of a workspace says about a session, or about one message of
// it. The people who may read what was said in the session may read its comments.
type Comment struct {
	ID      uuid.UUID // version 7: ordered by time
	Session uuid.UUID
	Lane    uuid.UUID // of Message; uuid.Nil: about the whole session
	Message int       // place in the client's list
	Author  uuid.UUID // uuid.Nil once they have left the workspace
	Name    string    // the author's address; "" once they have left
	Text    string    // plain, without what has the form of a secret
	At      time.Time
}

// Check returns Invalid for a comment that cannot be kept.
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

// MayDelete reports whether a person who is granted some permissions may delete the
// comment: authors may delete their own, and admins any.
func (c Comment) MayDelete(person uuid.UUID, may func(Permission) bool) bool {
	isOwn := c.Author != uuid.Nil && c.Author == person
	return may(ManageComments) || isOwn && may(CommentSessions)
}

// Comments keeps what people say about sessions.
type Comments interface {
	// Comments returns the comments on a session, the oldest first.
	Comments(ctx context.Context, workspace WorkspaceID, session uuid.UUID) ([]Comment, error)

	// CommentCounts returns how many comments each of some sessions has, by session;
	// those without any are left out.
	CommentCounts(ctx context.Context, workspace WorkspaceID, sessions []uuid.UUID) (map[uuid.UUID]int, error)

	// AddComment keeps a comment of its author, without what has the form of a secret,
	// and notes it in the audit log. It returns Invalid for what cannot be kept, and
	// ErrNotFound for a session or a message that the workspace does not have.
	AddComment(ctx context.Context, workspace WorkspaceID, comment Comment) (Comment, error)

	// DeleteComment deletes a comment on a session on behalf of a person who is granted
	// some permissions, and notes it in the audit log. It returns ErrNotFound, or
	// ErrDenied for someone who may not delete it.
	DeleteComment(ctx context.Context, workspace WorkspaceID, session, id, person uuid.UUID, may func(Permission) bool) error

	// EveryComment returns up to limit comments on all sessions whose ids follow one, in
	// order; for uuid.Nil the first ones.
	EveryComment(ctx context.Context, workspace WorkspaceID, after uuid.UUID, limit int) ([]Comment, error)
}
