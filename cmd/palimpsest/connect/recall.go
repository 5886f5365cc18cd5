package connect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Recall is an MCP server on a client's standard input and output. It forwards every message to the recall
// tools of the proxy, with the key, so that no client's file has to hold the key.
func Recall(ctx context.Context, server, key string, in io.Reader, out io.Writer) error {
	local, err := (&mcp.IOTransport{Reader: io.NopCloser(in), Writer: unclosed{out}}).Connect(ctx)
	if err != nil {
		return err
	}
	remote, err := (&mcp.StreamableClientTransport{
		Endpoint: server + "/mcp", HTTPClient: &http.Client{Transport: withKey{key}}, DisableStandaloneSSE: true,
	}).Connect(ctx)
	if err != nil {
		return fmt.Errorf("connect to %s: %w", server, err)
	}
	ctx, stop := context.WithCancel(ctx)
	ended := make(chan error, 2)
	pass := func(from, to mcp.Connection) {
		for {
			message, err := from.Read(ctx)
			if err == nil {
				err = to.Write(ctx, message)
			}
			if err != nil {
				ended <- err
				return
			}
		}
	}
	go pass(local, remote)
	go pass(remote, local)
	err = <-ended
	stop()
	return errors.Join(ignoreEnd(err), ignoreEnd(remote.Close()), ignoreEnd(local.Close()))
}

// ignoreEnd returns nil if a client has simply ended its input.
func ignoreEnd(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, context.Canceled) || errors.Is(err, mcp.ErrConnectionClosed) {
		return nil
	}
	return err
}

// withKey adds an API key to requests.
type withKey struct{ key string }

// RoundTrip sends a request.
func (w withKey) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	request.Header.Set("Authorization", "Bearer "+w.key)
	return http.DefaultTransport.RoundTrip(request)
}

// unclosed is an output that stays open when its writer closes it.
type unclosed struct{ io.Writer }

// Close keeps the output open.
func (unclosed) Close() error { return nil }
