package layout

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/labstack/echo/v4"
)

const (
	// smallest is what fits into one packet: zipped it would not come sooner.
	smallest = 1400
	// zipLevel makes a sixth of a list of 110 KB; a quicker one leaves pages a tenth larger.
	zipLevel = 6
)

// write answers with HTML, zipped where the browser takes that. No page holds a secret
// that stands beside what an address can put into it, so that its length tells nothing.
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
