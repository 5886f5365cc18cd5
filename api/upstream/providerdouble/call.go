package providerdouble

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// overLength is the code for a prompt over the limit, in OpenAI's formats.
const overLength = "context_length_exceeded"

// call is one request on its way through the double.
type call struct {
	double    *Double
	w         http.ResponseWriter
	r         *http.Request
	entry     *Recorded
	requestID string
	body      []byte // as the model's own API takes it, with the members of its path
}

// refuse answers with a refusal and records it; invalid says that the body is at fault.
func (c *call) refuse(format string, rejection *Rejection, invalid bool) {
	c.double.log.update(func() {
		c.entry.Status = rejection.Status
		if invalid {
			c.entry.Invalid = rejection
		}
	})
	rejection.write(c.w, format, c.requestID)
}

// generate answers a generation request.
func (c *call) generate(ctx context.Context, format string) {
	d := c.double
	c.entry.Format = format
	asked := c.r.Header.Get(MisbehaveHeader)
	request, rejection := d.judge(format, c.r.Header, c.body)
	if rejection == nil {
		rejection = d.config.knows(format, request.about().Model)
	}
	if rejection != nil {
		c.entry.Status, c.entry.Invalid = rejection.Status, rejection
		if late, isLate := request.(*responsesRequest); isLate && d.config.LateOverflow && late.stream && rejection.Code == overLength {
			c.entry.Status = http.StatusOK
			d.log.add(c.entry)
			answer{events: failedEvents(late.frame(d), rejection)}.stream(ctx, c.w, delivery{})
			return
		}
		d.log.add(c.entry)
		rejection.write(c.w, format, c.requestID)
		return
	}
	about := request.about()
	about.Format, about.Header, about.Body = format, c.r.Header, c.entry.Body
	c.entry.Model, c.entry.Prompt, c.entry.Status = about.Model, about.Tokens, http.StatusOK
	c.entry.positions = request.prompt()
	d.log.add(c.entry)
	if refusal := refusalFor(asked, format); refusal != nil {
		c.refuse(format, refusal, false)
		return
	}
	if asked == MisbehaveOverflowOnce && d.overflows.refuses(accountOf(c.r), about.Body) {
		c.refuse(format, request.overflow(), false)
		return
	}
	c.reply(ctx, request, about)
}

// reply runs the script, and sends its reply.
func (c *call) reply(ctx context.Context, request generation, about Request) {
	d := c.double
	reply := d.config.Script(about)
	misbehave := misbehavior(c.r, reply)
	refusal := reply.Rejection
	if refusal == nil {
		refusal = refusalFor(misbehave, about.Format)
	}
	if refusal == nil && misbehave == MisbehaveOverflowOnce && c.r.Header.Get(MisbehaveHeader) == "" && d.overflows.refuses(accountOf(c.r), about.Body) {
		refusal = request.overflow()
	}
	if refusal != nil {
		c.refuse(about.Format, refusal, false)
		return
	}
	use := d.useCache(accountOf(c.r), request, about.Body)
	reply, output := d.fit(request, reply)
	usage := Usage{Input: use.fresh, CacheRead: use.read, CacheWrite: use.write, CacheWrite1h: use.write1h, Output: output}
	if reply.Thinking != "" && about.Thinks {
		usage.Reasoning = d.config.reported(d.config.Count(reply.Thinking))
	}
	if reply.Usage != nil {
		usage = *reply.Usage
	}
	usage.Terms = terms(about.Format, c.body, reply)
	d.log.update(func() {
		c.entry.Prompt = usage.Input + usage.CacheRead + usage.CacheWrite
		c.entry.CacheRead, c.entry.CacheWrite = usage.CacheRead, usage.CacheWrite
		c.entry.Usage = usage
	})
	request.answer(d, reply, usage).send(ctx, c.w, delivery{
		format: about.Format, stream: about.Stream, misbehave: misbehave, delay: reply.Delay, slow: d.config.Slow, sleep: d.config.Sleep,
	})
}

