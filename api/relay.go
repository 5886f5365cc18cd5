package api

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"palimpsest/api/upstream"
	"palimpsest/pipeline"
	"palimpsest/pipeline/modules"
	"palimpsest/pipeline/prompt"
	"palimpsest/pipeline/spans"
	"palimpsest/pipeline/wire"
	"palimpsest/tenants"
)

// The size of reads of an answer in bytes. It is small because there may be thousands of streams, with small
// events.
const (
	streamBuffer = 4 << 10
	relayBuffer  = 32 << 10
)

// relay passes an answer on as it arrives, with tap beside: it writes every read and flushes it at once,
// unless it is the last. filter, which may be nil, removes a part. relay calls whole, maybe several times,
// before it writes a read that may complete the answer; tap has read it by then. If an answer ends early, it
// does so for the client too; relay never adds anything to its end.
func (s *Server) relay(c echo.Context, event *RequestLog, response *http.Response, tap wire.Tap, filter wire.Filter, whole func()) (err error) {
	_, span := spans.Start(event.traced.inference.In(c.Request().Context()), "relay answer")
	defer span.EndWith(&err)
	header := c.Response().Header()
	upstream.CopyResponseHeader(header, response.Header)
	event.outcome.relayed(response.StatusCode)
	sign(header, event)
	if response.ContentLength >= 0 {
		header.Set("Content-Length", strconv.FormatInt(response.ContentLength, 10))
	}
	c.Response().WriteHeader(response.StatusCode)
	if isEventStream(response) {
		c.Response().Flush() // the first event may take a while
	}
	refusal := refusalOf(event, response)
	defer s.aside(c.Request().Context(), event, func() { event.outcome.quoted(refusal.text()) })

	var buffer []byte
	if isEventStream(response) {
		buffer = make([]byte, streamBuffer)
	} else {
		large := s.buffer()
		defer s.buffers.Put(large)
		buffer = *large
	}
	missing := response.ContentLength // negative if unknown
	for {
		n, readErr := response.Body.Read(buffer)
		missing -= int64(n)
		chunk := buffer[:n]
		isLast := n > 0 && (missing == 0 || isEventStream(response) && mayEnd(chunk))
		if isLast {
			_, _ = tap.Write(chunk) // a tap never fails
			s.aside(c.Request().Context(), event, whole)
		}
		if err := pass(c.Response(), filter, buffer[:n], missing != 0, readErr != nil); err != nil {
			event.outcome.brokeOff("client", nil)
			return nil
		}
		if n > 0 && !isLast {
			_, _ = tap.Write(chunk)
		}
		if n > 0 {
			refusal.hear(chunk)
		}
		switch {
		case readErr == nil:
		case errors.Is(readErr, io.EOF):
			return nil
		case whyEnded(c.Request().Context()) != nil:
			event.outcome.brokeOff("proxy", whyEnded(c.Request().Context()))
			return errBrokeOff
		case c.Request().Context().Err() != nil:
			event.outcome.brokeOff("client", nil)
			return nil
		default:
			event.outcome.brokeOff("provider", readErr)
			return errBrokeOff
		}
	}
}

// mayEnd reports whether a read of a stream may hold the last event that clients wait for.
func mayEnd(chunk []byte) bool {
	for _, last := range []string{"message_stop", "[DONE]", "response.completed", "response.incomplete", "response.failed", `"finishReason"`} {
		if bytes.Contains(chunk, []byte(last)) {
			return true
		}
	}
	return false
}

// pass writes a read of an answer, except the filtered part, and flushes it if more follows. ended says that
// this read is the last.
func pass(to *echo.Response, filter wire.Filter, chunk []byte, more, ended bool) error {
	if filter != nil {
		chunk = filter.Pass(chunk)
		if ended {
			chunk = append(chunk, filter.End()...)
		}
	}
	if len(chunk) == 0 {
		return nil
	}
	if _, err := to.Write(chunk); err != nil {
		return fmt.Errorf("write answer: %w", err)
	}
	if more {
		to.Flush()
	}
	return nil
}

// finish ends a handler after its relay. It aborts the connection if the answer ended early, so that the
// client does not take it for complete.
func finish(err error) error {
	if errors.Is(err, errBrokeOff) {
		panic(http.ErrAbortHandler)
	}
	return err
}

// errBrokeOff is the error for an answer that ended early.
var errBrokeOff = errors.New("the answer ended early")

// serverTiming is our only header from a standard (W3C, Server Timing).
const serverTiming = "Server-Timing"

// sign adds our own headers to the provider's. The headers forbid browsers to run any of an answer, because
// it is shown on the origin of the dashboard and its content depends on the chosen base URL.
func sign(header http.Header, event *RequestLog) {
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Content-Security-Policy", "sandbox; default-src 'none'")
	report := &event.Report
	set := func(name, value string) { header.Set("X-Palimpsest-"+name, value) }
	note := func(name, value string) {
		set(name, value)
		event.note(name, value)
	}
	set("Request-Id", event.ID.String())
	signLimits(note, event.held.ticket)
	if event.outcome.ErrorFrom != "" {
		set("Error-Source", event.outcome.ErrorFrom)
	}
	if event.Provider != "" {
		set("Provider", event.Provider)
		set("Attempts", strconv.Itoa(event.Attempts))
		set("Overhead-Ms", milliseconds(event.times.Overhead))
		timing := "palimpsest;dur=" + milliseconds(event.times.Overhead-event.times.Archiving) +
			", archive;dur=" + milliseconds(event.times.Archiving) + ", provider;dur=" + milliseconds(event.times.TTFB)
		header.Set(serverTiming, timing)
		if event.times.Archiving > 0 {
			event.note(serverTiming, timing)
		}
	}
	if report.Compression == "" {
		return
	}
	if event.Source != "" {
		set("Session-Id", event.Session.String())
		note("Session-Source", event.Source)
		set("Lane", event.Lane.String())
	}
	if trial := event.Trial; trial != nil {
		note("Dry-Run", fmt.Sprintf("%s; before=%d; after=%d; levels=%s", trial.Compression, trial.Before, trial.After, pipeline.LevelList(trial.Levels)))
	}
	for _, told := range modules.Catalog().Headers(*report, event.Model != "") {
		set(told.Name, told.Value)
	}
}

