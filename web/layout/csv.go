package layout

import (
	"encoding/csv"
	"fmt"
	"log/slog"
	"net/http"

	"github.com/labstack/echo/v4"
)

// CSV begins an answer that is a file of CSV (RFC 4180) and returns what writes its
// rows. The status has gone out then: what fails afterwards can only break it off.
func CSV(c echo.Context, name string) *csv.Writer {
	header := c.Response().Header()
	header.Set(echo.HeaderContentType, "text/csv; charset=utf-8")
	header.Set(echo.HeaderContentDisposition, `attachment; filename="`+name+`"`)
	header.Set(echo.HeaderCacheControl, "private, no-store")
	c.Response().WriteHeader(http.StatusOK)
	out := csv.NewWriter(c.Response())
	out.UseCRLF = true
	return out
}

// CSVPages answers a list that is read page by page as a file with a heading, and ends it
// behind the page with which it has so many rows as most. next returns the rows of the next
// page and whether there is one after it. What fails at the first page is the answer's
// error; later the file is broken off.
func CSVPages(c echo.Context, log *slog.Logger, name string, heading []string, most int, next func() (rows [][]string, more bool, err error)) error {
	rows, more, err := next()
	if err != nil {
		return err
	}
	out := CSV(c, name)
	_ = out.Write(heading) // WriteAll tells what went wrong
	for written := 0; ; {
		if err := out.WriteAll(rows); err != nil {
			return fmt.Errorf("write %s: %w", name, err) // nobody takes the file
		}
		if written += len(rows); !more || written >= most {
			return nil
		}
		if rows, more, err = next(); err != nil {
			log.ErrorContext(c.Request().Context(), "file is cut off", "file", name, "error", err)
			// The status has gone out: only a broken connection tells that something is missing.
			panic(http.ErrAbortHandler)
		}
	}
}
