package providerdouble

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io"
	stdlog "log"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

// Double is a provider of all families. It is an http.Handler, and safe for concurrent use.
type Double struct {
	// Signer signs the thinking of this double's answers.
	*Signer

	config    Config
	anthropic anthropicReader
	chat      chatReader
	responses responsesReader
	gemini    geminiReader

	interactions interactionsReader

	dialects map[string]dialect // by format

	cache     promptCache
	log       log
	overflows overflows
	stored    store
	serial    atomic.Uint64
}

// NewHandler returns a double for use without a server of its own.
func NewHandler(config Config) *Double {
	config = config.withDefaults()
	d := &Double{Signer: NewSigner(config.Secret), config: config, log: log{keep: config.KeepBodies}}
	d.anthropic.config, d.anthropic.signer = config, d.Signer
	d.chat.config = config
	d.responses.config, d.responses.signer, d.responses.stored = config, d.Signer, &d.stored
	d.gemini.config, d.gemini.signer = config, d.Signer
	d.interactions.config, d.interactions.signer, d.interactions.stored = config, d.Signer, &d.stored
	d.dialects = map[string]dialect{
		Anthropic:          {"/v1/messages", judging(d.anthropic.parse, d.anthropic.check)},
		OpenAIChat:         {"/v1/chat/completions", judging(d.chat.parse, d.chat.check)},
		OpenAIResponses:    {"/v1/responses", judging(d.responses.parse, d.responses.check)},
		Gemini:             {"", judging(d.gemini.parse, d.gemini.check)}, // its paths name the model
		GeminiInteractions: {"/v1beta/interactions", judging(d.interactions.parse, d.interactions.check)},
	}
	return d
}

// dialect is how requests of a format are served.
type dialect struct {
	path  string // of generations
	judge judge
}

// judge checks a body and returns its parsed request.
type judge func(header http.Header, body []byte) (generation, *Rejection)

// judging returns the judgment of a format's reader.
func judging[R generation](parse func(http.Header, []byte) (R, *Rejection), check func(R) *Rejection) judge {
	return func(header http.Header, body []byte) (generation, *Rejection) {
		request, rejection := parse(header, body)
		if rejection == nil {
			rejection = check(request)
		}
		return request, rejection
	}
}

// Validate judges one request body as a whole, as the provider would before it answers. The error is a
// *Rejection with the provider's own words. format is one of the constants. An unknown
// model counts as one with a window of 128,000 tokens.
func (d *Double) Validate(format string, body []byte) error {
	_, rejection := d.judge(format, nil, body)
	return rejection.asError()
}

// Judge is Validate for a request with its headers, since some features of the body need one. A nil header
// allows all of them.
func (d *Double) Judge(format string, header http.Header, body []byte) error {
	_, rejection := d.judge(format, header, body)
	return rejection.asError()
}

// judge checks a body and returns its parsed request.
func (d *Double) judge(format string, header http.Header, body []byte) (generation, *Rejection) {
	if len(body) > d.config.MaxBody {
		return nil, tooLarge(format)
	}
	dialect, known := d.dialects[format]
	if !known {
		return nil, refuse("unknown format %q", format)
	}
	return dialect.judge(header, body)
}

// generation is a generation request, in any format.
type generation interface {
	// about is a script's view of it.
	about() Request
	// prompt lists the request's positions for the cache.
	prompt() []position
	// shortest is the length of the shortest cached prompt in tokens.
	shortest() int
	// maxOutput is the limit of the answer's tokens; -1 without a limit.
	maxOutput() int
	// room is how many tokens the window leaves for the answer.
	room() int
	// overflow is the refusal of a prompt over the limit.
	overflow() *Rejection
	// answer writes a reply in the provider's shape.
	answer(d *Double, reply Reply, usage Usage) answer
}

