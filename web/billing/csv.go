package billing

import (
	"strconv"

	"github.com/labstack/echo/v4"

	"palimpsest/tenants"
	"palimpsest/web/layout"
)

// InvoicesCSV answers with the page's invoices as a file.
func (h *Handler) InvoicesCSV(c echo.Context, who tenants.Principal) error {
	ctx := c.Request().Context()
	overview, err := h.service.Overview(ctx, who.Workspace.ID)
	if err != nil {
		return err
	}
	invoices, err := h.service.Invoices(ctx, overview.Account)
	if err != nil {
		return err
	}
	rows := [][]string{{"number", "created_at", "total_smallest_unit", "currency", "status", "link"}}
	for _, invoice := range invoices {
		rows = append(rows, []string{
			tenants.CSVCell(invoice.Number), tenants.CSVTime(invoice.At), strconv.FormatInt(invoice.Total, 10), invoice.Currency, invoice.Status, tenants.CSVCell(invoice.Link),
		})
	}
	return layout.CSV(c, "palimpsest-invoices.csv").WriteAll(rows)
}
