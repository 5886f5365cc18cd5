package patterns

import (
	"strconv"

	"github.com/labstack/echo/v4"

	"palimpsest/pipeline/modules/patterns"
	"palimpsest/tenants"
	"palimpsest/web/layout"
)

// CSV answers all rules of a tab as a file; the words of those that the reader may not
// read are left out.
func (h *Handler) CSV(c echo.Context, who tenants.Principal) error {
	ctx := c.Request().Context()
	reader, err := h.readers.Reader(ctx, who.Workspace.ID, who.User.ID)
	if err != nil {
		return err
	}
	counts, err := h.store.Counts(ctx, who.Workspace.ID)
	if err != nil {
		return err
	}
	m := newModel(who, counts, patterns.Status(c.QueryParam("state")), h.now())
	found, err := h.store.List(ctx, who.Workspace.ID, patterns.Filter{Statuses: statusesOf(m.Tab), Limit: patterns.MaxPatterns})
	if err != nil {
		return err
	}
	rows := [][]string{{"id", "kind", "text", "state", "source", "every_session", "sessions", "last_met_at", "used", "helped"}}
	for i := range found {
		if !reader.All {
			found[i].Hide()
		}
		rows = append(rows, record(&found[i]))
	}
	return layout.CSV(c, "palimpsest-patterns-"+string(m.Tab)+".csv").WriteAll(rows)
}

func record(p *patterns.Pattern) []string {
	return []string{
		p.ID.String(), string(p.Kind), tenants.CSVCell(p.Text), string(p.Status), string(p.Source), strconv.FormatBool(p.When.Always),
		strconv.Itoa(p.Sessions), tenants.CSVTime(p.LastSeen), strconv.Itoa(p.Injected), strconv.Itoa(p.Successes),
	}
}
