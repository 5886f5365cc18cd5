package layout

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"log/slog"
	"net/http"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/labstack/echo/v4"
)

// CSV begins a response with a CSV file (RFC 4180) and returns the writer of its rows. The status has been
// sent by then, so a later error can only end the response early.
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

// CSVPages answers with a list, read page by page, as a file with a heading. It ends after the page that
// reaches most rows. next returns the rows of the next page and whether there is another. An error of the
// first page is the response's error; a later one ends the file early.
func CSVPages(c echo.Context, log *slog.Logger, name string, heading []string, most int, next func() (rows [][]string, more bool, err error)) error {
	rows, more, err := next()
	if err != nil {
		return err
	}
	out := CSV(c, name)
	_ = out.Write(heading) // WriteAll returns the error
	for written := 0; ; {
		if err := out.WriteAll(rows); err != nil {
			return fmt.Errorf("write %s: %w", name, err) // the client no longer reads the file
		}
		if written += len(rows); !more || written >= most {
			return nil
		}
		if rows, more, err = next(); err != nil {
			log.ErrorContext(c.Request().Context(), "file is cut off", "file", name, "error", err)
			// The status has been sent, so only a broken connection can signal the missing part.
			panic(http.ErrAbortHandler)
		}
	}
}

const (
	// smallest is the size of one packet. A smaller response would not arrive sooner with gzip.
	smallest = 1400
	// zipLevel reduces a list of 110 KB to a sixth; a faster level leaves pages a tenth larger.
	zipLevel = 6
)

// write answers with HTML, with gzip if the browser accepts it. The length reveals no secret, because no page
// contains both a secret and text from the address.
func write(c echo.Context, status int, html []byte) error {
	header := c.Response().Header()
	header.Add("Vary", echo.HeaderAcceptEncoding)
	if len(html) < smallest || !strings.Contains(c.Request().Header.Get(echo.HeaderAcceptEncoding), "gzip") {
		return c.HTMLBlob(status, html)
	}
	var zipped bytes.Buffer
	writer, err := gzip.NewWriterLevel(&zipped, zipLevel)
	if err == nil {
		_, err = writer.Write(html)
	}
	if err == nil {
		err = writer.Close()
	}
	if err != nil {
		return echo.NewHTTPError(http.StatusInternalServerError).SetInternal(fmt.Errorf("zip page: %w", err))
	}
	header.Set(echo.HeaderContentEncoding, "gzip")
	return c.HTMLBlob(status, zipped.Bytes())
}
