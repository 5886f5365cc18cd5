package manage

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"palimpsest/tenants"
)

// maxRequestsCSV is how many requests a download holds at most, the newest.
const maxRequestsCSV = 100_000

// downloadRequests answers the requests that a filter lets through as CSV, the newest
// first. They are read and sent page by page.
func (h exchangeHandler) downloadRequests(c echo.Context, who caller) error {
	filter, err := exchangeFilter(c)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	filter.Limit = tenants.MaxExchanges
	first, next, err := h.exchanges.Exchanges(ctx, who.workspace, filter)
	if err != nil {
		return err
	}
	startCSV(c, "palimpsest-requests.csv")
	pages := h.requestPages(ctx, who.workspace, filter, first, next)
	if err := writeRequestsCSV(c.Response(), pages); err != nil {
		h.log.WarnContext(ctx, "download of requests is cut off", "error", err)
		panic(http.ErrAbortHandler) // the status has gone out
	}
	return nil
}

// startCSV begins an answer that is a file of CSV.
func startCSV(c echo.Context, name string) {
	header := c.Response().Header()
	header.Set(echo.HeaderContentType, "text/csv; charset=utf-8")
	header.Set(echo.HeaderContentDisposition, `attachment; filename="`+name+`"`)
	header.Set(echo.HeaderCacheControl, "private, no-store")
	header.Set(echo.HeaderXContentTypeOptions, "nosniff")
	c.Response().WriteHeader(http.StatusOK)
}

// requestPages returns the pages of a list, of which the first is read already.
func (h exchangeHandler) requestPages(ctx context.Context, workspace tenants.WorkspaceID, filter tenants.ExchangeFilter, first []tenants.Exchange, next string) iter.Seq2[[]tenants.Exchange, error] {
	return func(yield func([]tenants.Exchange, error) bool) {
		page, err := first, error(nil)
		for yield(page, err) && err == nil && next != "" {
			filter.Cursor = next
			page, next, err = h.exchanges.Exchanges(ctx, workspace, filter)
		}
	}
}

// requestColumns are the heading of a download.
func requestColumns() []string {
	return []string{
		"at", "id", "session", "lane", "client", "model", "key", "provider", "provider_key", "endpoint", "class", "stream", "status",
		"error_from", "error_type", "compression", "tokens_received", "tokens_sent", "input", "cache_read", "cache_write", "output",
		"overhead_ms", "ttfb_ms", "duration_ms", "attempts", "cost_usd", "net_usd", "miss_cause", "missed_tokens", "modules", "tags", "reach",
	}
}

// writeRequestsCSV writes pages as CSV (RFC 4180) with a heading, at most maxRequestsCSV
// rows. A cell that a spreadsheet would take for a formula begins with an apostrophe.
func writeRequestsCSV(w io.Writer, pages iter.Seq2[[]tenants.Exchange, error]) error {
	out := csv.NewWriter(w)
	out.UseCRLF = true
	if err := out.Write(requestColumns()); err != nil {
		return fmt.Errorf("write requests: %w", err)
	}
	rows := 0
	for page, err := range pages {
		for i := 0; err == nil && i < len(page) && rows < maxRequestsCSV; i++ {
			err = out.Write(requestCells(&page[i]))
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

// requestCells returns a row of a download.
func requestCells(e *tenants.Exchange) []string {
	var modules, tags []string
	for _, module := range modulesOf(e.Report) {
		modules = append(modules, module.Name+":"+module.Outcome)
	}
	for _, tag := range e.Tags.List() {
		tags = append(tags, tag.String())
	}
	number := strconv.Itoa
	cell := tenants.CSVCell
	return []string{
		e.At.UTC().Format(time.RFC3339Nano), e.ID.String(), tenants.CSVID(e.Session), tenants.CSVID(e.Lane), cell(e.Client), cell(e.Model), e.APIKey.String(),
		cell(string(e.Provider)), tenants.CSVID(e.ProviderKey), cell(e.Endpoint), cell(e.Class), strconv.FormatBool(e.Stream), number(e.Status),
		cell(e.ErrorFrom), cell(e.ErrorType), cell(e.Compression), number(e.TokensBefore), number(e.TokensAfter),
		number(e.Input), number(e.CacheRead), number(e.CacheWrite), number(e.Output),
		millisCell(e.Overhead), millisCell(e.TTFB), millisCell(e.Duration), number(e.Attempts),
		dollars(e.CostMicroUSD), dollars(e.NetMicroUSD), cell(e.MissCause), number(e.MissedTokens),
		cell(strings.Join(modules, " ")), cell(strings.Join(tags, " ")), strconv.FormatBool(e.Reach),
	}
}

func millisCell(d time.Duration) string { return strconv.FormatFloat(milliseconds(d), 'f', -1, 64) }

// dollars writes millionths of a US dollar as a number.
func dollars(micro int64) string { return strconv.FormatFloat(float64(micro)/1e6, 'f', 6, 64) }
