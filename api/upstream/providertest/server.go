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

// BedrockServer is a listening double of Amazon Bedrock.
type BedrockServer struct {
	*providerdouble.Bedrock

	// URL is the server's address, "http://127.0.0.1:port".
	URL string
}

// NewBedrock serves a double of Amazon Bedrock on a free port of 127.0.0.1 until the test ends.
func NewBedrock(t testing.TB, config providerdouble.BedrockConfig) *BedrockServer {
	t.Helper()
	double := providerdouble.NewBedrock(config)
	url, stop, err := double.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatalf("start double of Amazon Bedrock: %v", err)
	}
	t.Cleanup(stop)
	return &BedrockServer{Bedrock: double, URL: url}
}

// CloudServer is a listening double of the clouds.
type CloudServer struct {
	*providerdouble.Cloud

	// URL is the server's address, "http://127.0.0.1:port".
	URL string
}

// NewCloud serves a double of the clouds on a free port of 127.0.0.1 until the test ends.
func NewCloud(t testing.TB, config providerdouble.CloudConfig) *CloudServer {
	t.Helper()
	double, err := providerdouble.NewCloud(config)
	if err != nil {
		t.Fatalf("make double of the clouds: %v", err)
	}
	url, stop, err := double.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatalf("start double of the clouds: %v", err)
	}
	t.Cleanup(stop)
	return &CloudServer{Cloud: double, URL: url}
}
