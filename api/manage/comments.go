package manage

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"palimpsest/pipeline/session"
	"palimpsest/tenants"
)

// commentHandler serves comments on sessions.
type commentHandler struct {
	lanes

	comments tenants.Comments
}

func (h commentHandler) register(group *echo.Group, a *authorizer) {
	group.GET("/sessions/:id/comments", a.as(tenants.ReadSessions, withQuery(h.listComments)))
	group.POST("/sessions/:id/comments", a.as(tenants.CommentSessions, withQuery(withBody(h.createComment))))
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
func (h commentHandler) createComment(c echo.Context, who caller, asked newComment) error {
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
		return e.config.Conversations.Comments.EveryComment(ctx, e.workspace, last.ID, exportPage)
	})
}

// starHandler serves the caller's own stars.
type starHandler struct {
	sessions session.Records
	stars    tenants.Stars
}

func (h starHandler) register(group *echo.Group, a *authorizer) {
	group.PUT("/sessions/:id/star", a.as(tenants.StarSessions, withQuery(withID(h.star(true)))))
	group.DELETE("/sessions/:id/star", a.as(tenants.StarSessions, withQuery(withID(h.star(false)))))
}

// star stars a session for the caller, or removes the star: for the user of the login, or the person behind
// an API key.
func (h starHandler) star(starred bool) func(c echo.Context, who caller, id uuid.UUID) error {
	return func(c echo.Context, who caller, id uuid.UUID) error {
		ctx := c.Request().Context()
		if _, err := h.sessions.Session(ctx, who.workspace, id); err != nil {
			return err
		}
		change := h.stars.Unstar
		if starred {
			change = h.stars.Star
		}
		return done(c, change(ctx, who.workspace, who.person(), id))
	}
}

// remarks are stars and comments of a workspace's people on sessions.
type remarks struct {
	stars    tenants.Stars
	comments tenants.Comments
}

// onlyStarred narrows a list to the sessions that the caller has starred, if the query asks for that.
func (r remarks) onlyStarred(c echo.Context, who caller, filter *session.Filter) error {
	switch c.QueryParam("starred") {
	case "":
		return nil
	case "true":
	default:
		return tenants.Invalid{Field: "starred", Message: "must be true, or left out"}
	}
	starred, err := r.stars.Starred(c.Request().Context(), who.workspace, who.person())
	filter.IDs = append([]uuid.UUID{}, starred...)
	return err
}

// remark adds the caller's stars and the numbers of comments to sessions.
func (r remarks) remark(ctx context.Context, who caller, sessions []sessionJSON) error {
	starred, err := r.stars.Starred(ctx, who.workspace, who.person())
	if err != nil {
		return err
	}
	ids := make([]uuid.UUID, len(sessions))
	for i := range sessions {
		ids[i] = sessions[i].ID
	}
	counts, err := r.comments.CommentCounts(ctx, who.workspace, ids)
	if err != nil {
		return err
	}
	for i := range sessions {
		sessions[i].Starred, sessions[i].Comments = slices.Contains(starred, sessions[i].ID), counts[sessions[i].ID]
	}
	return nil
}

// exportedStar is a star in an export.
type exportedStar struct {
	User    uuid.UUID `json:"user"`
	Session uuid.UUID `json:"session"`
	At      time.Time `json:"starred_at"`
}

// stars writes everyone's stars.
func (e everything) stars(ctx context.Context) error {
	line := func(star tenants.Star) exportedStar { return exportedStar(star) }
	return listed(e, "stars.ndjson", line, func(last tenants.Star) ([]tenants.Star, error) {
		return e.config.Conversations.Stars.EveryStar(ctx, e.workspace, last, exportPage)
	})
}

// scoreHandler serves scores and labels of sessions.
type scoreHandler struct {
	lanes

	scores tenants.Comments
}

func (h scoreHandler) register(group *echo.Group, a *authorizer) {
	group.GET("/sessions/:id/scores", a.as(tenants.ReadSessions, withQuery(h.listScores)))
	group.PUT("/sessions/:id/score", a.as(tenants.CommentSessions, withQuery(withBody(h.setScore))))
	group.DELETE("/sessions/:id/score", a.as(tenants.CommentSessions, withQuery(h.removeScore)))
	group.PUT("/sessions/:id/labels/:label", a.as(tenants.CommentSessions, withQuery(h.setLabel)))
	group.DELETE("/sessions/:id/labels/:label", a.as(tenants.CommentSessions, withQuery(h.removeLabel)))
}

