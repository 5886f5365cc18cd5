package connections

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"
)

// slowly is a body of which each read brings so many bytes after so long, on a clock of
// its own.
type slowly struct {
	now      time.Time
	deadline time.Time
	size     int // still to come
	each     int
	after    time.Duration
}

func (s *slowly) Now() time.Time { return s.now }

func (s *slowly) SetReadDeadline(at time.Time) error {
	s.deadline = at
	return nil
}

func (s *slowly) Read(into []byte) (int, error) {
	if s.size == 0 {
		return 0, io.EOF
	}
	if next := s.now.Add(s.after); !s.deadline.IsZero() && next.After(s.deadline) {
		s.now = s.deadline
		return 0, os.ErrDeadlineExceeded
	}
	s.now = s.now.Add(s.after)
	n := min(s.each, s.size, len(into))
	s.size -= n
	return n, nil
}

func (s *slowly) Close() error { return nil }

// S18, S39: a body that trickles is cut off, however long or short it is; one that keeps coming
// is read to its end, however long that takes.
func TestBodyMustKeepComing(t *testing.T) {
	t.Parallel()
	const mega = 1 << 20
	for name, test := range map[string]struct {
		body slowly
		cut  bool
	}{
		"a byte every 29 seconds":        {slowly{size: 1000, each: 1, after: 29 * time.Second}, true},
		"a byte a second":                {slowly{size: mega, each: 1, after: time.Second}, true},
		"nothing":                        {slowly{size: 1, each: 1, after: time.Hour}, true},
		"a stop in the middle":           {slowly{size: mega, each: mega / 2, after: 31 * time.Second}, true},
		"small and at once":              {slowly{size: 100, each: 100, after: 0}, false},
		"small and late":                 {slowly{size: 100, each: 50, after: 14 * time.Second}, false},
		"an hour of a slow line":         {slowly{size: 4 * mega, each: 1200, after: time.Second}, false},
		"a large upload over many hours": {slowly{size: 500 * mega, each: 64 << 10, after: 20 * time.Second}, false},
	} {
		clock := test.body
		clock.now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		began := clock.now
		_, err := io.Copy(io.Discard, newPaced(&clock, clock.Now, clock.SetReadDeadline))
		if errors.Is(err, ErrSlow) != test.cut || err != nil && !errors.Is(err, ErrSlow) {
			t.Errorf("%s: %v", name, err)
		}
		if took := clock.now.Sub(began); test.cut && took > 2*patience {
			t.Errorf("%s: cut off after %s", name, took)
		}
		if !test.cut && !clock.deadline.IsZero() {
			t.Errorf("%s: the deadline stays at the end of the body, where the server looks for the client's leaving", name)
		}
	}
}

// Time in which nobody reads the body does not count: a provider may take its time.
// S39
func TestWaitingForTheReaderDoesNotCount(t *testing.T) {
	t.Parallel()
	clock := slowly{size: 200, each: 1, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	body := newPaced(&clock, clock.Now, clock.SetReadDeadline)
	for range 200 {
		clock.now = clock.now.Add(time.Hour)
		if _, err := body.Read(make([]byte, 10)); err != nil {
			t.Fatal(err)
		}
	}
}

// S18, S39: what a handler leaves unread is read by the server, before the answer goes out: that
// does not wait without end either.
func TestUnreadBodyHasADeadline(t *testing.T) {
	t.Parallel()
	clock := slowly{size: 200, each: 1, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	newPaced(&clock, clock.Now, clock.SetReadDeadline)
	if want := clock.now.Add(patience); !clock.deadline.Equal(want) {
		t.Errorf("the deadline is %s, want %s", clock.deadline, want)
	}
}

// A client that waits for leave to send its body, and is refused, has its connection closed at once.
func TestRefusedClientThatWaitsForLeaveIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(PaceBodies(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
	})))
	t.Cleanup(server.Close)
	client, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	_ = client.SetDeadline(time.Now().Add(15 * time.Second)) // half of what a body is waited for
	if _, err := io.WriteString(client, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\nExpect: 100-continue\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if answer, err := io.ReadAll(client); err != nil || !strings.Contains(string(answer), "401") {
		t.Errorf("%q, %v", answer, err)
	}
}
