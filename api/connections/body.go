package connections

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

// ErrSlow says that a request's body stopped, or came too slowly. It wraps os.ErrDeadlineExceeded for callers
// that don't know this package.
var ErrSlow = fmt.Errorf("request body came too slowly: %w", os.ErrDeadlineExceeded)

// A body's minimum pace: this many bytes, or its end, in each stretch of waiting. Time without a pending read
// does not count.
const (
	patience = 30 * time.Second
	progress = 4 << 10
)

// PaceBodies ends the bodies of requests with ErrSlow if they do not keep coming. It doesn't limit their
// total time.
func PaceBodies(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if request.Body != nil && request.Body != http.NoBody {
			body := newPaced(request.Body, time.Now, http.NewResponseController(w).SetReadDeadline)
			request.Body = body
			if request.Header.Get("Expect") != "" {
				defer body.leave()
			}
		}
		next.ServeHTTP(w, request)
	})
}

// paced is a body that must keep coming.
type paced struct {
	io.ReadCloser

	now  func() time.Time
	end  func(deadline time.Time) error // sets the deadline of reads; the zero time means no deadline
	left time.Duration                  // to wait for the next progress bytes
	come int                            // of them

	isRead bool // a read has started, so a client that waits for permission to send has it
}

// newPaced returns a paced body. Its deadline starts at once, because the server itself reads the rest of a
// body that a handler leaves unread.
func newPaced(body io.ReadCloser, now func() time.Time, end func(deadline time.Time) error) *paced {
	_ = end(now().Add(patience))
	return &paced{ReadCloser: body, now: now, end: end, left: patience}
}

// Read implements io.Reader.
func (p *paced) Read(into []byte) (int, error) {
	p.isRead = true
	began := p.now()
	_ = p.end(began.Add(p.left)) // a connection without deadlines has no reader that waits
	n, err := p.ReadCloser.Read(into)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return n, ErrSlow
	}
	if err != nil {
		_ = p.end(time.Time{}) // the server now reads to notice if the client leaves
		return n, err
	}
	p.left -= p.now().Sub(began)
	if p.come += n; p.come >= progress {
		p.left, p.come = patience, 0
	}
	return n, nil
}

// leave keeps the server from waiting for a body that no one has read, because its client won't send it.
func (p *paced) leave() {
	if !p.isRead {
		_ = p.end(p.now())
	}
}
