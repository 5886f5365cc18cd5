// Package providertest serves the provider double to tests.
package providertest

import (
	"testing"

	"palimpsest/api/upstream/providerdouble"
)

// Server is a listening double.
type Server struct {
	*providerdouble.Double

	// URL is the server's address, "http://127.0.0.1:port".
	URL string
}

// NewServer serves a double on a free port of 127.0.0.1 until the test ends.
func NewServer(t testing.TB, config providerdouble.Config) *Server {
	t.Helper()
	double := providerdouble.NewHandler(config)
	url, stop, err := double.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatalf("start provider double: %v", err)
	}
	t.Cleanup(stop)
	return &Server{Double: double, URL: url}
}
