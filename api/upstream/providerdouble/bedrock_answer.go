package providerdouble

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"net/http"
	"slices"
	"strings"
)

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
