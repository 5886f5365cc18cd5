package providerdouble

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
)

// BedrockConfig configures a Bedrock.
type BedrockConfig struct {
	Config // of the models behind it

	Region string
	Keys   []string // accepted Bedrock API keys
	Access []BedrockAccess

	// Broken makes the checksums of event streams wrong.
	Broken bool
}

// BedrockAccess is an access key of an AWS account.
type BedrockAccess struct {
	ID, Secret, Token string
	Expires           time.Time // zero if it does not
}

// Bedrock is Amazon Bedrock's runtime with Claude's models, as strict as the real one about bodies, signatures and
// clocks. It is an http.Handler, and safe for concurrent use.
type Bedrock struct {
	// Models records the requests as they came, and answers them after they have got the form of Anthropic's API.
	Models *Double

	config BedrockConfig
}

// bedrockCall is a request on its way through a Bedrock.
type bedrockCall struct {
	*http.Request

	bedrock *Bedrock
	out     *bedrockWriter
	entry   *Recorded
}

// refuse answers with an error, before the request has reached the models.
func (c *bedrockCall) refuse(status int, kind, message string) {
	c.bedrock.Models.log.answered(c.entry, &Rejection{Status: status, Type: kind, Message: message})
	c.out.refuse(status, kind, message)
}

// NewBedrock returns a Bedrock for use without a server of its own.
func NewBedrock(config BedrockConfig) *Bedrock {
	if config.Now == nil {
		config.Now = time.Now
	}
	return &Bedrock{Models: NewHandler(config.Config), config: config}
}

// Listen serves the double on an address and returns its URL, until stop is called.
func (b *Bedrock) Listen(address string) (url string, stop func(), err error) {
	return listen(b, address)
}

// ServeHTTP answers like Amazon Bedrock.
func (b *Bedrock) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, MaxBody))
	asked := &bedrockCall{Request: r, bedrock: b, out: &bedrockWriter{ResponseWriter: w, broken: b.config.Broken}, entry: received(r, body)}
	if err != nil {
		asked.refuse(http.StatusBadRequest, "ValidationException", "The request body could not be read.")
		return
	}
	w.Header().Set("X-Amzn-Requestid", b.Models.name("", 36))
	if refusal := b.authenticate(r, body); refusal != nil {
		asked.refuse(refusal.Status, refusal.Type, refusal.Message)
		return
	}
	if r.Method == http.MethodGet {
		asked.list()
		return
	}
	model, operation := bedrockPath(r.URL.EscapedPath())
	switch {
	case r.Method != http.MethodPost || model == "":
		asked.refuse(http.StatusNotFound, "UnknownOperationException", "")
	case operation == "invoke", operation == "invoke-with-response-stream":
		asked.invoke(model, operation == "invoke-with-response-stream")
	case operation == "count-tokens":
		asked.count(model)
	default:
		asked.refuse(http.StatusNotFound, "UnknownOperationException", "")
	}
}

// bedrockPath returns the model and the operation in a path.
func bedrockPath(escaped string) (model, operation string) {
	parts := strings.Split(strings.TrimPrefix(escaped, "/model/"), "/")
	if len(parts) != 2 || !strings.HasPrefix(escaped, "/model/") {
		return "", ""
	}
	model, err := url.PathUnescape(parts[0])
	if err != nil {
		return "", ""
	}
	return model, parts[1]
}

// bedrockModel matches the ids of Claude's models and of the inference profiles that route to them.
var bedrockModel = regexp.MustCompile(`^((?:us|eu|apac|jp|au|global|us-gov)\.)?anthropic\.(claude-[a-z0-9-]+?)(-v\d+(:\d+)?)?$`)

// invoke runs a model.
func (c *bedrockCall) invoke(model string, stream bool) {
	id := bedrockModel.FindStringSubmatch(model)
	if id == nil {
		c.refuse(http.StatusBadRequest, "ValidationException", "The provided model identifier is invalid.")
		return
	}
	members, betas, fault := bedrockMembers(c.entry.Body)
	if fault != "" {
		c.refuse(http.StatusBadRequest, "ValidationException", fault)
		return
	}
	c.out.framing = stream
	c.ask("/v1/messages", betas, wrapped(id[2], stream, members))
}

// count counts the tokens of a prompt.
func (c *bedrockCall) count(model string) {
	id := bedrockModel.FindStringSubmatch(model)
	if id == nil || id[1] != "" {
		c.refuse(http.StatusBadRequest, "ValidationException", "The provided model doesn't support counting tokens.")
		return
	}
	var asked struct {
		Input struct {
			InvokeModel struct {
				Body []byte `json:"body"`
			} `json:"invokeModel"`
		} `json:"input"`
	}
	if err := json.Unmarshal(c.entry.Body, &asked); err != nil || len(asked.Input.InvokeModel.Body) == 0 {
		c.refuse(http.StatusBadRequest, "ValidationException", "The input to count is missing or invalid.")
		return
	}
	members, betas, fault := bedrockMembers(asked.Input.InvokeModel.Body)
	if fault == "" && members["max_tokens"] == nil {
		fault = "Malformed input request: #: required key [max_tokens] not found, please reformat your input and try again."
	}
	if fault != "" {
		c.refuse(http.StatusBadRequest, "ValidationException", fault)
		return
	}
	delete(members, "max_tokens")
	c.out.counting = true
	c.ask("/v1/messages/count_tokens", betas, wrapped(id[2], false, members))
}

