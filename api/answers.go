package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"palimpsest/pipeline"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/modules/semanticcache"
	"palimpsest/pipeline/prompt"
	"palimpsest/pipeline/wire"
	"palimpsest/pipeline/wire/formats"
	"palimpsest/tenants"
	"palimpsest/tenants/redaction"
)

// lookUp looks for a cached answer to a request; nil if the request isn't for the cache.
func lookUp(ctx context.Context, answers *semanticcache.Cache, event *RequestLog, forward forward, written *prompt.Prompt) *semanticcache.Lookup {
	if answers == nil || event.Report.Cache != pipeline.CacheMiss {
		return nil
	}
	exchange, header := written.Exchange, forward.request.Header
	request := semanticcache.Request{
		Asked: semanticcache.Asked{Format: forward.codec.Format(), Rules: forward.codec.Reuse(), Body: written.Body, Origin: []string{
			string(forward.target.Provider), forward.target.BaseURL, forward.target.KeyID.String(),
			pathAndQuery(forward.request, forward.endpoint), strconv.FormatBool(exchange.Request.Stream), written.Beta,
		}},
		Config:    pipeline.SettingsOf[semanticcache.Config](exchange.Config),
		Workspace: forward.key.Workspace, APIKey: forward.key.ID, Person: forward.key.Person,
		Project: exchange.Scope.Project, EndUser: exchange.Scope.EndUser,
		HasHistory: forward.purpose != converse || exchange.Lane.Projection != nil,
		NoStore:    forward.asked.noStore || asksNoStore(header) || holdsPersonalData(event.record.redactor, written.Body),
		BringsKey:  forward.asked.choice.Key != "",
	}
	for _, name := range []string{"Anthropic-Version", "Anthropic-Beta", "Openai-Organization", "Openai-Project", "Openai-Beta"} {
		request.Origin = append(request.Origin, strings.Join(header.Values(name), ","))
	}
	if written.Lane != nil {
		request.Session = written.Lane.Session
	}
	return answers.Look(ctx, &event.Report, request)
}

// asksNoStore reports whether a client wants neither an earlier answer nor this one kept for later requests.
func asksNoStore(header http.Header) bool {
	return slices.ContainsFunc(header.Values("Cache-Control"), func(line string) bool {
		line = strings.ToLower(line)
		return strings.Contains(line, "no-store") || strings.Contains(line, "no-cache")
	})
}

// holdsPersonalData reports whether a redactor would replace something in a message. Such a message is
// neither cached nor looked up, because the next similar one may be about another person.
func holdsPersonalData(redactor *redaction.Redactor, raw []byte) bool {
	_, found := redactor.JSON(raw)
	return len(found) > 0
}

// keepAnswer caches an answer for equal requests, if it may be reused.
func keepAnswer(answers *semanticcache.Cache, event *RequestLog, codec wire.Codec, asked *semanticcache.Lookup, response *http.Response, answer wire.Answer) {
	if asked == nil || response.StatusCode != http.StatusOK || event.outcome.Aborted != "" || event.outcome.ErrorFrom != "" ||
		answer.ErrorType != "" || isEncoding(encodingOf(response.Header)) {
		return
	}
	said := semanticcache.Answered{Rules: codec.Reuse(), Complete: answer.Complete, StopReason: answer.StopReason}
	for _, raw := range answer.Messages {
		if holdsPersonalData(event.record.redactor, raw) {
			return
		}
		message, err := codec.Parse(raw)
		if err != nil {
			message.Blocks = []conversation.Block{{Kind: conversation.Opaque}}
		}
		said.Messages = append(said.Messages, message)
	}
	answers.Keep(event.traced.request.In(context.Background()), asked, said, semanticcache.Entry{
		ContentType: response.Header.Get("Content-Type"), Model: event.Model, MicroUSD: event.money.CostMicroUSD, AskedAt: event.times.At,
	})
}

// copyTap copies an answer on its way to the client.
type copyTap struct {
	wire.Tap

	into io.Writer
}

// beside returns tap, and copies its input to a lookup unless asked is nil.
func beside(tap wire.Tap, asked *semanticcache.Lookup) wire.Tap {
	if asked == nil {
		return tap
	}
	return copyTap{Tap: tap, into: asked}
}

// Write implements wire.Tap.
func (c copyTap) Write(p []byte) (int, error) {
	_, _ = c.into.Write(p) // it never fails
	return c.Tap.Write(p)
}

// Interface guard.
var _ wire.Tap = copyTap{}

// againHeader marks a request that was sent again from the dashboard, with the id of the first request.
const againHeader = tagHeader + tenants.ResendTag

