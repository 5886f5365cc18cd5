package failover

import (
	"bytes"
	"cmp"
	"errors"
	"net/http"
	"strconv"
	"time"

	"palimpsest/api/upstream"
	"palimpsest/pipeline/expression"
	"palimpsest/pipeline/tokens"
	"palimpsest/pipeline/wire"
)

// Failure says why a key did not answer.
type Failure struct {
	Reason    string        // "429", "overloaded_error", "unreachable" …: short, and stable for a cause
	Wait      time.Duration // requested by the provider; 0 if absent
	IsRefused bool          // the provider refuses the key, or it has no credit left
}

// OfError returns why no answer came; ok is false if another key would have failed too.
func OfError(err error) (_ Failure, ok bool) {
	switch {
	case errors.Is(err, upstream.ErrLate):
		return Failure{Reason: "late"}, true
	case errors.Is(err, upstream.ErrUnanswered):
		return Failure{Reason: "unanswered"}, true
	case errors.Is(err, upstream.ErrSignIn):
		return Failure{Reason: "sign_in", IsRefused: true}, true
	case errors.Is(err, upstream.ErrUnreachable):
		return Failure{Reason: "unreachable"}, true
	default:
		return Failure{}, false
	}
}

// OfAnswer returns why an answer is a failure of its key, not of its request; ok is false if it isn't. head
// is the decoded beginning of its body, if it is an error.
func OfAnswer(response *http.Response, head []byte, now time.Time) (failure Failure, ok bool) {
	status := response.StatusCode
	failure = Failure{Reason: strconv.Itoa(status), Wait: cmp.Or(retryAfter(response.Header, now), retryDelay(head))}
	if _, isLong := wire.ReadOverflow(status, head); isLong {
		return Failure{}, false
	}
	switch {
	case status == http.StatusUnauthorized, status == http.StatusPaymentRequired, status == http.StatusForbidden, hasNoCredit(head), isUnknownKey(head):
		failure.IsRefused, failure.Wait = true, 0
		return failure, true
	case status == http.StatusTooManyRequests, status == http.StatusRequestTimeout, status >= http.StatusInternalServerError && status != http.StatusNotImplemented:
		return failure, true
	default:
		return Failure{}, false
	}
}

// hasNoCredit reports whether an error says that the account has used up its paid credit: OpenAI's code
// insufficient_quota comes with status 429, Anthropic's sentence with 400.
func hasNoCredit(head []byte) bool {
	return bytes.Contains(head, []byte(`"insufficient_quota"`)) || bytes.Contains(head, []byte("credit balance is too low"))
}

// isUnknownKey reports whether an error says that the key is not valid, which Google does with status 400.
func isUnknownKey(head []byte) bool { return bytes.Contains(head, []byte(`"API_KEY_INVALID"`)) }

// delay matches the wait in an error of Google (google.rpc.RetryInfo).
var delay = expression.New(`"retryDelay"\s*:\s*"([0-9.]+s)"`)

// retryDelay returns the wait that an error of Google requests; 0 if absent.
func retryDelay(head []byte) time.Duration {
	found := delay.Compiled().FindSubmatch(head)
	if found == nil {
		return 0
	}
	wait, _ := time.ParseDuration(string(found[1]))
	return wait
}

// InStream returns why a stream that began with an error is a failure of its key; ok is false if it isn't.
func InStream(kind string) (_ Failure, ok bool) {
	switch kind {
	case "overloaded_error", "rate_limit_error", "api_error", "server_error", "rate_limit_exceeded", "service_unavailable", "gateway_timeout",
		"UNAVAILABLE", "RESOURCE_EXHAUSTED", "INTERNAL", "DEADLINE_EXCEEDED": // of Google
		return Failure{Reason: kind}, true
	default:
		return Failure{}, false
	}
}

// retryAfter returns the wait that an answer requests: by retry-after-ms, or retry-after in seconds or as a
// date (RFC 9110, section 10.2.3).
func retryAfter(header http.Header, now time.Time) time.Duration {
	if milliseconds, err := strconv.ParseFloat(header.Get("Retry-After-Ms"), 64); err == nil && milliseconds > 0 {
		return time.Duration(milliseconds * float64(time.Millisecond))
	}
	value := header.Get("Retry-After")
	if seconds, err := strconv.ParseFloat(value, 64); err == nil && seconds > 0 {
		return time.Duration(seconds * float64(time.Second))
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}

const (
	// waitMicroUSD is the assumed cost of a second of waiting, in millionths of a US dollar: an hour of an
	// engineer for 36 dollars.
	waitMicroUSD = 10_000

	// longestWait bounds how long a request waits for its own key.
	longestWait = time.Minute
)

// WorthWaiting reports whether the wait that a provider requests costs less than having another account write
// the prompt's cached tokens to its cache. patience is how long the client waits; 0 if unknown.
func WorthWaiting(failure Failure, cached int, price tokens.Price, patience time.Duration) bool {
	if failure.Wait == 0 || failure.IsRefused || failure.Wait > longestWait || patience > 0 && failure.Wait > patience/2 {
		return false
	}
	return failure.Wait.Seconds()*waitMicroUSD < float64(RewriteMicroUSD(cached, price))
}

// RewriteMicroUSD returns the extra cost of sending tokens again instead of reading them from a cache, in
// millionths of a US dollar.
func RewriteMicroUSD(cached int, price tokens.Price) int64 {
	return max(price.MicroUSD(cached, 0, 0, 0, 0), price.MicroUSD(0, 0, cached, 0, 0)) - price.MicroUSD(0, cached, 0, 0, 0)
}
