package api

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"
	"golang.org/x/sync/errgroup"

	"palimpsest/api/upstream"
	"palimpsest/pipeline"
	"palimpsest/pipeline/prompt"
	"palimpsest/pipeline/spans"
	"palimpsest/pipeline/wire"
	"palimpsest/tenants"
)

// traced holds the spans of an exchange as a whole. The zero value means no tracing.
type traced struct {
	request   spans.Span
	inference spans.Span // the model's work: every attempt, to the end of the answer
	firstWord spans.Span // until the model's first text; zero afterwards
}

// receive begins the event of a request and its span. It returns the request with the trace in its context,
// which is canceled if the request's key is revoked.
func (s *Server) receive(c echo.Context, endpoint string) (*http.Request, *RequestLog) {
	request := c.Request()
	event := s.begin(request, endpoint)
	ctx, span := s.Tracer.Begin(request.Context(), request.Header, knownMethod(request.Method), endpoint)
	ctx, event.from.cancel = context.WithCancelCause(ctx)
	request = request.WithContext(ctx)
	c.SetRequest(request)
	event.traced.request = span
	return request, event
}

// infer returns ctx within the span of the model's work, which begins with the first attempt. Requests that
// only measure a prompt don't have such a span.
func infer(ctx context.Context, event *RequestLog, forward forward, written *prompt.Prompt) context.Context {
	if event.Attempts > 0 || forward.purpose == measure || !event.traced.request.IsOn() {
		return event.traced.inference.In(ctx)
	}
	operation := "chat"
	if forward.purpose == summarize {
		operation = "compact"
	}
	model := spans.Name(event.Model)
	ctx, span := spans.StartCall(ctx, operation, model)
	span.String(spans.Operation, operation)
	span.String(spans.Provider, event.Provider)
	span.String(spans.RequestModel, model)
	span.Bool(spans.RequestStream, event.Stream)
	span.String(spans.Conversation, idOf(event.Session))
	span.String(spans.ProviderKey, idOf(event.ProviderKey))
	host, port := upstream.HostOf(forward.target)
	span.String(spans.ServerAddress, host)
	span.Int(spans.ServerPort, port)
	if written.Exchange != nil && written.Exchange.Request.MaxOutput > 0 {
		span.Int(spans.MaxTokens, written.Exchange.Request.MaxOutput)
	}
	event.traced.inference = span
	if event.Stream && forward.purpose == converse {
		_, event.traced.firstWord = spans.Start(ctx, "first token")
	}
	return ctx
}

// hearing returns a tap that notes the start of the model's text, if that is traced.
func (r *Records) hearing(event *RequestLog, tap wire.Tap, response *http.Response) wire.Tap {
	if !event.traced.firstWord.IsOn() || !isEventStream(response) {
		return tap
	}
	return hearingTap{Tap: tap, now: r.Now, event: event}
}

// hearingTap ends the span of the first token with the first read that holds one.
type hearingTap struct {
	wire.Tap

	now   func() time.Time
	event *RequestLog
}

// Write implements wire.Tap.
func (h hearingTap) Write(p []byte) (int, error) {
	n, err := h.Tap.Write(p)
	traced := &h.event.traced
	if !traced.firstWord.IsOn() {
		return n, err
	}
	if answer := h.Answer(); answer.Said > 0 || answer.Complete {
		traced.inference.Seconds(spans.FirstChunk, (h.now().Sub(h.event.times.At) - h.event.times.Overhead).Seconds())
		traced.firstWord.End()
		traced.firstWord = spans.Span{}
	}
	return n, err
}

// answered adds an answer's facts about the model to the trace.
func (t *traced) answered(answer wire.Answer) {
	t.inference.String(spans.ResponseModel, spans.Name(answer.Model))
	t.inference.Strings(spans.FinishReasons, spans.Name(answer.StopReason))
	if answer.Usage.Reported {
		t.inference.Int(spans.InputTokens, answer.Usage.Prompt())
		t.inference.Int(spans.CacheRead, answer.Usage.CacheRead)
		t.inference.Int(spans.CacheWrite, answer.Usage.CacheWrite)
		t.inference.Int(spans.OutputTokens, answer.Usage.Output)
	}
}

