package operator

import (
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"

	"palimpsest/tenants"
	"palimpsest/web/layout"
)

const (
	csvMost    = 10_000 // workspaces in a file
	csvEntries = 10_000 // of the log in a file
)

// CSV answers with the matching workspaces, at most csvMost, as a file.
func (h *Handler) CSV(c echo.Context, who tenants.Principal) error {
	ctx := c.Request().Context()
	query := tenants.OperatedQuery{Search: strings.TrimSpace(c.QueryParam("q")), Limit: rows}
	heading := []string{"id", "name", "owner", "created_at", "state", "members", "exchanges_30d", "failed_30d", "tokens_30d", "archive_bytes", "last_exchange_at"}
	return layout.CSVPages(c, h.log, "palimpsest-workspaces.csv", heading, csvMost, func() ([][]string, bool, error) {
		found, err := h.store.OperatedWorkspaces(ctx, who.User.ID, query)
		if err != nil || len(found) == 0 {
			return nil, false, err
		}
		records := make([][]string, len(found))
		for i := range found {
			records[i] = record(&found[i])
		}
		last := &found[len(found)-1]
		query.BeforeAt, query.BeforeID = last.CreatedAt, last.ID
		return records, len(found) == rows, nil
	})
}

func record(of *tenants.OperatedWorkspace) []string {
	state, last := "active", ""
	if of.Suspension != nil {
		state = "suspended"
	}
	if of.LastExchange != nil {
		last = tenants.CSVTime(*of.LastExchange)
	}
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	return []string{
		of.ID.String(), tenants.CSVCell(of.Name), tenants.CSVCell(of.Owner), tenants.CSVTime(of.CreatedAt), state,
		number(of.Members), number(of.Exchanges), number(of.Failures), number(of.Tokens), number(of.ArchiveBytes), last,
	}
}

// LogCSV answers with the newest csvEntries of the operators' log as a file.
func (h *Handler) LogCSV(c echo.Context, who tenants.Principal) error {
	entries, err := h.store.OperatorLog(c.Request().Context(), who.User.ID, csvEntries)
	if err != nil {
		return err
	}
	rows := [][]string{{"at", "actor", "action", "target", "name", "reason"}}
	for i := range entries {
		entry := &entries[i]
		rows = append(rows, []string{
			tenants.CSVTime(entry.At), tenants.CSVCell(entry.Actor), string(entry.Action), tenants.CSVCell(entry.Target), tenants.CSVCell(entry.Name), tenants.CSVCell(entry.Reason),
		})
	}
	return layout.CSV(c, "palimpsest-operator-log.csv").WriteAll(rows)
}