// scoreJSON is a person's score of a session.
type scoreJSON struct {
	Session  uuid.UUID  `json:"session"`
	Author   *uuid.UUID `json:"author"` // null once they have left the workspace
	Name     string     `json:"author_email"`
	Score    int        `json:"score"`
	Note     string     `json:"note"`
	ScoredAt time.Time  `json:"scored_at"`
}

func scoreOf(score tenants.Score) scoreJSON {
	return scoreJSON{Session: score.Session, Author: nullable(score.Author), Name: score.Name, Score: score.Score, Note: score.Note, ScoredAt: score.At}
}

// listScores lists all scores of a session: one for each person at most.
func (h scoreHandler) listScores(c echo.Context, who caller) error {
	detail, _, err := h.laneText(c, who)
	if err != nil {
		return err
	}
	found, err := h.scores.Judgments(c.Request().Context(), who.workspace, []uuid.UUID{detail.ID})
	if err != nil {
		return err
	}
	return answerPage(c, each(found[detail.ID].Scores, scoreOf), "")
}

// newScore is the body of a request to score a session.
type newScore struct {
	Score int    `json:"score"`
	Note  string `json:"note"`
}

// setScore sets the caller's score: of the user of the login, or the person behind an API key.
func (h scoreHandler) setScore(c echo.Context, who caller, asked newScore) error {
	detail, _, err := h.laneText(c, who)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	if err := h.scores.SetScore(ctx, who.workspace, tenants.Score{Session: detail.ID, Author: who.person(), Score: asked.Score, Note: asked.Note}); err != nil {
		return err
	}
	found, err := h.scores.Judgments(ctx, who.workspace, []uuid.UUID{detail.ID})
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, scoreOf(found[detail.ID].Of(who.person())))
}

func (h scoreHandler) removeScore(c echo.Context, who caller) error {
	detail, _, err := h.laneText(c, who)
	if err != nil {
		return err
	}
	return done(c, h.scores.RemoveScore(c.Request().Context(), who.workspace, detail.ID, who.person()))
}

func (h scoreHandler) setLabel(c echo.Context, who caller) error {
	return h.label(c, who, func(ctx context.Context, label tenants.Label) error {
		return h.scores.AddLabel(ctx, who.workspace, label)
	})
}

func (h scoreHandler) removeLabel(c echo.Context, who caller) error {
	return h.label(c, who, func(ctx context.Context, label tenants.Label) error {
		return h.scores.RemoveLabel(ctx, who.workspace, label.Session, label.Label)
	})
}

// label changes the label in the path.
func (h scoreHandler) label(c echo.Context, who caller, change func(ctx context.Context, label tenants.Label) error) error {
	label, err := url.PathUnescape(c.Param("label"))
	if err != nil {
		return tenants.Invalid{Field: "label", Message: "must be encoded for an address"}
	}
	detail, _, err := h.laneText(c, who)
	if err != nil {
		return err
	}
	return done(c, change(c.Request().Context(), tenants.Label{Session: detail.ID, Author: who.person(), Label: label}))
}

// judge adds scores and labels to sessions that the caller may read.
func (r remarks) judge(ctx context.Context, who caller, reader tenants.Reader, sessions []sessionJSON) error {
	var ids []uuid.UUID
	for i := range sessions {
		if reader.MayRead(sessions[i].APIKey) {
			ids = append(ids, sessions[i].ID)
		}
	}
	found, err := r.comments.Judgments(ctx, who.workspace, ids)
	for i := range sessions {
		of := found[sessions[i].ID]
		sessions[i].Labels = append([]string{}, of.Labels...)
		sessions[i].Up, sessions[i].Down = of.Count(1), of.Count(-1)
	}
	return err
}

// scores writes all scores of the workspace.
func (e everything) scores(ctx context.Context) error {
	return listed(e, "scores.ndjson", scoreOf, func(last tenants.Score) ([]tenants.Score, error) {
		return e.config.Conversations.Comments.EveryScore(ctx, e.workspace, last, exportPage)
	})
}

// exportedLabel is a label of a session in an export.
type exportedLabel struct {
	Session uuid.UUID  `json:"session"`
	Label   string     `json:"label"`
	Author  *uuid.UUID `json:"author"`
	At      time.Time  `json:"labeled_at"`
}

// labels writes all labels of sessions.
func (e everything) labels(ctx context.Context) error {
	line := func(label tenants.Label) exportedLabel {
		return exportedLabel{label.Session, label.Label, nullable(label.Author), label.At}
	}
	return listed(e, "labels.ndjson", line, func(last tenants.Label) ([]tenants.Label, error) {
		return e.config.Conversations.Comments.EveryLabel(ctx, e.workspace, last, exportPage)
	})
}
