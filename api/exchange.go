package api

import (
	"context"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/prompt"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/wire"
	"palimpsest/tenants"
)

// exchange handles the requests of one wire format: authenticate, read, write
// the prompt, send, relay the answer, record.
func (s *Server) exchange(codec wire.Codec, endpoint string) echo.HandlerFunc {
	provider := providerOf(codec.Format())
	return func(c echo.Context) error {
		request := c.Request()
		ctx := request.Context()
		event := s.begin(request, endpoint)
		defer s.end(ctx, event)

		key, err := s.authenticate(request, event)
		if err != nil {
			return s.refuse(c, codec, event, err)
		}
		asked, err := readControls(request.Header)
		if err != nil {
			return s.refuse(c, codec, event, err)
		}
		target, err := s.Settings.target(ctx, key.Workspace, provider, asked)
		if err != nil {
			return s.refuse(c, codec, event, err)
		}
		event.Provider = string(target.Provider)
		written, err := s.write(ctx, codec, key, asked, request)
		if err != nil {
			return s.refuse(c, codec, event, err)
		}
		event.describe(written)
		event.Overhead = s.Now().Sub(event.At)

		event.Attempts = 1
		if written.Beta != "" {
			request.Header.Add("Anthropic-Beta", written.Beta)
		}
		response, err := s.Upstream.Send(ctx, request.Method, pathAndQuery(request, endpoint), request.Header, written.Body, target)
		if err != nil {
			return s.refuse(c, codec, event, err)
		}
		defer response.Body.Close()
		event.TTFB = s.Now().Sub(event.At) - event.Overhead
		s.recordRequest(event, written)
		sent := written.Sent() // from here on nothing holds the body

		tap := codec.Tap(isEventStream(response))
		err = s.relay(c, event, response, tap)
		s.recordAnswer(event, sent, tap.Answer())
		return finish(err)
	}
}

// write reads a request's body and takes it through the pipeline that holds for
// its key.
func (s *Server) write(ctx context.Context, codec wire.Codec, key tenants.APIKey, asked controls, request *http.Request) (*prompt.Prompt, error) {
	layer, err := asked.layer()
	if err != nil {
		return nil, err
	}
	config, _, err := s.Settings.config(ctx, key, layer)
	if err != nil {
		return nil, err
	}
	body, err := readBody(request)
	if err != nil {
		return nil, err
	}
	return s.Prompts.Write(ctx, prompt.Request{
		Scope: session.Scope{Workspace: key.Workspace, APIKey: key.ID, Format: codec.Format()},
		Codec: codec, Config: config, Body: body, Bypass: asked.bypass, Long: asksLongWindow(request.Header),
		Hint: func(read wire.Request) session.Hint { return hint(request.Header, asked, read) },
	})
}

// asksLongWindow reports whether a request turns on the long context window that
// some of Anthropic's models have.
func asksLongWindow(header http.Header) bool {
	return strings.Contains(strings.Join(header.Values("Anthropic-Beta"), ","), "context-1m-")
}

// describe fills the event with what is known before the request is sent.
func (e *Event) describe(written *prompt.Prompt) {
	exchange := written.Exchange
	e.ID = exchange.ID
	e.Model, e.ModelFamily = exchange.Request.Model, modelFamily(exchange.Model.Family)
	e.Stream = exchange.Request.Stream
	e.Report = exchange.Report
	if lane := written.Lane; lane != nil {
		e.Session, e.Lane, e.Source = lane.Session, lane.ID, lane.Source
	}
}

// providerOf returns the provider whose dialect a format is.
func providerOf(format conversation.Format) tenants.Provider {
	if format == conversation.Anthropic {
		return tenants.ProviderAnthropic
	}
	return tenants.ProviderOpenAI
}

// pathAndQuery returns a path with the request's query.
func pathAndQuery(request *http.Request, path string) string {
	if request.URL.RawQuery == "" {
		return path
	}
	return path + "?" + request.URL.RawQuery
}

// isEventStream reports whether an answer is a stream of events.
func isEventStream(response *http.Response) bool {
	return strings.HasPrefix(strings.ToLower(response.Header.Get("Content-Type")), "text/event-stream")
}
