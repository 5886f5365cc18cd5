package api

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/modules/semanticcache"
	"palimpsest/pipeline/prompt"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/spans"
	"palimpsest/pipeline/wire"
)

// answerAgain answers a request with an answer that was kept, byte for byte as the
// provider sent it then. The provider hears nothing of the exchange: nothing is
// learnt from it, and it costs nothing.
func (s *Server) answerAgain(c echo.Context, event *Event, post post, written *prompt.Prompt, found *inquiry) error {
	announced := s.Prompts.Announce(written, event.Client, event.At)
	s.recordRequest(c.Request().Context(), event, written, post.body)
	s.aside(c.Request().Context(), event, func() { s.recordAgain(event, post.codec, written, found.entry) })
	asksUsage := written.AsksUsage
	post.body.done()
	response := &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {found.entry.ContentType}},
		Body: io.NopCloser(bytes.NewReader(found.entry.Answer)), ContentLength: int64(len(found.entry.Answer)),
	}
	filter := withoutUsage(post.codec, prompt.Sent{AsksUsage: asksUsage}, response)
	announced.Wait(c.Request().Context())
	return finish(s.relay(c, event, response, ignore{}, filter, func() {}))
}

// recordAgain notes what is to be recorded of an answer that is given again.
func (s *Server) recordAgain(event *Event, codec wire.Codec, written *prompt.Prompt, entry *semanticcache.Entry) {
	event.position = len(written.Exchange.Digests)
	if written.Lane == nil {
		return
	}
	tap := codec.Tap(isStream(entry.ContentType))
	_, _ = tap.Write(entry.Answer) // a tap never fails
	seen := written.Lane.Seen(written.Exchange.Scope, event.Model, event.At)
	seen.Client, seen.Position, seen.Head = event.Client, event.position, written.Exchange.Chain[event.position]
	seen.Continued = session.HasHistory(written.Exchange.Digests)
	seen.Exchanges, seen.TokensBefore, seen.TokensAfter = 1, event.Report.Before, event.Report.After
	answer := tap.Answer()
	seen.Answer = answer.Spoken(codec)
	event.seen = &seen
}

// keep keeps an answer that has come to its end, if it may be given again. It never
// waits: what finds no room in the queue is not kept.
func (a *Answers) keep(event *Event, codec wire.Codec, asked *inquiry, response *http.Response, answer wire.Answer) {
	if asked == nil || asked.isLong || response.StatusCode != http.StatusOK || event.Aborted != "" || event.ErrorFrom != "" ||
		answer.ErrorType != "" || isEncoding(response.Header.Get("Content-Encoding")) {
		return
	}
	said := semanticcache.Answered{Format: codec.Format(), Complete: answer.Complete, StopReason: answer.StopReason}
	for _, raw := range answer.Messages {
		message, err := codec.Parse(raw)
		if err != nil {
			message.Blocks = []conversation.Block{{Kind: conversation.Opaque}}
		}
		said.Messages = append(said.Messages, message)
	}
	kept, portable := said.IsKept()
	if !kept {
		return
	}
	entry := semanticcache.Entry{
		Key: asked.question.Key, Answer: asked.copied, ContentType: response.Header.Get("Content-Type"),
		Model: event.Model, At: a.Now(), MicroUSD: event.CostMicroUSD,
	}
	if portable {
		entry.Alike, entry.Text = asked.question.Alike, asked.question.Text
	}
	expires := entry.At.Add(time.Duration(asked.config.TTLSeconds) * time.Second)
	_, span := spans.Start(event.traced.request.In(context.Background()), "keep answer")
	select {
	case a.queue <- keptAnswer{asked.workspace, entry, expires, span}:
		a.known.Set(knownKey{asked.workspace, entry.Key}, entry)
	default:
		a.Log.Warn("an answer is not kept: the queue is full", "workspace", asked.workspace)
	}
}
