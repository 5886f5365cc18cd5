package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"syscall"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"

	"palimpsest/api/connections"
	"palimpsest/api/manage"
	"palimpsest/cmd/palimpsest/settings"
	"palimpsest/cmd/palimpsest/setup"
	"palimpsest/tenants/guard"
)

const (
	headerTimeout = 10 * time.Second // to send a request's headers
	idleTimeout   = 2 * time.Minute  // between requests of a connection
	maxHeader     = 64 << 10         // bytes of a request's headers
)

// servers answer requests on the program's addresses.
type servers struct {
	log    *slog.Logger
	ending *setup.Ending
	guard  *guard.Guard // learns the addresses
	failed chan error   // a server that ended on its own

	headers time.Duration // to send a request's headers
}

func newServers(log *slog.Logger, ending *setup.Ending, learns *guard.Guard) servers {
	return servers{log: log, ending: ending, guard: learns, failed: make(chan error, 2), headers: headerTimeout}
}

// listen listens on the address of a setting.
func listen(ctx context.Context, setting, address string) (net.Listener, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		err = fmt.Errorf("%w; end what listens there, or set another address", err)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", setting, err)
	}
	return listener, nil
}

// listen listens on the address of a setting until the program ends.
func (s servers) listen(ctx context.Context, setting, address string) (net.Listener, error) {
	listener, err := listen(ctx, setting, address)
	if err != nil {
		return nil, err
	}
	s.guard.Own(listener.Addr())
	s.ending.OnClose(func() { _ = listener.Close() }) // a second time where a server has done so
	return listener, nil
}

// serve answers the requests that come in on a listener.
func (s servers) serve(listener net.Listener, handler http.Handler) *http.Server {
	server := &http.Server{
		Handler: connections.PaceBodies(handler), ConnContext: connections.Context, ConnState: connections.State, ReadHeaderTimeout: s.headers, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelWarn),
	}
	go func() { // ends when stop and close end the server
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			s.failed <- fmt.Errorf("serve %s: %w", listener.Addr(), err)
		}
	}()
	return server
}

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
func clientAddress(serving settings.Serving) echo.IPExtractor {
	trusted, err := settings.ReadNetworks(serving.TrustedProxies)
	if err != nil || len(trusted) == 0 {
		return echo.ExtractIPDirect()
	}
	options := []echo.TrustOption{echo.TrustLoopback(false), echo.TrustLinkLocal(false), echo.TrustPrivateNet(false)}
	for _, network := range trusted {
		options = append(options, echo.TrustIPRange(network))
	}
	return echo.ExtractIPFromXFFHeader(options...)
}
