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

// learnTimeout bounds how long it may take to store a learned window.
const learnTimeout = 2 * time.Second

// rescue makes the single emergency pass. If the provider finds a prompt too long or its body too large, the
// answer hasn't started and a smaller prompt is possible, it sends the smaller one. It returns the answer to
// relay and its prompt. Unless the smaller prompt succeeds, these are the ones it was given, byte for byte.
func (s *Server) rescue(ctx context.Context, event *RequestLog, forward forward, written *prompt.Prompt, response *http.Response) (*http.Response, *prompt.Prompt) {
	if forward.purpose != converse || forward.asked.dryRun || forward.asked.noStore {
		return response, written
	}
	most := written.Exchange.Request.MaxOutput
	said, usage, overflows := overflowOf(forward.codec, response, most, written.MayBeTooLong)
	if !overflows {
		return response, written
	}
	s.learn(ctx, event, written.Teaches(said))
	written.Exchange.Report.Events = event.Report.Events // with those of sending, for the second prompt
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
	if _, _, again := overflowOf(forward.codec, second, most, always); again || second.StatusCode >= http.StatusBadRequest {
		_ = second.Body.Close()
		return response, written
	}
	_ = response.Body.Close()
	event.money.first(written.Price(usage))
	s.Metrics.Recorded.Archived.Add(float64(shrunk.Archived))
	s.Metrics.Recorded.Redact(shrunk.Redacted)
	event.describe(shrunk)
	return second, shrunk
}

func always() bool { return true }

// overflowOf reads an answer that may report a prompt as too long or its body as too large. It reads an
// answer without an error only if mayBeLate says so. most is the request's limit for the answer. usage is the
// provider's charge even so. The answer can still be relayed from its first byte.
func overflowOf(codec wire.Codec, response *http.Response, most int, mayBeLate func() bool) (said wire.Overflow, usage wire.Usage, overflows bool) {
	isPlain := !isEncoding(encodingOf(response.Header))
	switch {
	case response.StatusCode >= http.StatusBadRequest:
		plain, whole := errorOf(response)
		if !whole {
			return wire.Overflow{}, wire.Usage{}, false
		}
		said, overflows = wire.ReadOverflow(response.StatusCode, plain)
		return said, wire.Usage{}, overflows
	case response.StatusCode != http.StatusOK || !isPlain || !mayBeLate():
		return wire.Overflow{}, wire.Usage{}, false
	}
	tap := codec.Tap(isEventStream(response))
	if isEventStream(response) {
		holdOpening(codec, response, tap)
	} else if head, whole := headOf(response); whole {
		_, _ = tap.Write(head) // a tap never fails
	}
	answer := tap.Answer()
	said, overflows = answer.Overflow(most)
	return said, answer.Usage, overflows && answer.SaysLittle()
}

// errorOf reads the body of an error, decoded, up to wire.MaxError bytes, and reports whether it is complete.
// The answer can still be relayed from its first byte.
func errorOf(response *http.Response) (plain []byte, whole bool) {
	head, whole := headOf(response)
	plain, err := decoded(encodingOf(response.Header), head, wire.MaxError)
	return plain, whole && err == nil
}

// headOf reads the body of an answer up to wire.MaxError bytes, and reports whether it is complete. The
// answer can still be relayed from its first byte.
func headOf(response *http.Response) (head []byte, whole bool) {
	if response.ContentLength > wire.MaxError {
		return nil, false
	}
	head, err := io.ReadAll(io.LimitReader(response.Body, wire.MaxError+1))
	resume(response, head)
	return head, err == nil && len(head) <= wire.MaxError
}

// resume puts head, the part already read, back in front of an answer's body.
func resume(response *http.Response, head []byte) {
	response.Body = &resumed{Reader: io.MultiReader(bytes.NewReader(head), response.Body), Closer: response.Body}
}

// maxOpening bounds the held-back opening of a stream, in bytes. It is large because the first events repeat
// the request's instructions and tools.
const maxOpening = 1 << 20

// holdOpening reads the opening of a stream, with tap beside, because the prompt may be too long. It stops at
// the first event that says more than that the stream has begun. It also stops at the second event or comment
// that keeps the client's connection alive.
func holdOpening(codec wire.Codec, response *http.Response, tap wire.Tap) {
	var (
		split wire.Splitter
		head  []byte
		err   error
	)
	isOpening, alive := true, 0
	buffer := make([]byte, streamBuffer)
	for isOpening && err == nil && len(head) < maxOpening {
		var n int
		n, err = response.Body.Read(buffer)
		head = append(head, buffer[:n]...)
		_, _ = tap.Write(buffer[:n]) // a tap never fails
		split.Write(buffer[:n], func(event wire.Event) {
			switch codec.Opening(event) {
			case wire.Begun:
				isOpening = false
			case wire.IsAlive:
				alive++
			case wire.Opens:
			}
		})
		isOpening = isOpening && alive+comments(head) <= 1
	}
	resume(response, head)
}

// comments counts the lines of a stream that begin with a colon.
func comments(stream []byte) int {
	count := bytes.Count(stream, []byte("\n:")) + bytes.Count(stream, []byte("\r:"))
	if bytes.HasPrefix(stream, []byte(":")) {
		count++
	}
	return count
}

// resumed is an answer's body whose beginning has already been read.
type resumed struct {
	io.Reader
	io.Closer
}

// learn stores a window size that a provider has revealed, for a model with an unknown window or with a
// smaller one here than elsewhere.
func (s *Server) learn(ctx context.Context, event *RequestLog, lesson prompt.Lesson) {
	if lesson.Window == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), learnTimeout)
	defer cancel()
	if err := s.Settings.Learn(ctx, event.from.Workspace, lesson.Model, lesson.Window); err != nil {
		s.Log.WarnContext(ctx, "a model's window is not kept", "workspace", event.from.Workspace, "error", err)
	}
}