// fit shortens a reply's text to the tokens that the request leaves it, and returns the remaining size in
// reported tokens.
func (d *Double) fit(request generation, reply Reply) (Reply, int) {
	thinking := 0
	if request.about().Thinks {
		thinking = d.config.Count(reply.Thinking)
	}
	for _, call := range reply.Calls {
		thinking += d.config.Count(call.Name) + d.config.Count(string(call.Input))
	}
	size := func() int { return d.config.reported(thinking + d.config.Count(reply.Text)) }
	limit, atWindow := request.maxOutput(), false
	if room := request.room(); limit < 0 || room < limit {
		limit, atWindow = room, true
	}
	if limit == 0 && !atWindow {
		// max_tokens: 0 only warms the cache.
		return Reply{StopReason: "max_tokens"}, 0
	}
	if size() <= limit || len(reply.Calls) > 0 {
		return reply, size()
	}
	letters := []rune(reply.Text)
	reply.Text = string(letters[:len(letters)*max(limit, 0)/size()])
	if atWindow {
		reply.StopReason = cutAtWindow
	}
	return reply, max(limit, 0)
}

// knows refuses an unknown model.
func (c Config) knows(format, id string) *Rejection {
	if _, found := c.model(id); found || c.AllowUnknown {
		return nil
	}
	return noModel(format, id)
}

type anthropicCount struct {
	InputTokens int `json:"input_tokens"`
}

// countTokens answers POST /v1/messages/count_tokens.
func (c *call) countTokens() {
	d := c.double
	c.entry.Status = http.StatusOK
	r, rejection := d.anthropic.read(c.r.Header, c.body, true)
	if rejection == nil {
		rejection = d.anthropic.check(r)
	}
	if rejection == nil {
		rejection = d.config.knows(Anthropic, r.modelID)
	}
	if rejection != nil {
		c.entry.Status, c.entry.Invalid = rejection.Status, rejection
	} else {
		c.entry.Model, c.entry.Prompt = r.modelID, r.tokens
	}
	d.log.add(c.entry)
	if rejection != nil {
		rejection.write(c.w, Anthropic, c.requestID)
		return
	}
	c.w.Header().Set("Content-Type", "application/json")
	writeBody(c.w, anthropicCount{InputTokens: r.tokens})
}

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

// Measure returns the size of a body's prompt in reported tokens, or the refusal of the body.
func (d *Double) Measure(format string, body []byte) (int, error) {
	request, rejection := d.judge(format, nil, body)
	if rejection != nil {
		return 0, rejection
	}
	return request.about().Tokens, nil
}

// Rejection is a provider's refusal of a request. Error returns the provider's
// message, word for word.
type Rejection struct {
	Status  int
	Type    string // the error's type in the provider's list
	Code    string // OpenAI's code, null if "", or Anthropic's error_code
	Param   string // OpenAI's param; null if ""
	Message string

	// RetryAfter is the seconds of the retry-after header; 0 omits it.
	RetryAfter int
}

// Error returns the provider's message.
func (r *Rejection) Error() string { return r.Message }

// refuse returns both providers' refusal of a body that breaks a rule.
func refuse(format string, values ...any) *Rejection {
	return &Rejection{Status: http.StatusBadRequest, Type: "invalid_request_error", Message: fmt.Sprintf(format, values...)}
}

func (r *Rejection) at(param string) *Rejection {
	r.Param = param
	return r
}

func (r *Rejection) coded(code string) *Rejection {
	r.Code = code
	return r
}

// asError keeps a nil rejection a nil error.
func (r *Rejection) asError() error {
	if r == nil {
		return nil
	}
	return r
}

// write answers a request with the refusal in a format's dialect.
func (r *Rejection) write(w http.ResponseWriter, format, requestID string) {
	w.Header().Set("Content-Type", "application/json")
	if r.RetryAfter > 0 && !isGoogle(format) {
		w.Header().Set("Retry-After", strconv.Itoa(r.RetryAfter))
	}
	switch {
	case isGoogle(format):
	case r.Status >= http.StatusInternalServerError, r.Status == http.StatusTooManyRequests && r.RetryAfter > 0:
		w.Header().Set("X-Should-Retry", "true")
	case r.Status == http.StatusTooManyRequests:
		w.Header().Set("X-Should-Retry", "false")
	}
	w.WriteHeader(r.Status)
	if format == Anthropic {
		writeBody(w, r.anthropic(requestID))
		return
	}
	if format == Gemini {
		writeBody(w, r.gemini())
		return
	}
	if format == GeminiInteractions {
		writeBody(w, r.interactions())
		return
	}
	writeBody(w, openaiError{Error: r.openai()})
}