// end ends the spans of an exchange.
func (t *traced) end(event *RequestLog) {
	if !t.request.IsOn() {
		return
	}
	failed := event.failureKind()
	t.inference.Int(spans.Attempts, event.Attempts)
	if failed != "" && event.Attempts > 0 {
		t.inference.Fail(failed)
	}
	t.inference.End()

	t.request.String(spans.Method, knownMethod(event.Method))
	t.request.String(spans.Route, event.Endpoint)
	t.request.Int(spans.Status, event.outcome.Status)
	t.request.String(spans.Request, event.ID.String())
	t.request.String(spans.Workspace, idOf(uuid.UUID(event.from.Workspace)))
	t.request.String(spans.APIKey, idOf(event.from.APIKey))
	t.request.String(spans.Session, idOf(event.Session))
	t.request.String(spans.Lane, idOf(event.Lane))
	t.request.String(spans.Client, spans.Name(event.Client))
	t.request.String(spans.Compression, string(event.Report.Compression))
	t.request.String(spans.Cache, string(event.Report.Cache))
	t.request.String(spans.Aborted, event.outcome.Aborted)
	t.request.String(spans.ErrorFrom, event.outcome.ErrorFrom)
	if event.Report.Compression != "" && event.Report.Compression != pipeline.Bypassed {
		t.request.Int(spans.TokensBefore, event.Report.Before)
		t.request.Int(spans.TokensAfter, event.Report.After)
	}
	if failed != "" && event.outcome.Aborted != "client" && (event.outcome.Status < http.StatusBadRequest || event.outcome.Status >= http.StatusInternalServerError) {
		t.request.Fail(failed)
	} else { // the client is to blame, not the server
		t.request.String(spans.ErrorType, failed)
	}
	t.request.End()
}

// failureKind returns the kind of failure that an exchange ended with; "" if it didn't fail.
func (e *RequestLog) failureKind() string {
	switch {
	case e.outcome.Aborted == "client":
		return spans.Canceled
	case e.outcome.Aborted == "provider", e.outcome.Aborted == "proxy":
		return spans.KindOf(e.outcome.Err)
	case e.outcome.ErrorFrom == "proxy" && e.outcome.Err != nil && spans.KindOf(e.outcome.Err) != spans.Other:
		return spans.KindOf(e.outcome.Err)
	case e.outcome.ErrorFrom == "proxy":
		return e.outcome.ErrorType
	case e.outcome.Status >= http.StatusBadRequest:
		return strconv.Itoa(e.outcome.Status)
	case e.outcome.ErrorFrom != "":
		return cmp.Or(spans.Name(e.outcome.ErrorType), spans.Other)
	default:
		return ""
	}
}

// knownMethod returns the method of a request, or a placeholder since clients may send any text.
func knownMethod(method string) string {
	if !slices.Contains(upstream.Methods(), method) {
		return spans.Other
	}
	return method
}

// idOf returns an id as text; "" if absent.
func idOf(id uuid.UUID) string {
	if id == uuid.Nil {
		return ""
	}
	return id.String()
}

const (
	// RecheckEvery is the interval for calls of Recheck, so that a request of a revoked key goes on for two
	// seconds at most.
	RecheckEvery = time.Second

	recheckAtOnce = 8 // keys
)

// underway holds the admitted requests that have not ended, by the secret of each.
type underway struct {
	mu sync.Mutex
	of map[string]map[*RequestLog]context.CancelCauseFunc
}

// enter adds a request and its cancel function. The returned function removes it.
func (u *underway) enter(secret string, event *RequestLog, cancel context.CancelCauseFunc) (leave func()) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.of == nil {
		u.of = map[string]map[*RequestLog]context.CancelCauseFunc{}
	}
	if u.of[secret] == nil {
		u.of[secret] = map[*RequestLog]context.CancelCauseFunc{}
	}
	u.of[secret][event] = cancel
	return func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		if delete(u.of[secret], event); len(u.of[secret]) == 0 {
			delete(u.of, secret)
		}
	}
}

