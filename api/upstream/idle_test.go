package upstream

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"palimpsest/tenants"
)

// closer is a server that answers the first request of each connection and closes it: at once, or after a
// byte of the next request. closed tells of each connection.
func closer(t *testing.T, reads bool) (base string, requests *atomic.Int32, closed <-chan struct{}) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	requests = &atomic.Int32{}
	tell := make(chan struct{}, 8)
	go func() {
		for {
			accepted, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() {
					_ = accepted.Close()
					tell <- struct{}{}
				}()
				reader := bufio.NewReader(accepted)
				request, err := http.ReadRequest(reader)
				if err != nil {
					return
				}
				_, _ = io.Copy(io.Discard, request.Body)
				requests.Add(1)
				_, _ = io.WriteString(accepted, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
				if reads {
					_, _ = reader.ReadByte()
					requests.Add(1)
				}
			}()
		}
	}()
	return "http://" + listener.Addr().String(), requests, tell
}

// W54: a POST that a provider closes its connection on is sent again if no byte of it was read, and
// not if one was.
func TestARequestOfWhichNothingWasReadIsSentAgain(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		reads    bool
		requests int32
	}{
		"closed before": {false, 2}, "closed after a byte": {true, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			base, requests, closed := closer(t, test.reads)
			client := New(true)
			t.Cleanup(client.Close)
			send := func() error {
				var begun atomic.Bool
				response, err := client.Send(t.Context(), Request{Method: http.MethodPost, Path: "/v1/messages", Body: []byte(strings.Repeat("x", 1000)), Begun: &begun},
					Target{Provider: tenants.ProviderAnthropic, BaseURL: base})
				if err != nil {
					if !begun.Load() {
						t.Error("the request is taken to have never come")
					}
					return err
				}
				defer response.Body.Close()
				_, err = io.Copy(io.Discard, response.Body)
				return err
			}
			if err := send(); err != nil {
				t.Fatal(err)
			}
			if !test.reads {
				<-closed // with the next request unread, it would reset the connection
			}
			if err := send(); (err != nil) != test.reads {
				t.Errorf("the second request: %v", err)
			}
			if got := requests.Load(); got != test.requests {
				t.Errorf("%d requests came", got)
			}
		})
	}
}

// W54: what the provider's system had taken before the end decides, and not whether it was written.
func TestConnectionKnowsWhetherARequestWasRead(t *testing.T) {
	t.Parallel()
	for ends, want := range map[string]bool{"closed before": true, "reset": false, "read": false, "reset while idle": true} {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = listener.Close() })
		dialled, err := net.Dial("tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		peer, err := listener.Accept()
		if err != nil {
			t.Fatal(err)
		}
		c := &conn{Conn: dialled}
		c.begin()
		if _, err := c.Write([]byte("first")); err != nil {
			t.Fatal(err)
		}
		buffer := make([]byte, 5)
		if _, err := io.ReadFull(peer, buffer); err != nil {
			t.Fatal(err)
		}
		if _, err := peer.Write([]byte("ok")); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(c, buffer[:2]); err != nil {
			t.Fatal(err)
		}
		if ends == "reset while idle" {
			_ = peer.(*net.TCPConn).SetLinger(0)
			_ = peer.Close()
			if _, err := c.Read(buffer); err == nil {
				t.Fatal("the connection goes on")
			}
			_ = c.Close()
		}
		use := c.begin()
		switch ends {
		case "closed before":
			_ = peer.Close()
		case "reset":
			_ = peer.(*net.TCPConn).SetLinger(0)
			_ = peer.Close()
		}
		if ends == "closed before" || ends == "read" { // after a reset, a write would take the error that reading reports
			if _, err := c.Write([]byte("again")); err != nil {
				t.Fatal(err)
			}
		}
		if ends == "read" {
			if _, err := io.ReadFull(peer, buffer); err != nil {
				t.Fatal(err)
			}
			_ = peer.Close()
		}
		if _, err := c.Read(buffer); err == nil {
			t.Fatal("the connection goes on")
		}
		if c.isUnread(use) != want {
			t.Errorf("%s: unread is %t", ends, c.isUnread(use))
		}
	}
}

// W54: a connection ends itself before the provider does, and not under a request.
func TestIdleConnectionEndsItselfAndARunningRequestDoesNot(t *testing.T) {
	t.Parallel()
	ours, peer := net.Pipe()
	t.Cleanup(func() { _ = peer.Close() })
	c := &conn{Conn: ours}
	first := c.begin()
	second := c.begin()
	c.rest(first) // the first request's word comes late
	if c.idle {
		t.Error("a connection in use rests")
	}
	c.rest(second)
	_ = c.SetReadDeadline(time.Now())
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) || !c.expired {
		t.Errorf("at rest: %v", err)
	}
	c.begin()
	if n, err := c.Write([]byte("next")); n != 0 || err == nil {
		t.Errorf("%d bytes written on a connection that has ended itself", n)
	}

	fresh := &conn{Conn: ours}
	fresh.begin()
	_ = ours.SetReadDeadline(time.Now()) // that of a rest that is over
	go func() {
		_ = ours.SetReadDeadline(time.Time{})
		_, _ = peer.Write([]byte("x"))
	}()
	if n, err := fresh.Read(make([]byte, 1)); n != 1 || err != nil {
		t.Errorf("under a request: %d bytes, %v", n, err)
	}
}

// W51: there is no end of waiting but the target's own, and it tells what it is.
func TestWaitOfATargetEndsWithItsOwnError(t *testing.T) {
	t.Parallel()
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}))
	t.Cleanup(silent.Close)
	client := New(true)
	t.Cleanup(client.Close)
	if client.open.ResponseHeaderTimeout != 0 || client.guarded.ResponseHeaderTimeout != 0 {
		t.Error("there is a fixed end of waiting")
	}
	var begun atomic.Bool
	_, err := client.Send(t.Context(), Request{Method: http.MethodPost, Path: "/v1/messages", Body: []byte("{}"), Begun: &begun},
		Target{Provider: tenants.ProviderAnthropic, BaseURL: silent.URL, Wait: time.Second})
	if !errors.Is(err, ErrLate) {
		t.Errorf("too late: %v", err)
	}
}

// W51: the wait is for the beginning of an answer. The rest may take longer.
func TestWaitEndsWithTheBeginningOfAnAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		waiting, answered := within(t.Context(), time.Minute)
		answered()
		late, _ := within(t.Context(), time.Minute)
		<-time.NewTimer(time.Hour).C
		if waiting.Err() != nil || !errors.Is(context.Cause(late), ErrLate) {
			t.Errorf("answered: %v, not answered: %v", waiting.Err(), context.Cause(late))
		}
		if endless, _ := within(t.Context(), 0); endless != t.Context() {
			t.Error("no wait has an end")
		}
	})
}
