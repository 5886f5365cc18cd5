package api

import (
	"net/http"
	"time"
)

// outcome is the result of a request.
type outcome struct {
	Status    int
	ErrorFrom string // "proxy", "provider"; "" without an error
	ErrorType string
	Aborted   string // side that ended the answer early: "client", "provider", or "proxy" if the key was revoked; "" if complete
	Err       error  // cause of one of our failures

	said []byte // the provider's refusal, without secrets; nil if it is not kept
}

// relayed notes that the provider's answer goes to the client, with its status.
func (o *outcome) relayed(status int) {
	o.Status = status
	if status >= http.StatusBadRequest {
		o.ErrorFrom = "provider"
	}
}

// failed notes the error type in the provider's answer.
func (o *outcome) failed(kind string) { o.ErrorFrom, o.ErrorType = "provider", kind }

// refused notes that we answer with one of our errors. cause is optional.
func (o *outcome) refused(status int, kind string, cause error) {
	o.Status, o.ErrorFrom, o.ErrorType, o.Err = status, "proxy", kind, cause
}

// brokeOff notes which side ended the answer early, and why, unless the client left.
func (o *outcome) brokeOff(side string, cause error) {
	o.Aborted = side
	if cause != nil {
		o.ErrorFrom, o.Err = side, cause
	}
}

// quoted keeps the text of the provider's refusal.
func (o *outcome) quoted(said []byte) { o.said = said }

// times are a request's arrival and the durations of its parts.
type times struct {
	At        time.Time
	Overhead  time.Duration // our own, before the provider is called
	Archiving time.Duration // the part of it that stored an epoch's originals
	TTFB      time.Duration
	Duration  time.Duration
}

// asked notes that our own work ends and the call of the provider begins.
func (t *times) asked(now time.Time) { t.Overhead = now.Sub(t.At) }

// archived notes how long it took to store originals.
func (t *times) archived(took time.Duration) { t.Archiving = took }

// heard notes the beginning of the provider's answer.
func (t *times) heard(now time.Time) { t.TTFB = now.Sub(t.At) - t.Overhead }

// ended notes that the client has the complete answer.
func (t *times) ended(now time.Time) { t.Duration = now.Sub(t.At) }
