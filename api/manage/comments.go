package manage

import (
	"context"
	"net/http"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"palimpsest/tenants"
)

// commentHandler serves comments on sessions.
type commentHandler struct {
	lanes

	comments tenants.Comments
}

func (h commentHandler) register(group *echo.Group, a *authorizer) {
	group.GET("/sessions/:id/comments", a.as(tenants.ReadSessions, h.listComments))
	group.POST("/sessions/:id/comments", a.as(tenants.CommentSessions, h.createComment))
	group.DELETE("/sessions/:id/comments/:comment", a.as(tenants.CommentSessions, h.deleteComment))
}

// commentJSON is a comment on a session.
type commentJSON struct {
	ID        uuid.UUID  `json:"id"`
	Session   uuid.UUID  `json:"session"`
	Lane      *uuid.UUID `json:"lane,omitempty"` // of the message
	Message   *int       `json:"message,omitempty"`
	Author    *uuid.UUID `json:"author"` // null once they have left the workspace
	Name      string     `json:"author_email"`
	Text      string     `json:"text"`
	CreatedAt time.Time  `json:"created_at"`
}

func commentOf(comment tenants.Comment) commentJSON {
	answer := commentJSON{
		ID: comment.ID, Session: comment.Session, Author: nullable(comment.Author), Name: comment.Name, Text: comment.Text, CreatedAt: comment.At,
	}
	if comment.HasMessage() {
		answer.Lane, answer.Message = &comment.Lane, &comment.Message
	}
	return answer
}

// listComments lists all comments on a session. There are tenants.MaxComments at most.
func (h commentHandler) listComments(c echo.Context, who caller) error {
	if err := allowQuery(c); err != nil {
		return err
	}
	detail, _, err := h.laneText(c, who)
	if err != nil {
		return err
	}
	found, err := h.comments.Comments(c.Request().Context(), who.workspace, detail.ID)
	if err != nil {
		return err
	}
	return answerPage(c, each(found, commentOf), "")
}

// newComment is the body of a request to add a comment.
type newComment struct {
	Text    string     `json:"text"`
	Lane    *uuid.UUID `json:"lane"`
	Message *int       `json:"message"`
}

// createComment comments on a session, or on a message of it: of its most recently active
// lane unless the request names another one.
func (h commentHandler) createComment(c echo.Context, who caller) error {
	if err := allowQuery(c); err != nil {
		return err
	}
	asked, err := readJSON[newComment](c)
	if err != nil {
		return err
	}
	detail, lane, err := h.laneText(c, who)
	if err != nil {
		return err
	}
	comment := tenants.Comment{Session: detail.ID, Author: who.person(), Text: asked.Text}
	switch {
	case asked.Message != nil && asked.Lane != nil:
		comment.Lane, comment.Message = *asked.Lane, *asked.Message
	case asked.Message != nil:
		comment.Lane, comment.Message = lane.ID, *asked.Message
	case asked.Lane != nil:
		return tenants.Invalid{Field: "message", Message: "must be there where lane is"}
	}
	added, err := h.comments.AddComment(c.Request().Context(), who.workspace, comment)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusCreated, commentOf(added))
}

func (h commentHandler) deleteComment(c echo.Context, who caller) error {
	id, err := uuid.Parse(c.Param("comment"))
	if err != nil {
		return tenants.ErrNotFound
	}
	detail, _, err := h.laneText(c, who)
	if err != nil {
		return err
	}
	return done(c, h.comments.DeleteComment(c.Request().Context(), who.workspace, detail.ID, id, who.person(), who.may))
}

// comments writes all comments of the workspace.
func (e everything) comments(ctx context.Context) error {
	return listed(e, "comments.ndjson", commentOf, func(last tenants.Comment) ([]tenants.Comment, error) {
		return e.config.Comments.EveryComment(ctx, e.workspace, last.ID, exportPage)
	})
}