// bedrockMembers returns the members of a body that Anthropic's API has too, and the named beta features. fault is
// Bedrock's refusal of a body; "" if it is fine.
func bedrockMembers(body []byte) (members map[string]json.RawMessage, betas []string, fault string) {
	if err := json.Unmarshal(body, &members); err != nil || members == nil {
		return nil, nil, "Malformed input request, please reformat your input and try again."
	}
	for _, name := range []string{"model", "stream"} {
		if members[name] != nil {
			return nil, nil, "Malformed input request: #: extraneous key [" + name + "] is not permitted, please reformat your input and try again."
		}
	}
	if string(members["anthropic_version"]) != `"bedrock-2023-05-31"` {
		return nil, nil, "Malformed input request: #: required key [anthropic_version] not found, please reformat your input and try again."
	}
	if named := members["anthropic_beta"]; named != nil && json.Unmarshal(named, &betas) != nil {
		return nil, nil, "Malformed input request: #/anthropic_beta: expected type: JSONArray, please reformat your input and try again."
	}
	for _, beta := range betas {
		if !slices.Contains(bedrockKnows(), beta) {
			return nil, nil, "invalid beta flag"
		}
	}
	delete(members, "anthropic_version")
	delete(members, "anthropic_beta")
	return members, betas, ""
}

// bedrockKnows returns the beta features that Amazon documents for Claude's models.
func bedrockKnows() []string {
	return []string{
		"computer-use-2024-10-22", "computer-use-2025-01-24", "computer-use-2025-11-24", "token-efficient-tools-2025-02-19", "output-128k-2025-02-19",
		"interleaved-thinking-2025-05-14", "dev-full-thinking-2025-05-14", "fine-grained-tool-streaming-2025-05-14", "context-1m-2025-08-07",
		"context-management-2025-06-27", "effort-2025-11-24", "tool-search-tool-2025-10-19", "tool-examples-2025-10-29", "thinking-binding-controls-2026-08-01",
	}
}

// wrapped returns a body of Anthropic's API.
func wrapped(model string, stream bool, members map[string]json.RawMessage) []byte {
	members["model"] = encode(model)
	if stream {
		members["stream"] = json.RawMessage("true")
	}
	return encode(members)
}

// ask has the models answer a request.
func (c *bedrockCall) ask(path string, betas []string, body []byte) {
	inner := c.Clone(c.Context())
	inner.URL.Path, inner.URL.RawPath, inner.URL.RawQuery = path, "", ""
	inner.Body, inner.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	inner.Header.Del("Authorization")
	inner.Header.Set("X-Api-Key", "bedrock")
	inner.Header.Set("Anthropic-Version", "2023-06-01")
	inner.Header.Del("Anthropic-Beta")
	if len(betas) > 0 {
		inner.Header.Set("Anthropic-Beta", strings.Join(betas, ","))
	}
	c.bedrock.Models.serve(c.out, inner, c.entry)
	c.out.end()
}

// list lists inference profiles.
func (c *bedrockCall) list() {
	const one = `{"inferenceProfileId":"us.anthropic.claude-sonnet-4-5-20250929-v1:0","inferenceProfileName":"US Claude Sonnet 4.5","createdAt":"2025-09-29T00:00:00.123456789Z","status":"ACTIVE","type":"SYSTEM_DEFINED"}`
	c.out.Header().Set("Content-Type", "application/json")
	answer := one
	switch c.URL.EscapedPath() {
	case "/inference-profiles":
		answer = `{"inferenceProfileSummaries":[{"inferenceProfileId":"us.meta.llama4-scout-17b-instruct-v1:0","status":"ACTIVE"},` + one + `]}`
	case "/inference-profiles/us.anthropic.claude-sonnet-4-5-20250929-v1:0", "/inference-profiles/us.anthropic.claude-sonnet-4-5-20250929-v1%3A0":
	default:
		c.refuse(http.StatusNotFound, "ResourceNotFoundException", "The requested resource was not found.")
		return
	}
	c.bedrock.Models.log.answered(c.entry, nil)
	_, _ = io.WriteString(c.out, answer)
}

// base64Of returns bytes in base64, as a chunk holds them.
func base64Of(data []byte) string { return base64.StdEncoding.EncodeToString(data) }

var _ http.Handler = (*Bedrock)(nil)

