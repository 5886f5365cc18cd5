package api

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"time"

	"palimpsest/pipeline/prompt"
	"palimpsest/pipeline/spans"
	"palimpsest/pipeline/wire"
)

// learnTimeout bounds how long a window that was learned takes to be stored.
const learnTimeout = 2 * time.Second

// rescue makes the one emergency pass: where the provider finds a prompt too long or its body too large,
// nothing of its answer has gone out yet, and a smaller prompt can be made, that
// one is sent. It returns the answer to relay and the prompt that it answers:
// unless the smaller one is answered well, those that it was given, byte for byte.
func (s *Server) rescue(ctx context.Context, event *RequestLog, forward forward, written *prompt.Prompt, response *http.Response) (*http.Response, *prompt.Prompt) {
	if forward.purpose != converse || forward.asked.dryRun || forward.asked.noStore {
		return response, written
	}
	said, overflows := overflowOf(forward.codec, response, written.MayBeTooLong)
	if !overflows {
		return response, written
	}
	s.learn(ctx, event, written, said)
	shrinking, span := spans.Start(ctx, "shrink prompt")
	shrunk, ok := s.Prompts.Shrink(shrinking, written, said)
	span.End()
	if !ok {
		return response, written
	}
	second, err := s.send(ctx, event, forward, shrunk)
	if err != nil {
		return response, written
	}
	if _, again := overflowOf(forward.codec, second, always); again || second.StatusCode >= http.StatusBadRequest {
		_ = second.Body.Close()
		return response, written
	}
	_ = response.Body.Close()
	s.Metrics.Recorded.Archived.Add(float64(shrunk.Archived))
	s.Metrics.Recorded.Redact(shrunk.Redacted)
	event.describe(shrunk)
	return second, shrunk
}

func always() bool { return true }

// overflowOf reads an answer that may say that the prompt is too long or the body
// too large; a stream only if mayBeLate says so. The answer can still be relayed from
// its first byte.
func overflowOf(codec wire.Codec, response *http.Response, mayBeLate func() bool) (wire.Overflow, bool) {
	refuser, isLate := codec.(wire.LateRefuser)
	isPlain := isEventStream(response) && !isEncoding(response.Header.Get("Content-Encoding"))
	if isLate && isPlain && response.StatusCode == http.StatusOK && mayBeLate() {
		return lateOverflowOf(refuser, response)
	}
	isOverflow := response.StatusCode == http.StatusBadRequest || response.StatusCode == http.StatusRequestEntityTooLarge
	if !isOverflow || response.ContentLength > wire.MaxError {
		return wire.Overflow{}, false
	}
	head, err := io.ReadAll(io.LimitReader(response.Body, wire.MaxError+1))
	response.Body = &resumed{Reader: io.MultiReader(bytes.NewReader(head), response.Body), Closer: response.Body}
	if err != nil || len(head) > wire.MaxError {
		return wire.Overflow{}, false
	}
	plain, err := decoded(response.Header.Get("Content-Encoding"), head, wire.MaxError)
	if err != nil {
		return wire.Overflow{}, false
	}
	return codec.Overflow(response.StatusCode, plain)
}

// maxOpening bounds what is held back of a stream, in bytes: the first events repeat
// the request's instructions and tools.
const maxOpening = 1 << 20

// lateOverflowOf reads the opening of a stream, up to the first event that says more
// than that it has begun: the prompt may be too long. A comment is someone who keeps
// the connection alive for the client, and ends it too.
func lateOverflowOf(codec wire.LateRefuser, response *http.Response) (said wire.Overflow, overflows bool) {
	var (
		split wire.Splitter
		head  []byte
		err   error
	)
	isOpening := true
	buffer := make([]byte, streamBuffer)
	for isOpening && err == nil && len(head) < maxOpening {
		var n int
		n, err = response.Body.Read(buffer)
		head = append(head, buffer[:n]...)
		split.Write(buffer[:n], func(event wire.Event) {
			if isOpening && !codec.IsOpening(event) {
				isOpening = false
				said, overflows = codec.LateOverflow(event)
			}
		})
		isOpening = isOpening && !hasComment(head, len(head)-n)
	}
	response.Body = &resumed{Reader: io.MultiReader(bytes.NewReader(head), response.Body), Closer: response.Body}
	return said, overflows
}

// hasComment reports whether a line of a stream begins with a colon, of what has come
// from position from on.
func hasComment(stream []byte, from int) bool {
	late := stream[max(0, from-1):]
	return bytes.HasPrefix(stream, []byte(":")) || bytes.Contains(late, []byte("\n:")) || bytes.Contains(late, []byte("\r:"))
}

// resumed is an answer's body of which the beginning has been read before.
type resumed struct {
	io.Reader
	io.Closer
}

// learn keeps the window that a provider named, of a model that nobody knew or
// that has a smaller one here than elsewhere.
func (s *Server) learn(ctx context.Context, event *RequestLog, written *prompt.Prompt, said wire.Overflow) {
	model := written.Exchange.Model
	if said.Window == 0 || model.Known && said.Window >= model.Window {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), learnTimeout)
	defer cancel()
	if err := s.Settings.Learn(ctx, event.Workspace, model.Name, said.Window); err != nil {
		s.Log.WarnContext(ctx, "a model's window is not kept", "workspace", event.Workspace, "error", err)
	}
}