func tooLarge(format string) *Rejection {
	if format == Anthropic {
		return &Rejection{Status: http.StatusRequestEntityTooLarge, Type: "request_too_large", Message: "Request exceeds the maximum size"}
	}
	return &Rejection{Status: http.StatusRequestEntityTooLarge, Type: "invalid_request_error", Message: "Request body is too large.", Code: "request_too_large"}
}

// ServeHTTP answers like the provider of the path.
func (d *Double) ServeHTTP(w http.ResponseWriter, r *http.Request) { d.serve(w, r, nil) }

// serve answers a request. outside is what a cloud in front of the models received; nil without one.
func (d *Double) serve(w http.ResponseWriter, r *http.Request, outside *Recorded) {
	format := familyOf(r)
	requestID := d.name("req_", 24)
	w.Header().Set("Request-Id", requestID)
	w.Header().Set("X-Request-Id", requestID)
	rateLimitHeaders(w.Header(), format)
	entry := outside
	body, rejection := readBody(r, format, d.config.MaxBody)
	if outside == nil {
		entry = received(r, body)
	}
	if rejection == nil {
		rejection = d.authenticate(r, format)
	}
	if rejection != nil {
		entry.Status, entry.Invalid, entry.Done = rejection.Status, rejection, true
		d.log.add(entry)
		rejection.write(w, format, requestID)
		return
	}
	entry.Conversation = conversationOf(r.Header, accountOf(r))
	call := &call{double: d, w: w, r: r, entry: entry, requestID: requestID, body: body}
	// An aborted connection ends in a panic.
	defer d.log.update(func() {
		entry.Done = true
		entry.Disconnected = r.Context().Err() != nil
	})
	if format == Gemini {
		call.gemini()
		return
	}
	path := strings.TrimSuffix(r.URL.Path, "/")
	for format, dialect := range d.dialects {
		if r.Method == http.MethodPost && path == dialect.path {
			call.generate(r.Context(), format)
			return
		}
	}
	switch r.Method + " " + path {
	case "POST /v1/messages/count_tokens":
		call.countTokens()
	case "POST /v1/responses/input_tokens":
		call.responsesRead("input_tokens")
	case "POST /v1/responses/compact":
		call.responsesRead("compact")
	default:
		call.other()
	}
}

// familyOf returns the dialect of a request.
func familyOf(r *http.Request) string {
	switch path := r.URL.Path; {
	case strings.HasPrefix(path, "/v1beta/interactions"):
		return GeminiInteractions
	case strings.HasPrefix(path, "/v1beta/"):
		return Gemini
	case strings.HasPrefix(path, "/v1/messages"), r.Header.Get("Anthropic-Version") != "":
		return Anthropic
	case strings.HasPrefix(path, "/v1/responses"):
		return OpenAIResponses
	default:
		return OpenAIChat
	}
}

// isGoogle reports whether a format is one of Google's.
func isGoogle(format string) bool { return format == Gemini || format == GeminiInteractions }

// readBody reads and decompresses a body of up to most bytes.
func readBody(r *http.Request, format string, most int) ([]byte, *Rejection) {
	source := io.Reader(r.Body)
	switch encoding := r.Header.Get("Content-Encoding"); encoding {
	case "", "identity":
	case "gzip":
		unpacked, err := gzip.NewReader(r.Body)
		if err != nil {
			return nil, refuse("request body encoding is invalid").coded("request_body_encoding_invalid")
		}
		source = unpacked
	default:
		return nil, &Rejection{Status: http.StatusUnsupportedMediaType, Type: "invalid_request_error", Code: "request_body_encoding_unsupported", Message: "request body encoding is not supported: " + encoding}
	}
	var body bytes.Buffer
	if _, err := body.ReadFrom(io.LimitReader(source, int64(most)+1)); err != nil {
		return nil, refuse("could not read the request body")
	}
	if body.Len() > most {
		// The rest is read so that the client gets to see the answer.
		_, _ = io.Copy(io.Discard, io.LimitReader(r.Body, MaxBody))
		return nil, tooLarge(format)
	}
	return body.Bytes(), nil
}