// bedrockWriter turns an answer of Anthropic's API into one of Amazon Bedrock.
type bedrockWriter struct {
	http.ResponseWriter

	framing  bool // a stream is wanted
	counting bool
	broken   bool // checksums are wrong
	status   int
	rest     bytes.Buffer // an incomplete event of a stream; the whole answer of other requests that change
}

// refuse answers with an error.
func (w *bedrockWriter) refuse(status int, kind, message string) {
	w.framing, w.counting, w.status = false, false, status
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Amzn-Errortype", kind+":http://internal.amazon.com/coral/com.amazon.bedrock/")
	w.ResponseWriter.WriteHeader(status)
	writeBody(w.ResponseWriter, struct {
		Message string `json:"message"`
	}{message})
}

// WriteHeader implements http.ResponseWriter. An error is written by end, in Bedrock's form.
func (w *bedrockWriter) WriteHeader(status int) {
	if w.status = status; status != http.StatusOK || w.counting {
		w.Header().Del("Content-Length")
		return
	}
	if w.framing {
		w.Header().Del("Content-Length")
		w.Header().Set("Content-Type", "application/vnd.amazon.eventstream")
		w.Header().Set("X-Amzn-Bedrock-Content-Type", "application/json")
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (w *bedrockWriter) Write(p []byte) (int, error) {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	if w.status == http.StatusOK && !w.counting && !w.framing {
		return w.ResponseWriter.Write(p)
	}
	w.rest.Write(p)
	if w.status != http.StatusOK || w.counting {
		return len(p), nil
	}
	for {
		event, after, found := bytes.Cut(w.rest.Bytes(), []byte("\n\n"))
		if !found {
			return len(p), nil
		}
		for line := range bytes.SplitSeq(event, []byte("\n")) {
			if data, isData := bytes.CutPrefix(line, []byte("data: ")); isData {
				w.frame(data)
			}
		}
		left := bytes.Clone(after)
		w.rest.Reset()
		w.rest.Write(left)
	}
}

// Flush implements http.Flusher.
func (w *bedrockWriter) Flush() { _ = http.NewResponseController(w.ResponseWriter).Flush() }

// frame writes an event. Bedrock sends no pings.
func (w *bedrockWriter) frame(data []byte) {
	var event struct {
		Type  string `json:"type"`
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	_ = json.Unmarshal(data, &event)
	switch event.Type {
	case "ping":
	case "error":
		w.message([]string{":exception-type", "serviceUnavailableException", ":content-type", "application/json", ":message-type", "exception"},
			encode(map[string]string{"message": event.Error.Message}))
	default:
		padding := strings.Repeat("a", len(data)%16)
		w.message([]string{":event-type", "chunk", ":content-type", "application/json", ":message-type", "event"},
			[]byte(`{"bytes":"`+base64Of(data)+`","p":"`+padding+`"}`))
	}
}

// message writes a message of an event stream: lengths, headers of strings, the payload, and two checksums.
func (w *bedrockWriter) message(headers []string, payload []byte) {
	var head []byte
	for header := range slices.Chunk(headers, 2) {
		name, value := header[0], header[1]
		head = append(append(head, byte(len(name))), name...)                     //nolint:gosec // a few bytes
		head = binary.BigEndian.AppendUint16(append(head, 7), uint16(len(value))) //nolint:gosec // a few bytes
		head = append(head, value...)
	}
	const around = 16
	out := binary.BigEndian.AppendUint32(nil, uint32(around+len(head)+len(payload))) //nolint:gosec // the double's own answers are small
	out = binary.BigEndian.AppendUint32(out, uint32(len(head)))                      //nolint:gosec // a few bytes
	out = binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(out))
	out = append(append(out, head...), payload...)
	sum := crc32.ChecksumIEEE(out)
	if w.broken {
		sum++
	}
	_, _ = w.ResponseWriter.Write(binary.BigEndian.AppendUint32(out, sum))
}

// end writes what had to be complete first: an error, or a count.
func (w *bedrockWriter) end() {
	switch {
	case w.status != http.StatusOK:
		var said anthropicError
		_ = json.Unmarshal(w.rest.Bytes(), &said)
		kind, status := "ValidationException", w.status
		switch {
		case status == http.StatusTooManyRequests:
			kind, said.Error.Message = "ThrottlingException", "Too many requests, please wait before trying again."
		case status == http.StatusNotFound:
			kind = "ResourceNotFoundException"
		case status >= http.StatusInternalServerError:
			kind, status = "ServiceUnavailableException", http.StatusServiceUnavailable
		case strings.Contains(said.Error.Message, "prompt is too long"):
			said.Error.Message = "Input is too long for requested model."
		}
		w.refuse(status, kind, said.Error.Message)
	case w.counting:
		var count anthropicCount
		_ = json.Unmarshal(w.rest.Bytes(), &count)
		w.ResponseWriter.WriteHeader(http.StatusOK)
		writeBody(w.ResponseWriter, struct {
			InputTokens int `json:"inputTokens"`
		}{count.InputTokens})
	}
}
