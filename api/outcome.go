package api

import (
	"net/http"
	"time"
)

// outcome is what became of a request.
type outcome struct {
	Status    int
	ErrorFrom string // "proxy", "provider"; empty if none
	ErrorType string
	Aborted   string // side that broke the answer off: "client", "provider", or "proxy" if the key was revoked; empty if none
	Err       error  // cause of one of our failures

	said []byte // what the provider said where it refused, without secrets; nil if nothing that is kept
}

// relayed notes that the provider's answer goes to the client with a status.
func (o *outcome) relayed(status int) {
	o.Status = status
	if status >= http.StatusBadRequest {
		o.ErrorFrom = "provider"
	}
}

// failed notes that the provider's answer says that it failed.
func (o *outcome) failed(kind string) { o.ErrorFrom, o.ErrorType = "provider", kind }

// refused notes that we answer with one of our errors. cause is optional.
func (o *outcome) refused(status int, kind string, cause error) {
	o.Status, o.ErrorFrom, o.ErrorType, o.Err = status, "proxy", kind, cause
}

// brokeOff notes the side that broke the answer off, and why, unless the client left.
func (o *outcome) brokeOff(side string, cause error) {
	o.Aborted = side
	if cause != nil {
		o.ErrorFrom, o.Err = side, cause
	}
}

// quoted notes what the provider said where it refused.
func (o *outcome) quoted(said []byte) { o.said = said }

// times are when a request came, and how long its parts took.
type times struct {
	At        time.Time
	Overhead  time.Duration // ours, before the provider is asked
	Archiving time.Duration // the part of it in which an epoch's originals became durable
	TTFB      time.Duration
	Duration  time.Duration
}

// asked notes that our own work ends and the provider is asked.
func (t *times) asked(now time.Time) { t.Overhead = now.Sub(t.At) }

// archived notes how long originals took to become durable.
func (t *times) archived(took time.Duration) { t.Archiving = took }

// heard notes that the provider begins to answer.
func (t *times) heard(now time.Time) { t.TTFB = now.Sub(t.At) - t.Overhead }

// ended notes that the client has all of its answer.
func (t *times) ended(now time.Time) { t.Duration = now.Sub(t.At) }
