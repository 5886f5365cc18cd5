package api

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"palimpsest/pipeline"
	"palimpsest/pipeline/modules/semanticcache"
	"palimpsest/pipeline/prompt"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/wire"
)

// ready is an answer that needs no provider.
type ready struct {
	contentType string
	body        []byte
}

// readyAnswer returns the answer to a request that needs no provider: a module's, otherwise a cached one; nil
// if the provider is needed.
func readyAnswer(forward forward, written *prompt.Prompt, cached *semanticcache.Lookup) *ready {
	if written.Exchange != nil && written.Exchange.Reply != nil && forward.purpose == converse {
		return replyOf(forward.codec, written.Exchange)
	}
	if entry := cached.Entry(); entry != nil {
		return &ready{contentType: entry.ContentType, body: entry.Answer}
	}
	return nil
}

// replyOf returns a module's answer in the client's format.
func replyOf(codec wire.Codec, exchange *pipeline.Exchange) *ready {
	answerer, is := codec.(wire.Answerer)
	if !is {
		return nil
	}
	reply, stream := exchange.Reply, exchange.Request.Stream
	said := wire.Said{ID: reply.ID, Model: exchange.Request.Model, Text: reply.Text, At: reply.At}
	if stream {
		return &ready{contentType: "text/event-stream; charset=utf-8", body: answerer.Answer(said, true)}
	}
	return &ready{contentType: "application/json", body: answerer.Answer(said, false)}
}

// answerReady answers a request without the provider: with a module's answer, or with a cached one, byte for
// byte as the provider sent it then. Since the provider doesn't see the exchange, it is free and teaches
// nothing about the provider.
func (s *Server) answerReady(c echo.Context, event *RequestLog, forward forward, written *prompt.Prompt, found *ready) error {
	announced := s.Prompts.Announce(written, event.Client, event.times.At)
	stored := s.recordRequest(c.Request().Context(), event, written, forward.body)
	s.aside(c.Request().Context(), event, func() { s.recordReady(event, forward.codec, written, found) })
	asksUsage, replied := written.AsksUsage, written.Exchange.Reply != nil
	forward.body.done()
	response := &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {found.contentType}},
		Body: io.NopCloser(bytes.NewReader(found.body)), ContentLength: int64(len(found.body)),
	}
	filter := withoutUsage(forward.codec, prompt.Sent{AsksUsage: asksUsage}, response)
	announced.Wait(c.Request().Context())
	if replied {
		waitFor(c.Request().Context(), stored)
	}
	return finish(s.relay(c, event, response, ignore{}, filter, func() {}))
}

// storedWithin bounds how long an answer waits for the request to be stored.
const storedWithin = time.Second

// waitFor waits until the request is stored, so that a client that continues from its summary at once finds
// its earlier history in the archive. Without a provider, the recorder has no other time to store it.
func waitFor(ctx context.Context, stored <-chan struct{}) {
	ctx, cancel := context.WithTimeout(ctx, storedWithin)
	defer cancel()
	select {
	case <-stored:
	case <-ctx.Done():
	}
}

// recordReady prepares the record of an answer that needed no provider.
func (s *Server) recordReady(event *RequestLog, codec wire.Codec, written *prompt.Prompt, found *ready) {
	event.record.position = len(written.Exchange.Digests)
	if written.Lane == nil {
		return
	}
	tap := codec.Tap(isStream(found.contentType))
	_, _ = tap.Write(found.body) // a tap never fails
	update := written.Lane.Update(written.Exchange.Scope, event.Model, event.times.At)
	update.Client, update.Position, update.Head = event.Client, event.record.position, written.Exchange.Chain[event.record.position]
	update.Continued = session.HasHistory(written.Exchange.Digests)
	update.Exchanges, update.TokensBefore, update.TokensAfter = 1, event.Report.Before, event.Report.After
	answer := tap.Answer()
	update.Answer, _ = event.record.redactor.JSON(answer.Spoken(codec)) // counted when the client sends it again
	event.record.update = &update
}