// secrets returns the secrets of the requests under way.
func (u *underway) secrets() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	all := make([]string, 0, len(u.of))
	for secret := range u.of {
		all = append(all, secret)
	}
	return all
}

// end ends the requests with a secret.
func (u *underway) end(secret string, cause error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, cancel := range u.of[secret] {
		cancel(keyLost{cause})
	}
}

// keyLost says why an admitted request may not continue.
type keyLost struct{ error }

// Unwrap returns the cause.
func (e keyLost) Unwrap() error { return e.error }

// whyEnded returns why a request may not continue; nil if its context has not ended, or for another cause.
func whyEnded(ctx context.Context) error {
	if why, is := errors.AsType[keyLost](context.Cause(ctx)); is {
		return why.error
	}
	return nil
}

// Recheck ends the requests under way whose key may no longer send requests: it was revoked, it has expired,
// its workspace is suspended or deleted, or the person behind it was removed.
func (g *Gate) Recheck(ctx context.Context) {
	var checks errgroup.Group
	checks.SetLimit(recheckAtOnce)
	for _, secret := range g.underway.secrets() {
		checks.Go(func() error {
			if err := g.lost(ctx, secret); err != nil {
				g.underway.end(secret, err)
			}
			return nil
		})
	}
	_ = checks.Wait() // never fails
}

// lost returns why an admitted key may not send requests now; nil if it may, or if the database does not
// answer.
func (g *Gate) lost(ctx context.Context, secret string) error {
	key, err := g.Keys.Authenticate(ctx, secret)
	if err == nil && !slices.Contains(key.Scopes, tenants.ScopeProxy) {
		return tenants.ErrScopeMissing
	}
	for _, final := range []error{tenants.ErrKeyRevoked, tenants.ErrKeyExpired, tenants.ErrKeyUnknown, tenants.ErrSuspended} {
		if errors.Is(err, final) {
			return err
		}
	}
	return nil
}

// outcome is the result of a request.
type outcome struct {
	Status    int
	ErrorFrom string // "proxy", "provider"; "" without an error
	ErrorType string
	Aborted   string // side that ended the answer early: "client", "provider", or "proxy" if the key was revoked; "" if complete
	Err       error  // cause of one of our failures

	said []byte // the provider's refusal, without secrets; nil if it is not kept
}

// relayed notes that the provider's answer goes to the client, with its status.
func (o *outcome) relayed(status int) {
	o.Status = status
	if status >= http.StatusBadRequest {
		o.ErrorFrom = "provider"
	}
}

// failed notes the error type in the provider's answer.
func (o *outcome) failed(kind string) { o.ErrorFrom, o.ErrorType = "provider", kind }

// refused notes that we answer with one of our errors. cause is optional.
func (o *outcome) refused(status int, kind string, cause error) {
	o.Status, o.ErrorFrom, o.ErrorType, o.Err = status, "proxy", kind, cause
}

// brokeOff notes which side ended the answer early, and why, unless the client left.
func (o *outcome) brokeOff(side string, cause error) {
	o.Aborted = side
	if cause != nil {
		o.ErrorFrom, o.Err = side, cause
	}
}

// quoted keeps the text of the provider's refusal.
func (o *outcome) quoted(said []byte) { o.said = said }

// times are a request's arrival and the durations of its parts.
type times struct {
	At        time.Time
	Overhead  time.Duration // our own, before the provider is called
	Archiving time.Duration // the part of it that stored an epoch's originals
	TTFB      time.Duration
	Duration  time.Duration
}

// asked notes that our own work ends and the call of the provider begins.
func (t *times) asked(now time.Time) { t.Overhead = now.Sub(t.At) }

// archived notes how long it took to store originals.
func (t *times) archived(took time.Duration) { t.Archiving = took }

// heard notes the beginning of the provider's answer.
func (t *times) heard(now time.Time) { t.TTFB = now.Sub(t.At) - t.Overhead }

// ended notes that the client has the complete answer.
func (t *times) ended(now time.Time) { t.Duration = now.Sub(t.At) }
