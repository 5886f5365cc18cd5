package sessions

import (
	"slices"
	"strconv"

	"github.com/labstack/echo/v4"

	"palimpsest/pipeline/session"
	"palimpsest/pipeline/sums"
	"palimpsest/tenants"
	"palimpsest/web/layout"
)

const (
	csvPage = 200    // sessions in memory while the file is written
	csvMost = 50_000 // sessions in a file
)

// CSV answers with the matching sessions, at most csvMost, as a file (RFC 4180) with a heading. It leaves out
// titles that the person may not read.
func (h *Handler) CSV(c echo.Context, who tenants.Principal) error {
	ctx := c.Request().Context()
	reader, err := h.deps.Readers.Reader(ctx, who.Workspace.ID, who.User.ID)
	if err != nil {
		return err
	}
	asked := askOf(c, who)
	filter, err := asked.filter(h.deps.Now())
	if err != nil {
		return wrong(err)
	}
	if err := h.only(ctx, who, asked, &filter); err != nil {
		return err
	}
	filter.Masked, filter.Shown, filter.Limit, filter.Cursor = !reader.All, reader.Keys, csvPage, ""
	return layout.CSVPages(c, h.deps.Log, "palimpsest-sessions.csv", record(nil), csvMost, func() ([][]string, bool, error) {
		page, err := h.deps.Sessions.Sessions(ctx, who.Workspace.ID, filter)
		if err != nil {
			return nil, false, err
		}
		rows := make([][]string, len(page.Sessions))
		for i := range page.Sessions {
			rows[i] = record(&page.Sessions[i])
		}
		filter.Cursor = page.Next
		return rows, page.Next != "", nil
	})
}

// heldFigures are the sums whose columns come before those of the session's events.
const heldFigures = 5

// record returns a row of the file, or its heading for nil.
func record(of *session.Overview) []string {
	all := sums.Of[session.Sums]()
	if of == nil {
		names, _ := sums.CSV(all, &session.Sums{})
		return slices.Concat([]string{"id", "title", "client", "model", "api_key", "started_at", "last_at"}, names[:heldFigures],
			[]string{"bridged", "rehydrated"}, names[heldFigures:], []string{"tokens_saved", "end_user", "end_user_name"})
	}
	_, values := sums.CSV(all, &of.Sums)
	return slices.Concat([]string{
		of.ID.String(), tenants.CSVCell(of.Title), tenants.CSVCell(of.Client), tenants.CSVCell(of.Model), of.APIKey.String(),
		tenants.CSVTime(of.StartedAt), tenants.CSVTime(of.LastAt),
	}, values[:heldFigures], []string{strconv.FormatBool(of.Bridged), strconv.FormatBool(of.Rehydrated)}, values[heldFigures:],
		[]string{strconv.FormatInt(of.Saved(), 10), of.EndUser, tenants.CSVCell(of.EndUserName)})
}