// Resender sends archived requests again for people of the dashboard. They go through the proxy like a
// client's own: the key's scopes, addresses, models, budgets and pipeline apply.
type Resender struct {
	// KeyOf returns an API key that a member created and may use now. In addition to the error kinds of API
	// keys it returns tenants.ErrNotFound.
	KeyOf func(ctx context.Context, workspace tenants.WorkspaceID, person, id uuid.UUID) (tenants.APIKey, error)
	Proxy *Server
}

// Send sends a request with one of the person's API keys and waits until the exchange is recorded. from is
// the person's request to the dashboard. Refusals by the proxy or the provider are exchanges as well. It
// returns the errors of KeyOf, and an error if the exchange wasn't recorded.
func (r Resender) Send(from *http.Request, who tenants.Principal, key uuid.UUID, request tenants.Resend) (uuid.UUID, error) {
	ctx := from.Context()
	used, err := r.KeyOf(ctx, who.Workspace.ID, who.User.ID, key)
	if err != nil {
		return uuid.Nil, err
	}
	codec, known := formats.AtPath(request.Endpoint)
	if !known {
		return uuid.Nil, fmt.Errorf("send request %s again: %s carries no conversation", request.Of, request.Endpoint)
	}
	sent := &sentAgain{key: used, recorded: make(chan uuid.UUID, 1)}
	again, err := http.NewRequestWithContext(context.WithValue(ctx, againKey{}, sent), http.MethodPost, request.Endpoint, bytes.NewReader(request.Body))
	if err != nil {
		return uuid.Nil, fmt.Errorf("send request %s again: %w", request.Of, err)
	}
	again.RemoteAddr, again.Header = from.RemoteAddr, againHeaders(codec.Traits(), from.Header, request.Of)
	switch request.Pipeline {
	case tenants.ResendAsConfigured:
	case tenants.ResendUnchanged:
		again.Header.Set("X-Palimpsest-Pipe", string(request.Pipeline))
	default:
		again.Header.Set("X-Palimpsest-Target-Utilization", string(request.Pipeline))
	}
	c := echo.New().NewContext(again, unheard{header: http.Header{}})
	if err := r.Proxy.exchange(codec, request.Endpoint, converse)(c); err != nil && !errors.Is(err, errBrokeOff) && !errors.Is(err, http.ErrAbortHandler) {
		return uuid.Nil, fmt.Errorf("send request %s again: %w", request.Of, err)
	}
	select {
	case id := <-sent.recorded:
		if id == uuid.Nil {
			return uuid.Nil, fmt.Errorf("send request %s again: it was sent and could not be recorded", request.Of)
		}
		return id, nil
	case <-ctx.Done():
		return uuid.Nil, fmt.Errorf("wait until request %s is recorded: %w", request.Of, ctx.Err())
	}
}

// againHeaders returns the headers of a request that is sent again: its origin as seen by the dashboard, and
// a session of its own, so that it never continues the first one's session.
func againHeaders(traits wire.Traits, from http.Header, of uuid.UUID) http.Header {
	header := http.Header{
		"Content-Type": {echo.MIMEApplicationJSON}, "User-Agent": {"palimpsest-dashboard"},
		"X-Palimpsest-Session-Id": {"sent-again-" + uuid.NewString()},
	}
	if traits.VersionHeader != "" {
		header.Set(traits.VersionHeader, traits.Version)
	}
	header.Set(againHeader, of.String())
	for _, name := range []string{echo.HeaderXForwardedFor, echo.HeaderXRealIP} {
		if values := from.Values(name); len(values) > 0 {
			header[http.CanonicalHeaderKey(name)] = values
		}
	}
	return header
}

type againKey struct{}

// sentAgain is a request that a member sends again.
type sentAgain struct {
	key      tenants.APIKey
	recorded chan uuid.UUID // receives the exchange's id when it is durable, or uuid.Nil if it was dropped
}

// againIn returns the resent request of a context; nil for a client's request.
func againIn(ctx context.Context) *sentAgain {
	sent, _ := ctx.Value(againKey{}).(*sentAgain)
	return sent
}

// ended returns the recorder's callback for the exchange with an id. It is nil if the request was not sent
// again.
func (s *sentAgain) ended(id uuid.UUID) func(stored bool) {
	if s == nil {
		return nil
	}
	return func(stored bool) {
		if !stored {
			id = uuid.Nil
		}
		s.recorded <- id
	}
}

// unheard discards the bytes of an answer, because it is read from the archive instead.
type unheard struct{ header http.Header }

// Header implements http.ResponseWriter.
func (u unheard) Header() http.Header { return u.header }

// Write implements http.ResponseWriter.
func (unheard) Write(b []byte) (int, error) { return len(b), nil }

// WriteHeader implements http.ResponseWriter.
func (unheard) WriteHeader(int) {}

// Flush implements http.Flusher.
func (unheard) Flush() {}
