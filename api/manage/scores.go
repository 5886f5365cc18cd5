package manage

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"palimpsest/tenants"
)

// scoreHandler serves scores and labels of sessions.
type scoreHandler struct {
	lanes

	scores tenants.Comments
}

func (h scoreHandler) register(group *echo.Group, a *authorizer) {
	group.GET("/sessions/:id/scores", a.as(tenants.ReadSessions, h.listScores))
	group.PUT("/sessions/:id/score", a.as(tenants.CommentSessions, h.setScore))
	group.DELETE("/sessions/:id/score", a.as(tenants.CommentSessions, h.removeScore))
	group.PUT("/sessions/:id/labels/:label", a.as(tenants.CommentSessions, h.setLabel))
	group.DELETE("/sessions/:id/labels/:label", a.as(tenants.CommentSessions, h.removeLabel))
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
	if err := allowQuery(c); err != nil {
		return err
	}
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
func (h scoreHandler) setScore(c echo.Context, who caller) error {
	if err := allowQuery(c); err != nil {
		return err
	}
	asked, err := readJSON[newScore](c)
	if err != nil {
		return err
	}
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
	if err := allowQuery(c); err != nil {
		return err
	}
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
	if err := allowQuery(c); err != nil {
		return err
	}
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
		return e.config.Comments.EveryScore(ctx, e.workspace, last, exportPage)
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
		return e.config.Comments.EveryLabel(ctx, e.workspace, last, exportPage)
	})
}
