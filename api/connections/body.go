package connections

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

// ErrSlow says that a request's body stopped coming, or came too slowly. It is an
// os.ErrDeadlineExceeded for those who know nothing of connections.
var ErrSlow = fmt.Errorf("request body came too slowly: %w", os.ErrDeadlineExceeded)

// What a body must keep up: so many bytes, or its end, in each stretch of waiting. Time in
// which nobody reads it does not count.
const (
	patience = 30 * time.Second
	progress = 4 << 10
)

// PaceBodies has the bodies of requests end with ErrSlow where they do not keep coming. It
// bounds no body as a whole.
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
	end  func(deadline time.Time) error // has reads end at a time; the zero time: never
	left time.Duration                  // to wait for the next progress bytes
	come int                            // of them

	isRead bool // someone has asked for it: a client that waits for leave to send it has that
}

// newPaced returns a paced body. Its deadline holds from the start: the server itself reads
// what a handler leaves unread.
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
		_ = p.end(time.Time{}) // the server now reads to see whether the client leaves
		return n, err
	}
	p.left -= p.now().Sub(began)
	if p.come += n; p.come >= progress {
		p.left, p.come = patience, 0
	}
	return n, nil
}

// leave has the server not wait for a body that no one has asked for: its client won't send it.
func (p *paced) leave() {
	if !p.isRead {
		_ = p.end(p.now())
	}
}
