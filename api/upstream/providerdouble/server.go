package providerdouble

import (
	"context"
	"errors"
	"io"
	stdlog "log"
	"net"
	"net/http"
	"time"
)

// Listen serves the double on an address and returns its URL. stop ends it, including answers under way, and
// waits until the listener is closed.
func (d *Double) Listen(address string) (url string, stop func(), err error) {
	return listen(d, address)
}

// listen serves a handler on an address and returns its URL, until stop is called.
func listen(handler http.Handler, address string) (url string, stop func(), err error) {
	var config net.ListenConfig
	listener, err := config.Listen(context.Background(), "tcp", address)
	if err != nil {
		return "", nil, err
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute, ErrorLog: stdlog.New(io.Discard, "", 0)}
	stopped := make(chan error, 1)
	go func() { stopped <- server.Serve(listener) }()
	stop = func() {
		_ = server.Close()
		if ended := <-stopped; !errors.Is(ended, http.ErrServerClosed) {
			panic("providerdouble: serve: " + ended.Error())
		}
	}
	return "http://" + listener.Addr().String(), stop, nil
}
