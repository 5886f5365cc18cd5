package providertest

import (
	"context"
	"errors"
	"io"
	stdlog "log"
	"net"
	"net/http"
	"time"
)

// TB is what NewServer needs of a test; testing.TB is one.
type TB interface {
	Helper()
	Cleanup(func())
	Fatalf(format string, args ...any)
}

// Server is a double that listens.
type Server struct {
	*Double

	// URL is the server's address, "http://127.0.0.1:port".
	URL string
}

// NewServer serves a double on a free port of 127.0.0.1 until the test ends.
func NewServer(t TB, config Config) *Server {
	t.Helper()
	double := NewHandler(config)
	url, stop, err := double.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatalf("start provider double: %v", err)
	}
	t.Cleanup(stop)
	return &Server{Double: double, URL: url}
}

// Listen serves the double on an address and returns its URL. stop ends it,
// answers under way included, and waits for the listener to be gone.
func (d *Double) Listen(address string) (url string, stop func(), err error) {
	var config net.ListenConfig
	listener, err := config.Listen(context.Background(), "tcp", address)
	if err != nil {
		return "", nil, err
	}
	server := &http.Server{Handler: d, ReadHeaderTimeout: time.Minute, ErrorLog: stdlog.New(io.Discard, "", 0)}
	stopped := make(chan error, 1)
	go func() { stopped <- server.Serve(listener) }()
	stop = func() {
		_ = server.Close()
		if ended := <-stopped; !errors.Is(ended, http.ErrServerClosed) {
			panic("providertest: serve: " + ended.Error())
		}
	}
	return "http://" + listener.Addr().String(), stop, nil
}
