package main

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"

	"palimpsest/api/manage"
)

// newEcho returns the router that all parts add their routes to.
func newEcho(log *slog.Logger, address echo.IPExtractor) *echo.Echo {
	e := echo.New()
	e.IPExtractor = address
	e.HideBanner, e.HidePort = true, true
	e.Logger.SetOutput(io.Discard) // what happens is in our own log
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

// clientAddress returns what tells the address of a request's client: who is
// connected or, behind proxies of trusted networks, whom the last of them names.
// Anybody can write X-Forwarded-For: without such networks it is not read.
func (p *program) clientAddress() echo.IPExtractor {
	trusted, err := readNetworks(p.config.TrustedProxies)
	if err != nil || len(trusted) == 0 {
		return echo.ExtractIPDirect()
	}
	options := []echo.TrustOption{echo.TrustLoopback(false), echo.TrustLinkLocal(false), echo.TrustPrivateNet(false)}
	for _, network := range trusted {
		options = append(options, echo.TrustIPRange(network))
	}
	return echo.ExtractIPFromXFFHeader(options...)
}

// welcome tells a person at a terminal where to go.
func (p *program) welcome(w io.Writer) {
	fmt.Fprintf(w, "\nPalimpsest runs at %s\nSign up at %s/signup, store a provider key, create an API key, and point a client at it.\n\n",
		p.reachable(), p.reachable())
}

// reachable returns where people and clients reach the product.
func (p *program) reachable() string {
	if p.config.PublicURL != "" {
		return strings.TrimRight(p.config.PublicURL, "/")
	}
	host, port, err := net.SplitHostPort(p.listening)
	if ip := net.ParseIP(host); err == nil && ip != nil && ip.IsUnspecified() {
		return "http://" + net.JoinHostPort("localhost", port)
	}
	return "http://" + p.listening
}
