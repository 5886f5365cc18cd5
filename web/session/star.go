package session

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"palimpsest/pipeline/session"
	"palimpsest/tenants"
	"palimpsest/web/components"
	"palimpsest/web/layout"
	"palimpsest/web/paths"
)

// Star adds or removes the person's star on a session.
func (h *Handler) Star(c echo.Context, who tenants.Principal) error {
	ctx := c.Request().Context()
	id, err := uuid.Parse(c.Param("id"))
	if err != nil {
		return session.ErrNotFound
	}
	detail, err := h.deps.Sessions.Session(ctx, who.Workspace.ID, id)
	if err != nil {
		return err
	}
	change, starred := h.deps.Stars.Unstar, c.FormValue("starred") == "true"
	if starred {
		change = h.deps.Stars.Star
	}
	if err := change(ctx, who.Workspace.ID, who.User.ID, id); err != nil {
		return err
	}
	back := c.FormValue("back")
	if layout.IsPartial(c) {
		may, err := h.deps.Readers.Reader(ctx, who.Workspace.ID, who.User.ID)
		if err != nil {
			return err
		}
		if !may.MayRead(detail.APIKey) {
			detail.Mask()
		}
		return layout.Fragment(c, http.StatusOK, components.Star(components.StarModel{Name: titleOf(detail.Overview), Path: paths.StarSession(id), Back: back, Starred: starred}))
	}
	if !strings.HasPrefix(back, paths.Sessions) {
		back = paths.Session(id)
	}
	return layout.Redirect(c, paths.Local(back))
}

// star returns the session's star for its page.
func (h *Handler) star(ctx context.Context, who tenants.Principal, overview session.Overview) (components.StarModel, error) {
	starred, err := h.deps.Stars.Starred(ctx, who.Workspace.ID, who.User.ID)
	return components.StarModel{
		Name: titleOf(overview), Path: paths.StarSession(overview.ID), Back: paths.Session(overview.ID), Starred: slices.Contains(starred, overview.ID),
	}, err
}