// buffer returns a buffer of relayBuffer bytes.
func (s *Server) buffer() *[]byte {
	if buffer, ok := s.buffers.Get().(*[]byte); ok {
		return buffer
	}
	buffer := make([]byte, relayBuffer)
	return &buffer
}

func milliseconds(d time.Duration) string {
	return strconv.FormatFloat(float64(d.Microseconds())/1000, 'f', 2, 64)
}

// streamShare is a rough number of stream bytes per byte of the model's text.
const streamShare = 8

// guardedTap protects the client from its tap: a panic in the tap becomes its answer's Failure, and ends its
// reading.
type guardedTap struct {
	tap     wire.Tap
	stream  bool
	heard   int // bytes, including unreadable ones
	failure string
}

func guard(tap wire.Tap, stream bool) *guardedTap { return &guardedTap{tap: tap, stream: stream} }

// Write implements wire.Tap.
func (g *guardedTap) Write(p []byte) (int, error) {
	g.heard += len(p)
	if g.failure == "" {
		defer g.survive()
		_, _ = g.tap.Write(p) // a tap never fails
	}
	return len(p), nil
}

// Answer implements wire.Tap. If the answer could not be read, it says just enough to estimate the usage.
func (g *guardedTap) Answer() wire.Answer {
	answer := g.read()
	answer.Failure = cmp.Or(g.failure, answer.Failure)
	if answer.Failure == "" {
		return answer
	}
	answer.Messages, answer.Complete = nil, false
	if answer.Said == 0 {
		answer.Said = g.heard
		if g.stream {
			answer.Said /= streamShare
		}
	}
	return answer
}

func (g *guardedTap) read() wire.Answer {
	defer g.survive()
	return g.tap.Answer()
}

// survive recovers from a panic.
func (g *guardedTap) survive() {
	if value := recover(); value != nil {
		g.failure = panicked(value)
	}
}

// aside does work on an answer without any effect on the client: a panic in work is logged and counted.
func (r *Records) aside(ctx context.Context, event *RequestLog, work func()) {
	defer func() {
		if value := recover(); value != nil {
			r.unread(ctx, event, panicked(value))
		}
	}()
	work()
}

// panicked describes the value of a panic, and its stack.
func panicked(value any) string { return fmt.Sprintf("%v\n%s", value, debug.Stack()) }

// unread logs that an answer could not be read completely.
func (r *Records) unread(ctx context.Context, event *RequestLog, failure string) {
	r.Log.ErrorContext(ctx, "reading an answer panicked; its client has it whole", "request", event.ID, "error", failure)
	r.Metrics.answer.unread.Inc()
}

// Interface guard.
var _ wire.Tap = (*guardedTap)(nil)

// maxPlain bounds the number of remembered provider keys.
const maxPlain = 10_000

// plainKeys are the provider keys whose servers don't support the usage option of streams. The zero value is
// ready to use.
type plainKeys struct {
	mu   sync.Mutex
	keys map[plainKey]bool
}

// plainKey is a provider key at a server.
type plainKey struct {
	workspace tenants.WorkspaceID
	key       uuid.UUID
	baseURL   string
}

func (p *plainKeys) has(admission admission) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.keys[plainKeyOf(admission)]
}

func (p *plainKeys) add(admission admission) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.keys == nil || len(p.keys) >= maxPlain {
		p.keys = make(map[plainKey]bool)
	}
	p.keys[plainKeyOf(admission)] = true
}

func plainKeyOf(admission admission) plainKey {
	return plainKey{workspace: admission.key.Workspace, key: admission.target.KeyID, baseURL: admission.target.BaseURL}
}

// sendAsking sends, by send, a prompt whose stream may be asked for a usage without a client's request for
// it. If the server refuses that, sendAsking sends the prompt again without it, and requests with the
// provider key don't ask again.
func (g *Gate) sendAsking(admission admission, written *prompt.Prompt, send func() (*http.Response, error)) (*http.Response, error) {
	response, err := send()
	if err != nil || !written.AsksUsage || !refusesUsage(response) {
		return response, err
	}
	_ = response.Body.Close()
	written.WithoutUsage()
	response, err = send()
	if err == nil && response.StatusCode < http.StatusBadRequest {
		g.plain.add(admission)
	}
	return response, err
}

// refusesUsage reports whether an answer is an error about the option that asks for usage. The answer can
// still be relayed from its first byte.
func refusesUsage(response *http.Response) bool {
	if response.StatusCode < http.StatusBadRequest {
		return false
	}
	head, _ := headOf(response)
	head = bytes.ToLower(head)
	for _, name := range []string{"stream_options", "include_usage", "streamoptions", "stream options"} {
		if bytes.Contains(head, []byte(name)) {
			return true
		}
	}
	return false
}
