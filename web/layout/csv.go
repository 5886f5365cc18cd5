package layout

import (
	"encoding/csv"
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
