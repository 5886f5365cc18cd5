package sessions

import (
	"context"
	"net/http"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"palimpsest/pipeline/session"
	"palimpsest/tenants"
	"palimpsest/web/layout"
	"palimpsest/web/paths"
)

// mostExported limits the sessions in one file, as in the API.
const mostExported = 100

// exportRefusal is the reason why no file is made; "" if one is.
type exportRefusal string

const (
	nothingToExport exportRefusal = "No session is chosen. Nothing was exported: choose sessions in the list, or export all that match."
	tooManyToExport exportRefusal = "More than 100 sessions match, and one file holds 100. Nothing was exported: choose a shorter range, add a filter, or choose sessions in the list."
	notYoursToRead  exportRefusal = "You may not read all of these sessions. Nothing was exported: filter the list by your API keys, or choose sessions whose titles you see."
)

// Export redirects to the file of the chosen sessions, or of all that match. Without any, the list says
// why.
func (h *Handler) Export(c echo.Context, who tenants.Principal) error {
	format := ""
	if c.QueryParam("format") == "jsonl" {
		format = "jsonl"
	}
	ids, refused, err := h.exported(c, who)
	if err != nil {
		return err
	}
	if refused == "" {
		return layout.Redirect(c, paths.ExportOf(ids, format))
	}
	shown, err := h.model(c, who)
	if err != nil {
		return err
	}
	shown.NotExported = string(refused)
	return h.page(c, who, http.StatusUnprocessableEntity, shown)
}

// exported returns the requested sessions, after checking that the person may read all of them.
func (h *Handler) exported(c echo.Context, who tenants.Principal) ([]uuid.UUID, exportRefusal, error) {
	ctx := c.Request().Context()
	reader, err := h.deps.Readers.Reader(ctx, who.Workspace.ID, who.User.ID)
	if err != nil {
		return nil, "", err
	}
	found, err := h.chosen(ctx, who, reader, idsOf(c.QueryParams()["id"]))
	if c.QueryParam("all") != "" {
		found, err = h.matching(ctx, who, reader, askOf(c, who, h.deps.Now()))
	}
	if err != nil {
		return nil, "", err
	}
	var ids []uuid.UUID
	for i := range found {
		if !reader.MayRead(found[i].APIKey) {
			return nil, notYoursToRead, nil
		}
		ids = append(ids, found[i].ID)
	}
	switch {
	case len(ids) == 0:
		return nil, nothingToExport, nil
	case len(ids) > mostExported:
		return nil, tooManyToExport, nil
	}
	return ids, "", nil
}

// matching returns the matching sessions, or enough of them to tell that there are too many.
func (h *Handler) matching(ctx context.Context, who tenants.Principal, reader tenants.Reader, asked ask) ([]session.Overview, error) {
	filter, err := asked.filter(h.deps.Now())
	if err != nil {
		return nil, wrong(err)
	}
	if err := h.only(ctx, who, asked, &filter); err != nil {
		return nil, err
	}
	filter.Masked, filter.Shown, filter.Limit, filter.Cursor = !reader.All, reader.Keys, mostExported+1, ""
	var found []session.Overview
	for {
		page, err := h.deps.Sessions.Sessions(ctx, who.Workspace.ID, filter)
		found = append(found, page.Sessions...)
		if filter.Cursor = page.Next; err != nil || filter.Cursor == "" || len(found) > mostExported {
			return found, err
		}
	}
}

// chosen returns the existing sessions of ids, the most recently active first, without titles that the person
// may not read.
func (h *Handler) chosen(ctx context.Context, who tenants.Principal, reader tenants.Reader, ids []uuid.UUID) ([]session.Overview, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	page, err := h.deps.Sessions.Sessions(ctx, who.Workspace.ID, session.Filter{IDs: ids, Masked: !reader.All, Shown: reader.Keys, Limit: len(ids)})
	return page.Sessions, err
}
