package main

import (
	"io"
	"log/slog"
	"net/http"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"

	"palimpsest/api/manage"
)

// newEcho returns the router that all parts add their routes to.
func newEcho(log *slog.Logger, address echo.IPExtractor) *echo.Echo {
	e := echo.New()
	e.IPExtractor = address
	e.HideBanner, e.HidePort = true, true
	e.Logger.SetOutput(io.Discard) // our own log records everything
	e.Pre(manage.Headers)
	e.Use(middleware.RecoverWithConfig(middleware.RecoverConfig{
		DisableStackAll: true, DisablePrintStack: true,
		LogErrorFunc: func(c echo.Context, err error, stack []byte) error {
			log.Error("handler panicked", "path", c.Path(), "error", err, "stack", string(stack))
			return echo.NewHTTPError(http.StatusInternalServerError)
		},
	}))
	return e
}

// clientAddress returns the extractor of a client's address: the connected peer or, behind trusted proxies,
// the address that the last of them names. Without trusted networks it ignores X-Forwarded-For, because
// anyone can write that header.
func (c Config) clientAddress() echo.IPExtractor {
	trusted, err := readNetworks(c.TrustedProxies)
	if err != nil || len(trusted) == 0 {
		return echo.ExtractIPDirect()
	}
	options := []echo.TrustOption{echo.TrustLoopback(false), echo.TrustLinkLocal(false), echo.TrustPrivateNet(false)}
	for _, network := range trusted {
		options = append(options, echo.TrustIPRange(network))
	}
	return echo.ExtractIPFromXFFHeader(options...)
}
