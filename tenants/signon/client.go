package signon

import (
	"io"
	"net"
	"net/http"
	"time"

	"palimpsest/tenants/guard"
)

const (
	askTimeout = 10 * time.Second
	maxAnswer  = 1 << 20 // bytes read of an answer
)

// NewClient returns a client for identity providers, limited to the addresses that by allows: 10 seconds for
// an answer of at most 1 MiB, no redirects.
func NewClient(by *guard.Guard) *http.Client {
	dialer := &net.Dialer{Timeout: askTimeout, Control: by.Control}
	return &http.Client{
		Timeout: askTimeout,
		Transport: bounded{&http.Transport{
			DialContext: dialer.DialContext, TLSHandshakeTimeout: askTimeout, ResponseHeaderTimeout: askTimeout, IdleConnTimeout: askTimeout,
			MaxResponseHeaderBytes: maxAnswer, ForceAttemptHTTP2: true,
		}},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// bounded truncates answers.
type bounded struct{ transport *http.Transport }

// RoundTrip implements http.RoundTripper.
func (b bounded) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := b.transport.RoundTrip(request)
	if err == nil {
		response.Body = body{io.LimitReader(response.Body, maxAnswer), response.Body}
	}
	return response, err
}

// body is the beginning of an answer.
type body struct {
	io.Reader
	io.Closer
}
