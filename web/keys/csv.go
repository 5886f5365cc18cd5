package keys

import (
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"palimpsest/tenants"
	"palimpsest/web/layout"
)

// CSV answers with the table of keys as a file. If requests could not be counted, their cells are empty.
func (h *Handler) CSV(c echo.Context, who tenants.Principal) error {
	m, err := h.model(c.Request().Context(), who)
	if err != nil {
		return err
	}
	rows := [][]string{{"id", "name", "key", "scopes", "pipeline", "limits", "creator", "created_at", "requests_7d", "last_used_at", "expires_at", "status", "cost_7d_micro_usd"}}
	for i := range m.Rows {
		rows = append(rows, m.record(&m.Rows[i]))
	}
	return layout.CSV(c, "palimpsest-keys.csv").WriteAll(rows)
}

func (m *model) record(row *row) []string {
	key := &row.Key
	pipeline, requests := "workspace", strconv.FormatInt(row.Requests, 10)
	if key.Pipeline != "" {
		pipeline = "own"
	}
	cost := ""
	if row.Cost != nil {
		cost = strconv.FormatInt(*row.Cost, 10)
	}
	if m.UsageFailed != "" {
		requests, cost = "", ""
	}
	return []string{
		key.ID.String(), tenants.CSVCell(key.Name), key.Prefix + "…" + key.Suffix, tenants.JoinScopes(key.Scopes, " "), pipeline, tenants.CSVCell(row.Held), tenants.CSVCell(key.Creator),
		tenants.CSVTime(key.CreatedAt), requests, timeCell(key.LastUsedAt), timeCell(key.ExpiresAt), row.State, cost,
	}
}

func timeCell(at *time.Time) string {
	if at == nil {
		return ""
	}
	return tenants.CSVTime(*at)
}
