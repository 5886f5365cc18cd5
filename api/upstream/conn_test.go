package upstream

import (
	"errors"
	"net"
	"syscall"
	"testing"
)

// closing is a connection whose peer closes after some writes.
type closing struct {
	net.Conn

	writes int
}

// Write implements io.Writer.
func (c *closing) Write(p []byte) (int, error) {
	if c.writes--; c.writes < 0 {
		return 0, syscall.ECONNRESET
	}
	return len(p), nil
}

func TestWhatAProviderNoLongerTakesCountsAsWritten(t *testing.T) {
	t.Parallel()
	c := &conn{Conn: &closing{writes: 2}}

	for i := range 5 {
		if n, err := c.Write([]byte("part")); n != 4 || err != nil {
			t.Errorf("write %d: %d bytes, %v", i, n, err)
		}
	}
	c.begun.Store(false)
	if n, err := c.Write([]byte("next")); n != 0 || !errors.Is(err, syscall.EPIPE) {
		t.Errorf("the next request: %d bytes written, %v: want none, so that it goes elsewhere", n, err)
	}
}

func TestARequestThatCannotBeginIsNotWritten(t *testing.T) {
	t.Parallel()
	c := &conn{Conn: &closing{}}

	if n, err := c.Write([]byte("head")); n != 0 || !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("%d bytes written, %v", n, err)
	}
}