type anthropicError struct {
	Type      string               `json:"type"`
	Error     anthropicErrorDetail `json:"error"`
	RequestID string               `json:"request_id,omitempty"`
}

type anthropicErrorDetail struct {
	Type    string            `json:"type"`
	Message string            `json:"message"`
	Details *anthropicDetails `json:"details,omitempty"`
}

// anthropicDetails holds the codes that clients should rely on, because messages may change.
type anthropicDetails struct {
	Code string `json:"error_code"`
}

func (r *Rejection) anthropic(requestID string) anthropicError {
	detail := anthropicErrorDetail{Type: r.Type, Message: r.Message}
	if r.Code != "" {
		detail.Details = &anthropicDetails{Code: r.Code}
	}
	return anthropicError{Type: "error", Error: detail, RequestID: requestID}
}

type openaiError struct {
	Error openaiErrorDetail `json:"error"`
}

type openaiErrorDetail struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    *string `json:"code"`
}

func (r *Rejection) openai() openaiErrorDetail {
	return openaiErrorDetail{Message: r.Message, Type: r.Type, Param: orNull(r.Param), Code: orNull(r.Code)}
}

func orNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// encode returns the JSON of a value this package made itself, which cannot fail.
func encode[T any](value T) []byte {
	encoded, err := json.Marshal(value)
	if err != nil {
		panic(fmt.Sprintf("providerdouble: encode %T: %v", value, err))
	}
	return encoded
}

// writeBody sends a whole JSON answer. It ignores errors, since the client may have left.
func writeBody[T any](w http.ResponseWriter, value T) {
	_, _ = w.Write(encode(value))
}

// Refusals of OpenAI's schema check, in its words.

func brokenJSON() *Rejection {
	return refuse("We could not parse the JSON body of your request. (HINT: This likely means you aren't using your HTTP library correctly. The OpenAI API expects a JSON payload, but what was sent was not valid JSON. If you have trouble figuring out how to fix this, please contact us through our help center at help.openai.com.)")
}

func missingParameter(param string) *Rejection {
	return refuse("Missing required parameter: '%s'.", param).at(param).coded("missing_required_parameter")
}

func unknownParameter(param string) *Rejection {
	return refuse("Unknown parameter: '%s'.", param).at(param).coded("unknown_parameter")
}

func wrongType(param, want string, got byte) *Rejection {
	return refuse("Invalid type for '%s': expected %s, but got %s instead.", param, want, typeName(got)).at(param).coded("invalid_type")
}

func wrongValue(param, value string, supported ...string) *Rejection {
	last := len(supported) - 1
	words := "'" + strings.Join(supported, "', '") + "'"
	if last > 0 {
		words = "'" + strings.Join(supported[:last], "', '") + "', and '" + supported[last] + "'"
	}
	return refuse("Invalid value: '%s'. Supported values are: %s.", value, words).at(param).coded("invalid_value")
}

func emptyArray(param string) *Rejection {
	return refuse("Invalid '%s': empty array. Expected an array with minimum length 1, but got an empty array instead.", param).at(param).coded("empty_array")
}

func wrongPattern(param string) *Rejection {
	return refuse("Invalid '%s': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.", param).at(param).coded("invalid_value")
}

func tooLong(param string, limit, got int) *Rejection {
	return refuse("Invalid '%s': string too long. Expected a string with maximum length %d, but got a string with length %d instead.", param, limit, got).at(param).coded("string_above_max_length")
}

func typeName(first byte) string {
	switch first {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case 'n', 0:
		return "null"
	default:
		return "a number"
	}
}
