package providerdouble

import (
	"crypto/sha256"
	"net/http"
	"sync"
)

// MisbehaveHeader requests misbehavior for a single request. Its values are the Misbehave constants.
const MisbehaveHeader = "X-Double-Misbehave"

// Kinds of misbehavior.
const (
	MisbehaveRateLimit    = "429"             // 429 with retry-after: 1
	MisbehaveSpendCap     = "429-spend"       // 429 without retry-after
	MisbehaveOverloaded   = "529"             // 529 (503 in OpenAI's formats)
	MisbehaveFailure      = "500"             // 500
	MisbehaveCut          = "cut"             // the connection breaks half way
	MisbehaveSlow         = "slow"            // Config.Slow passes before the first byte
	MisbehaveMidstream    = "midstream-error" // an error event half way, after 200
	MisbehaveOverflowOnce = "overflow-once"   // too long, until another body comes
	MisbehaveOverflowLate = "overflow-late"   // too long, said inside a stream of Responses after 200
)

// misbehavior is the misbehavior requested by a reply or a request header.
func misbehavior(r *http.Request, reply Reply) string {
	if asked := r.Header.Get(MisbehaveHeader); asked != "" {
		return asked
	}
	return reply.Misbehave
}

// refusalFor returns the refusal of a misbehavior, if it has one.
func refusalFor(misbehave, format string) *Rejection {
	if isGoogle(format) {
		return geminiRefusalFor(misbehave)
	}
	switch misbehave {
	case MisbehaveRateLimit:
		r := rateLimited(format)
		r.RetryAfter = 1
		return r
	case MisbehaveSpendCap:
		return rateLimited(format)
	case MisbehaveOverloaded:
		if format == Anthropic {
			return &Rejection{Status: 529, Type: "overloaded_error", Message: "Overloaded"}
		}
		return &Rejection{Status: http.StatusServiceUnavailable, Type: "service_unavailable_error", Message: "The server is currently overloaded with other requests. Sorry about that! You can retry your request.", Code: "server_is_overloaded"}
	case MisbehaveFailure:
		if format == Anthropic {
			return &Rejection{Status: http.StatusInternalServerError, Type: "api_error", Message: "Internal server error"}
		}
		return &Rejection{Status: http.StatusInternalServerError, Type: "server_error", Message: "The server had an error while processing your request. Sorry about that!"}
	default:
		return nil
	}
}

func rateLimited(format string) *Rejection {
	if format == Anthropic {
		return &Rejection{Status: http.StatusTooManyRequests, Type: "rate_limit_error", Message: "This request would exceed your organization's rate limit. Please try again later."}
	}
	return &Rejection{Status: http.StatusTooManyRequests, Type: "requests", Code: "rate_limit_exceeded", Message: "Rate limit reached for requests. Please try again in 1s."}
}

// midstreamError is the error inside a stream.
func midstreamError(format string) *Rejection {
	if format == Anthropic {
		return &Rejection{Type: "overloaded_error", Message: "Overloaded"}
	}
	return &Rejection{Type: "server_error", Code: "server_error", Message: "The server had an error while processing your request. Sorry about that!"}
}

// overflows remembers bodies refused once as too long.
type overflows struct {
	mu      sync.Mutex
	refused map[string][sha256.Size]byte // by account
}

// refuses reports whether a body is refused: the first one and its repetitions, but not the next different
// one.
func (o *overflows) refuses(account string, body []byte) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	sum := sha256.Sum256(body)
	if before, ok := o.refused[account]; ok && before != sum {
		delete(o.refused, account)
		return false
	}
	if o.refused == nil {
		o.refused = map[string][sha256.Size]byte{}
	}
	o.refused[account] = sum
	return true
}
