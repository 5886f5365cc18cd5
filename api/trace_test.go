package api

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"palimpsest/api/upstream/providerdouble"
	"palimpsest/api/upstream/providertest"
	"palimpsest/pipeline/spans"
)

// listener is what takes the spans of a proxy, and tells of each.
type listener struct {
	*tracetest.SpanRecorder

	ended chan string // names
}

// OnEnd implements sdktrace.SpanProcessor.
func (l listener) OnEnd(span sdktrace.ReadOnlySpan) {
	l.SpanRecorder.OnEnd(span)
	l.ended <- span.Name()
}

// trace has the requests of a proxy traced.
func (p *proxy) trace() listener {
	to := listener{tracetest.NewSpanRecorder(), make(chan string, 10_000)}
	p.Tracer = spans.NewTracer(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(to)))
	return to
}

// until waits until a span of a name has ended, and returns the attributes and the status of
// each by its name.
func (l listener) until(t *testing.T, name string) (said map[string]map[attribute.Key]string, status map[string]codes.Code) {
	t.Helper()
	for ended := ""; ended != name; {
		select {
		case ended = <-l.ended:
		case <-time.After(patience):
			t.Fatalf("no span %s has ended", name)
		}
	}
	said, status = map[string]map[attribute.Key]string{}, map[string]codes.Code{}
	for _, span := range l.Ended() {
		values := map[attribute.Key]string{}
		for _, one := range span.Attributes() {
			values[one.Key] = one.Value.String()
		}
		said[span.Name()], status[span.Name()] = values, span.Status().Code
	}
	return said, status
}

func TestEveryFormatIsTracedAlike(t *testing.T) {
	t.Parallel()
	for path, test := range map[string]struct{ body, model, provider string }{
		messagesPath:  {streamed, "claude-sonnet-4-5", "anthropic"},
		chatPath:      {`{"model":"gpt-5.5","stream":true,"max_completion_tokens":100,"messages":[{"role":"user","content":"hi"}]}`, "gpt-5.5", "openai"},
		responsesPath: {`{"model":"gpt-5.5","stream":true,"store":false,"max_output_tokens":100,"input":[{"role":"user","content":"hi"}]}`, "gpt-5.5", "openai"},
	} {
		p := setupAt(t, providertest.NewServer(t, providerdouble.Config{}).URL)
		to := p.trace()
		if got := p.send(http.MethodPost, path, test.body); got.status != http.StatusOK {
			t.Fatalf("%s: status %d: %s", path, got.status, got.body)
		}
		said, status := to.until(t, "POST "+path)
		if _, is := said["first token"]; !is {
			t.Errorf("%s: no span of the first token in %v", path, said)
		}
		model := said["chat "+test.model]
		usage := p.last(1)
		for key, want := range map[spans.Key]string{
			spans.Operation: "chat", spans.Provider: test.provider, spans.RequestModel: test.model, spans.ResponseModel: test.model, spans.RequestStream: "true",
			spans.MaxTokens: "100", spans.InputTokens: strconv.Itoa(usage.Tokens.Input + usage.Tokens.CacheRead + usage.Tokens.CacheWrite), spans.OutputTokens: strconv.Itoa(usage.Tokens.Output),
			spans.CacheRead: strconv.Itoa(usage.Tokens.CacheRead), spans.Session: "", spans.Conversation: usage.Request.Session.String(), spans.Attempts: "1",
		} {
			if got := model[attribute.Key(key)]; got != want {
				t.Errorf("%s: %s is %q, want %q", path, key, got, want)
			}
		}
		if model[attribute.Key(spans.FirstChunk)] == "" || usage.Tokens.Output == 0 {
			t.Errorf("%s: attributes %v", path, model)
		}
		for name, code := range status {
			if code != codes.Unset {
				t.Errorf("%s: %s has status %v", path, name, code)
			}
		}
	}
}

// A client that leaves is not a failure of the proxy, and what the model did is cut off.
func TestAClientThatLeavesIsTraced(t *testing.T) {
	t.Parallel()
	left := make(chan struct{}, 1)
	p := setup(t, staysOpen(func() { left <- struct{}{} }))
	to := p.trace()
	ctx, cancel := context.WithCancel(t.Context())
	response := p.open(ctx, http.MethodPost, messagesPath, streamed)
	read(t, response.Body, started)
	cancel()
	_ = response.Body.Close()
	awaitOne(t, left)
	said, status := to.until(t, "POST "+messagesPath)
	root := said["POST "+messagesPath]
	if status["POST "+messagesPath] != codes.Unset || root[attribute.Key(spans.ErrorType)] != spans.Canceled || root[attribute.Key(spans.Aborted)] != "client" {
		t.Errorf("the request: %v %v", status["POST "+messagesPath], root)
	}
	if model := said["chat claude-sonnet-4-5"]; model[attribute.Key(spans.ErrorType)] != spans.Canceled {
		t.Errorf("what the model did: %v", model)
	}
	if _, is := said["first token"]; is {
		t.Error("the model has said nothing, and its first token is traced")
	}
}

// A request that has no model do anything has no span of a model.
func TestRelayedRequestsAreTraced(t *testing.T) {
	t.Parallel()
	p := setup(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"input_tokens":7}`) })
	to := p.trace()
	for path, root := range map[string]string{countPath: "POST " + countPath, "/v1/files": "POST /v1/*"} {
		if got := p.send(http.MethodPost, path, `{"model":"claude-sonnet-4-5","messages":[{"role":"user","content":"hi"}]}`); got.status != http.StatusOK {
			t.Fatalf("%s: status %d: %s", path, got.status, got.body)
		}
		said, _ := to.until(t, root)
		if said[root][attribute.Key(spans.Status)] != "200" || said["POST"][attribute.Key(spans.ServerAddress)] != "127.0.0.1" {
			t.Errorf("%s: %v", path, said)
		}
		if names := to.Ended(); slices.ContainsFunc(names, func(span sdktrace.ReadOnlySpan) bool { return span.Name() == "chat claude-sonnet-4-5" }) {
			t.Errorf("%s: a model is said to do something", path)
		}
	}
}

// Of a model and a method that a client has made up nothing is noted.
func TestWhatAClientMakesUpIsNotTraced(t *testing.T) {
	t.Parallel()
	const secret = "what was said"
	p := setup(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, quickAnswer) })
	to := p.trace()
	p.send(http.MethodPost, messagesPath, `{"model":"`+secret+`","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}`)
	to.until(t, "POST "+messagesPath)
	p.send("MADEUP", messagesPath, "")
	to.until(t, "_OTHER /v1/*")
	for _, span := range to.Ended() {
		if text := fmt.Sprint(span.Name(), span.Attributes()); strings.Contains(text, secret) || strings.Contains(text, "MADEUP") {
			t.Errorf("%s", text)
		}
	}
}
