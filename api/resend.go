package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"palimpsest/pipeline/wire"
	"palimpsest/pipeline/wire/formats"
	"palimpsest/tenants"
)

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
