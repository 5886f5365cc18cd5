package patterns

import (
	"strconv"

	"github.com/labstack/echo/v4"

	"palimpsest/pipeline/modules/patterns"
	"palimpsest/tenants"
	"palimpsest/web/layout"
)

// CSV answers with all rules.
func (h *Handler) CSV(c echo.Context, who tenants.Principal) error {
	found, err := h.store.List(c.Request().Context(), who.Workspace.ID, patterns.Filter{Limit: patterns.MaxPatterns})
	if err != nil {
		return err
	}
	rows := [][]string{{"id", "kind", "text", "state", "every_session", "edited_at"}}
	for i := range found {
		p := &found[i]
		rows = append(rows, []string{
			p.ID.String(), string(p.Kind), tenants.CSVCell(p.Text), string(p.Status), strconv.FormatBool(p.When.Always), tenants.CSVTime(p.EditedAt),
		})
	}
	return layout.CSV(c, "palimpsest-patterns.csv").WriteAll(rows)
}
