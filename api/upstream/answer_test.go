package upstream_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"palimpsest/api/upstream"
)

const refusal = `{"type":"error","error":{"type":"rate_limit_error","message":"slow down"}}`

// A provider that answers before it has read the body breaks no answer, whether
// it reads on, ends its side or just closes.
func TestQuickAnswersArriveWhole(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		after    func(*net.TCPConn, io.Reader)
		size     int
		requests int
	}{
		"reads on":            {func(_ *net.TCPConn, rest io.Reader) { _, _ = io.Copy(io.Discard, rest) }, 800 << 10, 400},
		"ends its side":       {func(c *net.TCPConn, rest io.Reader) { _ = c.CloseWrite(); _, _ = io.Copy(io.Discard, rest) }, 800 << 10, 400},
		"closes":              {func(*net.TCPConn, io.Reader) {}, 800 << 10, 800},
		"closes, small":       {func(*net.TCPConn, io.Reader) {}, 1 << 10, 800},
		"closes, medium":      {func(*net.TCPConn, io.Reader) {}, 100 << 10, 800},
		"closes, the largest": {func(*net.TCPConn, io.Reader) {}, 8 << 20, 80},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := hasty(t, test.after)
			if broken := hammer(t, "http://"+address, test.size, test.requests); broken != 0 {
				t.Errorf("%d of %d answers were broken", broken, test.requests)
			}
		})
	}
}

func TestQuickAnswersOfAServerThatKeepsConnectionsArriveWhole(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = io.WriteString(w, refusal)
	}))
	t.Cleanup(server.Close)

	for _, size := range []int{1 << 10, 100 << 10} {
		if broken := hammer(t, server.URL, size, 1600); broken != 0 {
			t.Errorf("%d of 1600 answers to %d bytes were broken", broken, size)
		}
	}
}

// hasty listens for requests and answers each after its head, then does what
// after says. It returns its address.
func hasty(t *testing.T, after func(*net.TCPConn, io.Reader)) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var connections sync.WaitGroup
	connections.Go(func() {
		for {
			accepted, err := listener.Accept()
			if err != nil {
				return
			}
			connections.Go(func() {
				defer accepted.Close()
				reader := bufio.NewReaderSize(accepted, 1024)
				for line := "-"; line != "\r\n"; {
					if line, err = reader.ReadString('\n'); err != nil {
						return
					}
				}
				_, _ = fmt.Fprintf(accepted, "HTTP/1.1 429 Too Many Requests\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", len(refusal), refusal)
				after(accepted.(*net.TCPConn), reader)
			})
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		connections.Wait()
	})
	return listener.Addr().String()
}

// hammer sends requests from eight sides and returns how many answers were broken.
func hammer(t *testing.T, url string, size, requests int) int32 {
	t.Helper()
	client := upstream.New(true)
	defer client.Close()
	body := bytes.Repeat([]byte("a"), size)
	var workers sync.WaitGroup
	var broken atomic.Int32
	for range 8 {
		workers.Go(func() {
			for range requests / 8 {
				response, err := client.Send(t.Context(), upstream.Request{Method: http.MethodPost, Path: "/v1/messages", Header: http.Header{}, Body: body}, upstream.Target{BaseURL: url})
				if err != nil {
					broken.Add(1)
					continue
				}
				content, err := io.ReadAll(response.Body)
				_ = response.Body.Close()
				if err != nil || string(content) != refusal || response.StatusCode != http.StatusTooManyRequests {
					broken.Add(1)
				}
			}
		})
	}
	workers.Wait()
	return broken.Load()
}

// A provider that hangs up without an answer is no success.
func TestNoAnswerIsUnreachable(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	t.Cleanup(server.Close)
	client := upstream.New(true)

	for _, size := range []int{0, 1 << 10, 4 << 20} {
		_, err := client.Send(t.Context(), upstream.Request{Method: http.MethodPost, Path: "/v1/messages?key=secret", Header: http.Header{}, Body: make([]byte, size)}, upstream.Target{BaseURL: server.URL, Key: providerKey})
		if !errors.Is(err, upstream.ErrUnreachable) || strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), providerKey) {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
}

func TestConnectionsAreUsedAgain(t *testing.T) {
	t.Parallel()
	var opened atomic.Int32
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		content, _ := io.ReadAll(request.Body)
		_, _ = w.Write(content)
	}))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			opened.Add(1)
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	client := upstream.New(true)

	for i := range 50 {
		body := bytes.Repeat([]byte{byte(i)}, 100<<10)
		response, err := client.Send(t.Context(), upstream.Request{Method: http.MethodPost, Path: "/v1/messages", Header: http.Header{}, Body: body}, upstream.Target{BaseURL: server.URL})
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err != nil || !bytes.Equal(content, body) {
			t.Fatalf("request %d: %d bytes came back: %v", i, len(content), err)
		}
	}
	// One would do, but a connection whose writer has not come round 50 ms after the
	// answer is abandoned.
	if opened.Load() > 5 {
		t.Errorf("%d connections were opened for 50 requests", opened.Load())
	}
}

func TestBodyHasItsLengthAndEncodingHeadersAreTrue(t *testing.T) {
	t.Parallel()
	type arrival struct {
		length   int64
		transfer []string
		path     string
		content  string
	}
	arrived := make(chan arrival, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) {
		content, _ := io.ReadAll(request.Body)
		arrived <- arrival{request.ContentLength, request.TransferEncoding, request.RequestURI, string(content)}
	}))
	t.Cleanup(server.Close)

	// W10: what said how the client's body was encoded is gone with its encoding.
	header := http.Header{"Content-Encoding": {"gzip"}, "Content-Length": {"7"}, "Transfer-Encoding": {"chunked"}}
	response, err := upstream.New(true).Send(t.Context(), upstream.Request{Method: http.MethodPost, Path: "/v1/messages?beta=true", Header: header, Body: []byte(`{"model":"m"}`)}, upstream.Target{BaseURL: server.URL + "/proxy/v1/"})
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	got := <-arrived
	if got.length != 13 || got.transfer != nil || got.content != `{"model":"m"}` || got.path != "/proxy/v1/messages?beta=true" {
		t.Errorf("arrived: %+v", got)
	}
}
