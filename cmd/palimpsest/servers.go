package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"syscall"
	"time"

	"palimpsest/api/connections"
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
	ending *ending
	guard  *guard.Guard // learns the addresses
	failed chan error   // a server that ended on its own

	headers time.Duration // to send a request's headers
}

func newServers(log *slog.Logger, ending *ending, learns *guard.Guard) servers {
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
	s.ending.onClose(func() { _ = listener.Close() }) // a second time where a server has done so
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
