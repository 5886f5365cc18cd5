package manage

import (
	_ "embed"
	"net/http"

	"github.com/labstack/echo/v4"
)

//go:embed openapi.yaml
var openAPIDocument []byte //nolint:gochecknoglobals // a file of the program, never changed

func openAPI(c echo.Context) error {
	return c.Blob(http.StatusOK, "application/yaml", openAPIDocument)
}
