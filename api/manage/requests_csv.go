package manage

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"

	"github.com/labstack/echo/v4"

	"palimpsest/tenants"
)

// maxRequestsCSV bounds the requests in a download; it has the newest.
const maxRequestsCSV = 100_000

// downloadRequests answers with the filtered requests as CSV, the newest first. It reads and sends them page
// by page.
func (h exchangeHandler) downloadRequests(c echo.Context, who caller) error {
	filter, err := exchangeFilter(c, who)
	if err != nil {
		return err
	}
	reader, err := h.readers.reader(c, who)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	filter.Limit = tenants.MaxExchanges
	first, next, err := h.page(ctx, who.workspace, reader, filter)
	if err != nil {
		return err
	}
	startCSV(c, "palimpsest-requests.csv")
	pages := h.requestPages(ctx, who.workspace, reader, filter, first, next)
	if err := writeRequestsCSV(c.Response(), pages); err != nil {
		h.log.WarnContext(ctx, "download of requests is cut off", "error", err)
		panic(http.ErrAbortHandler) // the status has already been sent
	}
	return nil
}

// startCSV begins an answer with a CSV file.
func startCSV(c echo.Context, name string) {
	header := c.Response().Header()
	header.Set(echo.HeaderContentType, "text/csv; charset=utf-8")
	header.Set(echo.HeaderContentDisposition, `attachment; filename="`+name+`"`)
	header.Set(echo.HeaderCacheControl, "private, no-store")
	header.Set(echo.HeaderXContentTypeOptions, "nosniff")
	c.Response().WriteHeader(http.StatusOK)
}

// requestPages returns the pages of a list, given the first.
func (h exchangeHandler) requestPages(ctx context.Context, workspace tenants.WorkspaceID, reader tenants.Reader, filter tenants.ExchangeFilter, first []tenants.Exchange, next string) iter.Seq2[[]tenants.Exchange, error] {
	return func(yield func([]tenants.Exchange, error) bool) {
		page, err := first, error(nil)
		for yield(page, err) && err == nil && next != "" {
			filter.Cursor = next
			page, next, err = h.page(ctx, workspace, reader, filter)
		}
	}
}

// writeRequestsCSV writes pages as CSV (RFC 4180) with a heading, at most maxRequestsCSV
// rows. A cell that a spreadsheet would take for a formula begins with an apostrophe.
func writeRequestsCSV(w io.Writer, pages iter.Seq2[[]tenants.Exchange, error]) error {
	out := csv.NewWriter(w)
	out.UseCRLF = true
	columns := requestColumns()
	row := make([]string, len(columns))
	for i, column := range columns {
		row[i] = column.name
	}
	if err := out.Write(row); err != nil {
		return fmt.Errorf("write requests: %w", err)
	}
	rows := 0
	for page, err := range pages {
		for i := 0; err == nil && i < len(page) && rows < maxRequestsCSV; i++ {
			for j, column := range columns {
				row[j] = column.cell(&page[i])
			}
			err = out.Write(row)
			rows++
		}
		out.Flush()
		if err = errors.Join(err, out.Error()); err != nil {
			return fmt.Errorf("write requests: %w", err)
		}
		if rows == maxRequestsCSV {
			break
		}
	}
	return nil
}
