package session

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"palimpsest/tenants"
	"palimpsest/web/components"
	"palimpsest/web/layout"
	"palimpsest/web/paths"
	"palimpsest/web/render"
)

// judgeModel is what members think of the session.
type judgeModel struct {
	tenants.Judgment

	Session uuid.UUID
	Own     tenants.Score // the person's
	May     bool          // the person may score and label it
	Typed   string        // a refused label
	Error   string        // why a label or a score was refused; "" otherwise
}

// judged returns what members think of a session if the person may read it.
func (h *Handler) judged(ctx context.Context, who tenants.Principal, of subject) (judgeModel, error) {
	m := judgeModel{Session: of.detail.ID, May: of.mayRead && who.Role.May(tenants.CommentSessions)}
	if !of.mayRead {
		return m, nil
	}
	found, err := h.deps.Comments.Judgments(ctx, who.Workspace.ID, []uuid.UUID{of.detail.ID})
	m.Judgment = found[of.detail.ID]
	m.Own = m.Of(who.User.ID)
	return m, err
}

// shows reports whether there is anything to show.
func (m judgeModel) shows() bool { return m.May || len(m.Scores)+len(m.Labels) > 0 }

// notes returns the scores of others that have a note; the person's own is in the form.
func (m judgeModel) notes() []tenants.Score {
	var noted []tenants.Score
	for _, score := range m.Scores {
		if score.Note != "" && (!m.May || score.ID != m.Own.ID) {
			score.Note = render.Visible(score.Note)
			if score.Name == "" {
				score.Name = "a former member"
			}
			noted = append(noted, score)
		}
	}
	return noted
}

// words describes a score for people.
func (m judgeModel) words(score int) string {
	what := map[int]string{1: "Good", -1: "Bad"}[score]
	if m.Own.Score == score {
		return what + ", your score. Press again to remove it"
	}
	return what
}

// pressed is the value of a score's button: a second press removes the score.
func (m judgeModel) pressed(score int) string {
	if m.Own.Score == score {
		return "0"
	}
	return strconv.Itoa(score)
}

// Score sets or removes the person's score of the session.
func (h Forms) Score(c echo.Context, who tenants.Principal) error {
	return h.judge(c, who, func(ctx context.Context, of subject) error {
		score, err := strconv.Atoi(c.FormValue("score"))
		if err != nil {
			return tenants.Invalid{Field: "score", Message: "must be 1 or -1"}
		}
		if score == 0 {
			return h.deps.Comments.RemoveScore(ctx, who.Workspace.ID, of.detail.ID, who.User.ID)
		}
		return h.deps.Comments.SetScore(ctx, who.Workspace.ID, tenants.Score{Session: of.detail.ID, Author: who.User.ID, Score: score, Note: c.FormValue("note")})
	})
}

// AddLabel puts a label on the session.
func (h Forms) AddLabel(c echo.Context, who tenants.Principal) error {
	return h.judge(c, who, func(ctx context.Context, of subject) error {
		return h.deps.Comments.AddLabel(ctx, who.Workspace.ID, tenants.Label{Session: of.detail.ID, Author: who.User.ID, Label: c.FormValue("label")})
	})
}

// RemoveLabel takes a label off the session.
func (h Forms) RemoveLabel(c echo.Context, who tenants.Principal) error {
	return h.judge(c, who, func(ctx context.Context, of subject) error {
		return h.deps.Comments.RemoveLabel(ctx, who.Workspace.ID, of.detail.ID, c.FormValue("label"))
	})
}

// judge applies a change and shows the session again.
func (h Forms) judge(c echo.Context, who tenants.Principal, change func(ctx context.Context, of subject) error) error {
	of, err := h.changed(c, who)
	if err != nil {
		return err
	}
	err = change(c.Request().Context(), of)
	if invalid, is := errors.AsType[tenants.Invalid](err); is {
		return h.page(c, who, http.StatusUnprocessableEntity, of, func(m *model) {
			m.Judge.Typed, m.Judge.Error = c.FormValue("label"), components.FieldError(components.Capitalize(invalid.Field), invalid.Message)
		})
	}
	if err != nil {
		return err
	}
	return layout.Redirect(c, paths.Session(of.detail.ID))
}
