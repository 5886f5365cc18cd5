package api

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"time"

	"palimpsest/pipeline/prompt"
	"palimpsest/pipeline/wire"
)

// learnTimeout bounds how long a window that was learnt takes to be stored.
const learnTimeout = 2 * time.Second

// rescue makes the one emergency pass: where the provider finds a prompt too long or its body too large,
// nothing of its answer has gone out yet, and a smaller prompt can be made, that
// one is sent. It returns the answer to relay and the prompt that it answers:
// unless the smaller one is answered well, those that it was given, byte for byte.
func (s *Server) rescue(ctx context.Context, event *Event, post post, written *prompt.Prompt, response *http.Response) (*http.Response, *prompt.Prompt) {
	if post.purpose != converse || post.call.asked.dryRun || post.call.asked.noStore {
		return response, written
	}
	said, overflows := overflowOf(post.codec, response)
	if !overflows {
		return response, written
	}
	s.learn(ctx, event, written, said)
	shrunk, ok := s.Prompts.Shrink(ctx, written, said)
	if !ok {
		return response, written
	}
	second, err := s.send(ctx, event, post, shrunk)
	if err != nil {
		return response, written
	}
	if second.StatusCode >= http.StatusBadRequest {
		_ = second.Body.Close()
		return response, written
	}
	_ = response.Body.Close()
	s.Metrics.archived.Add(float64(shrunk.Archived))
	event.describe(shrunk)
	return second, shrunk
}

// overflowOf reads an answer that may say that the prompt is too long or the body
// too large. The answer
// can still be relayed from its first byte.
func overflowOf(codec wire.Codec, response *http.Response) (wire.Overflow, bool) {
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

// resumed is an answer's body of which the beginning has been read before.
type resumed struct {
	io.Reader
	io.Closer
}

// learn keeps the window that a provider named, of a model that nobody knew or
// that has a smaller one here than elsewhere.
func (s *Server) learn(ctx context.Context, event *Event, written *prompt.Prompt, said wire.Overflow) {
	model := written.Exchange.Model
	if said.Window == 0 || model.Known && said.Window >= model.Window {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), learnTimeout)
	defer cancel()
	if err := s.Settings.learn(ctx, event.Workspace, model.Name, said.Window); err != nil {
		s.Log.WarnContext(ctx, "a model's window is not kept", "workspace", event.Workspace, "error", err)
	}
}
