package manage

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"palimpsest/pipeline/session"
	"palimpsest/tenants"
)

// starHandler serves the caller's own stars.
type starHandler struct {
	sessions session.Records
	stars    tenants.Stars
}

func (h starHandler) register(group *echo.Group, a *authorizer) {
	group.PUT("/sessions/:id/star", a.as(tenants.StarSessions, h.star(true)))
	group.DELETE("/sessions/:id/star", a.as(tenants.StarSessions, h.star(false)))
}

// star stars a session for the caller, or removes the star: for the user of the login, or the person behind
// an API key.
func (h starHandler) star(starred bool) func(c echo.Context, who caller) error {
	return func(c echo.Context, who caller) error {
		if err := allowQuery(c); err != nil {
			return err
		}
		id, err := pathID(c)
		if err != nil {
			return err
		}
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
		return e.config.Stars.EveryStar(ctx, e.workspace, last, exportPage)
	})
}
