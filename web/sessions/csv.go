package sessions

import (
	"strconv"

	"github.com/labstack/echo/v4"

	"palimpsest/pipeline/session"
	"palimpsest/tenants"
	"palimpsest/web/layout"
)

const (
	csvPage = 200    // sessions in memory while the file is written
	csvMost = 50_000 // sessions in a file
)

// CSV answers the sessions that match, csvMost of them at most, as a file (RFC 4180)
// with a heading. It has no title that the person may not read.
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
	heading := []string{"id", "title", "client", "model", "api_key", "started_at", "last_at", "requests", "epochs",
		"tokens_received", "tokens_sent", "net_micro_usd", "bridged", "rehydrated", "reach", "end_user", "end_user_name"}
	return layout.CSVPages(c, h.deps.Log, "palimpsest-sessions.csv", heading, csvMost, func() ([][]string, bool, error) {
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

func record(of *session.Overview) []string {
	return []string{
		of.ID.String(), tenants.CSVCell(of.Title), tenants.CSVCell(of.Client), tenants.CSVCell(of.Model), of.APIKey.String(),
		tenants.CSVTime(of.StartedAt), tenants.CSVTime(of.LastAt), strconv.Itoa(of.Exchanges), strconv.Itoa(of.Epochs),
		strconv.FormatInt(of.TokensBefore, 10), strconv.FormatInt(of.TokensAfter, 10), strconv.FormatInt(of.NetMicroUSD, 10),
		strconv.FormatBool(of.Bridged), strconv.FormatBool(of.Rehydrated), strconv.FormatInt(of.Reach, 10),
		of.EndUser, tenants.CSVCell(of.EndUserName),
	}
}
