package manage

import (
	"context"
	"net/http"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"palimpsest/tenants"
)

// registerComments adds the routes of what people say about sessions.
func (s *server) registerComments(group *echo.Group) {
	group.GET("/sessions/:id/comments", s.as(tenants.ReadSessions, s.listComments))
	group.POST("/sessions/:id/comments", s.as(tenants.CommentSessions, s.createComment))
	group.DELETE("/sessions/:id/comments/:comment", s.as(tenants.CommentSessions, s.deleteComment))
}

// commentJSON is what someone says about a session.
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

func commentOf(comment *tenants.Comment) commentJSON {
	answer := commentJSON{ID: comment.ID, Session: comment.Session, Name: comment.Name, Text: comment.Text, CreatedAt: comment.At}
	if comment.HasMessage() {
		answer.Lane, answer.Message = &comment.Lane, &comment.Message
	}
	if comment.Author != uuid.Nil {
		answer.Author = &comment.Author
	}
	return answer
}

// listComments lists all comments on a session. There are tenants.MaxComments at most.
func (s *server) listComments(c echo.Context, who caller) error {
	if err := allowQuery(c); err != nil {
		return err
	}
	detail, _, err := s.laneText(c, who)
	if err != nil {
		return err
	}
	found, err := s.Comments.Comments(c.Request().Context(), who.workspace, detail.ID)
	if err != nil {
		return err
	}
	data := make([]commentJSON, len(found))
	for i := range found {
		data[i] = commentOf(&found[i])
	}
	return answerPage(c, data, "")
}

// newComment is what a request says of a comment.
type newComment struct {
	Text    string     `json:"text"`
	Lane    *uuid.UUID `json:"lane"`
	Message *int       `json:"message"`
}

// createComment comments on a session, or on a message of it: of its most recently active
// lane unless the request names another one.
func (s *server) createComment(c echo.Context, who caller) error {
	if err := allowQuery(c); err != nil {
		return err
	}
	asked, err := readJSON[newComment](c)
	if err != nil {
		return err
	}
	detail, lane, err := s.laneText(c, who)
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
	added, err := s.Comments.AddComment(c.Request().Context(), who.workspace, comment)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusCreated, commentOf(&added))
}

func (s *server) deleteComment(c echo.Context, who caller) error {
	id, err := uuid.Parse(c.Param("comment"))
	if err != nil {
		return tenants.ErrNotFound
	}
	detail, _, err := s.laneText(c, who)
	if err != nil {
		return err
	}
	if err := s.Comments.DeleteComment(c.Request().Context(), who.workspace, detail.ID, id, who.person(), who.may); err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}

// comments writes all comments of the workspace.
func (e everything) comments(ctx context.Context) error {
	return e.lines("comments.ndjson", func(write func(line any) error) error {
		after := uuid.Nil
		for {
			found, err := e.Comments.EveryComment(ctx, e.workspace, after, exportPage)
			if err != nil {
				return err
			}
			for i := range found {
				after = found[i].ID
				if err := write(commentOf(&found[i])); err != nil {
					return err
				}
			}
			if len(found) < exportPage {
				return nil
			}
		}
	})
}