// authenticate accepts the configured key, in each provider's places for it.
func (d *Double) authenticate(r *http.Request, format string) *Rejection {
	key := keyOf(r, format)
	leaked := strings.HasPrefix(key, "plm_")
	if key != "" && !leaked && (d.config.Key == "" || key == d.config.Key) {
		return nil
	}
	if isGoogle(format) {
		return geminiSignIn(key)
	}
	refusal := &Rejection{Status: http.StatusUnauthorized, Type: "authentication_error", Message: "invalid x-api-key"}
	switch {
	case format == Anthropic && key == "":
		refusal.Message = "x-api-key header is required"
	case format == Anthropic:
	case key == "":
		refusal.Type = "invalid_request_error"
		refusal.Message = "You didn't provide an API key. You need to provide your API key in an Authorization header using Bearer auth (i.e. Authorization: Bearer YOUR_KEY)."
	default:
		refusal.Type, refusal.Code = "invalid_request_error", "invalid_api_key"
		refusal.Message = "Incorrect API key provided: " + masked(key) + ". You can find your API key at https://platform.openai.com/account/api-keys."
	}
	return refusal
}

func keyOf(r *http.Request, format string) string {
	if isGoogle(format) {
		return geminiKey(r)
	}
	if key := r.Header.Get("X-Api-Key"); key != "" && format == Anthropic {
		return key
	}
	key, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return key
}

// accountOf separates the caches of different keys.
func accountOf(r *http.Request) string {
	return r.Header.Get("X-Api-Key") + "\x00" + r.Header.Get("Authorization") + "\x00" + geminiKey(r)
}

func masked(key string) string {
	if len(key) <= 8 {
		return strings.Repeat("*", len(key))
	}
	return key[:4] + strings.Repeat("*", len(key)-8) + key[len(key)-4:]
}

// name makes the next id with a prefix.
func (d *Double) name(prefix string, digits int) string {
	var serial [8]byte
	binary.BigEndian.PutUint64(serial[:], d.serial.Add(1))
	return prefix + base62(sha256.Sum256(append(serial[:], d.config.Secret...)), digits)
}

func rateLimitHeaders(header http.Header, format string) {
	if format == Anthropic {
		header.Set("Anthropic-Organization-Id", "00000000-0000-4000-8000-000000000000")
		header.Set("Anthropic-Ratelimit-Requests-Limit", "4000")
		header.Set("Anthropic-Ratelimit-Requests-Remaining", "3999")
		header.Set("Anthropic-Ratelimit-Requests-Reset", "2026-01-01T00:00:00Z")
		return
	}
	if isGoogle(format) {
		return // Google sends none
	}
	header.Set("Openai-Version", "2020-10-01")
	header.Set("Openai-Processing-Ms", "1")
	header.Set("X-Ratelimit-Limit-Requests", "10000")
	header.Set("X-Ratelimit-Remaining-Requests", "9999")
	header.Set("X-Ratelimit-Reset-Requests", "6ms")
}

var _ http.Handler = (*Double)(nil)

// Listen serves the double on an address and returns its URL. stop ends it, including answers under way, and
// waits until the listener is closed.
func (d *Double) Listen(address string) (url string, stop func(), err error) {
	return listen(d, address)
}

// listen serves a handler on an address and returns its URL, until stop is called.
func listen(handler http.Handler, address string) (url string, stop func(), err error) {
	var config net.ListenConfig
	listener, err := config.Listen(context.Background(), "tcp", address)
	if err != nil {
		return "", nil, err
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute, ErrorLog: stdlog.New(io.Discard, "", 0)}
	stopped := make(chan error, 1)
	go func() { stopped <- server.Serve(listener) }()
	stop = func() {
		_ = server.Close()
		if ended := <-stopped; !errors.Is(ended, http.ErrServerClosed) {
			panic("providerdouble: serve: " + ended.Error())
		}
	}
	return "http://" + listener.Addr().String(), stop, nil
}
