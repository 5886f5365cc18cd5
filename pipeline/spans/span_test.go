package spans_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"

	"palimpsest/pipeline/spans"
)

const (
	clientTrace = "4bf92f3577b34da6a3ce929d0e0e4736"
	clientStep  = "00f067aa0ba902b7"
	sampled     = "00-" + clientTrace + "-" + clientStep + "-01"
)

// setup returns a Tracer and what takes its spans.
func setup(sampler sdktrace.Sampler) (*spans.Tracer, *tracetest.SpanRecorder) {
	recorder := tracetest.NewSpanRecorder()
	return spans.NewTracer(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder), sdktrace.WithSampler(sampler))), recorder
}

func headerOf(lines ...string) http.Header {
	header := http.Header{}
	for i := 0; i+1 < len(lines); i += 2 {
		header.Add(lines[i], lines[i+1])
	}
	return header
}

// step is what a request does on its way, with every method of a span.
func step(ctx context.Context) (err error) {
	ctx, span := spans.Start(ctx, "module", "ipc")
	defer span.EndWith(&err)
	span.String(spans.Outcome, "applied")
	span.Int(spans.Messages, 7)
	span.Bool(spans.RequestStream, true)
	span.Seconds(spans.FirstChunk, 0.5)
	span.Strings(spans.FinishReasons, "stop")
	_, call := spans.StartCall(span.In(ctx), http.MethodPost)
	call.End()
	spans.Of(ctx).Fail(spans.Other)
	return err
}

func TestAStepThatIsNotTracedTakesNoMemory(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var off *spans.Tracer
	unsampled, _ := setup(sdktrace.NeverSample())
	outside, _ := unsampled.Begin(ctx, nil, "POST")
	for name, ctx := range map[string]context.Context{"off": ctx, "not sampled": outside} {
		allocated := testing.AllocsPerRun(100, func() {
			within, span := off.Begin(ctx, nil, http.MethodPost, "/v1/messages")
			if err := step(within); err != nil {
				t.Error(err)
			}
			span.End()
		})
		if allocated != 0 {
			t.Errorf("%s: %v allocations, want none", name, allocated)
		}
	}
}

func TestStepsBelongToTheRequest(t *testing.T) {
	t.Parallel()
	tracer, recorder := setup(sdktrace.AlwaysSample())
	ctx, span := tracer.Begin(t.Context(), nil, "POST", "/v1/messages")
	if err := step(ctx); err != nil {
		t.Fatal(err)
	}
	span.End()
	late, summary := spans.Start(span.In(context.Background()), "summarize") // after the request
	summary.End()
	ended := recorder.Ended()
	var names []string
	for _, one := range ended {
		names = append(names, one.Name())
		if one.SpanContext().TraceID() != ended[0].SpanContext().TraceID() {
			t.Errorf("%s is in another trace", one.Name())
		}
	}
	if got := strings.Join(names, ", "); got != "POST, module ipc, POST /v1/messages, summarize" {
		t.Fatalf("spans: %s", got)
	}
	call, module, request, summarized := ended[0], ended[1], ended[2], ended[3]
	if request.Parent().IsValid() || module.Parent().SpanID() != request.SpanContext().SpanID() ||
		call.Parent().SpanID() != module.SpanContext().SpanID() || summarized.Parent().SpanID() != request.SpanContext().SpanID() {
		t.Error("the parents are wrong")
	}
	if request.SpanKind() != trace.SpanKindServer || module.SpanKind() != trace.SpanKindInternal || call.SpanKind() != trace.SpanKindClient {
		t.Error("the kinds are wrong")
	}
	if module.Status().Code != codes.Error || module.Status().Description != "" {
		t.Errorf("status %v", module.Status())
	}
	noted := attribute.NewSet(module.Attributes()...)
	if value, _ := noted.Value("palimpsest.outcome"); value.AsString() != "applied" {
		t.Errorf("attributes %v", module.Attributes())
	}
	if traceID, spanID := spans.Trace(late); traceID != request.SpanContext().TraceID().String() || spanID != summarized.SpanContext().SpanID().String() {
		t.Error("the context names another step")
	}
}

func TestTheClientsTraceGoesOn(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		header http.Header
		goesOn bool
	}{
		"a trace":           {headerOf("Traceparent", sampled, "Tracestate", "a=b"), true},
		"not sampled":       {headerOf("Traceparent", "00-"+clientTrace+"-"+clientStep+"-00"), true},
		"a later version":   {headerOf("Traceparent", "01-"+clientTrace+"-"+clientStep+"-01-more"), true},
		"nothing":           {nil, false},
		"two of them":       {headerOf("Traceparent", sampled, "Traceparent", sampled), false},
		"no trace":          {headerOf("Traceparent", "00-00000000000000000000000000000000-"+clientStep+"-01"), false},
		"something else":    {headerOf("Traceparent", "Bearer plm_live_secret"), false},
		"far too long":      {headerOf("Traceparent", "01-"+clientTrace+"-"+clientStep+"-01-"+strings.Repeat("0", 100)), false},
		"forbidden version": {headerOf("Traceparent", "ff-"+clientTrace+"-"+clientStep+"-01"), false},
	} {
		tracer, recorder := setup(sdktrace.AlwaysSample())
		ctx, span := tracer.Begin(t.Context(), test.header, "POST")
		sent := test.header.Clone()
		if sent == nil {
			sent = http.Header{}
		}
		spans.Clean(sent)
		if kept := sent.Get("Traceparent") != ""; kept != test.goesOn {
			t.Errorf("%s: passed on as it came: %v, want %v", name, kept, test.goesOn)
		}
		spans.Carry(ctx, sent)
		span.End()
		ended := recorder.Ended()[0]
		if goesOn := ended.SpanContext().TraceID().String() == clientTrace; goesOn != test.goesOn {
			t.Errorf("%s: goes on: %v, want %v", name, goesOn, test.goesOn)
		}
		if isChild := ended.Parent().SpanID().String() == clientStep; isChild != test.goesOn {
			t.Errorf("%s: a child of the client's step: %v, want %v", name, isChild, test.goesOn)
		}
		if ended.SpanContext().TraceState().Len() != 0 || ended.Parent().TraceState().Len() != 0 {
			t.Errorf("%s: the span holds what the client wrote", name)
		}
		want := fmt.Sprintf("00-%s-%s-01", ended.SpanContext().TraceID(), ended.SpanContext().SpanID())
		if got := sent.Get("Traceparent"); got != want {
			t.Errorf("%s: passed on %q, want %q", name, got, want)
		}
		if got, want := sent.Get("Tracestate"), test.header.Get("Tracestate"); got != want {
			t.Errorf("%s: passed on tracestate %q, want %q", name, got, want)
		}
	}
}

func TestATracestateHasBounds(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		header http.Header
		stays  bool
	}{
		"beside its trace":  {headerOf("Traceparent", sampled, "Tracestate", strings.Repeat("x", 512)), true},
		"too long":          {headerOf("Traceparent", sampled, "Tracestate", strings.Repeat("x", 513)), false},
		"too long together": {headerOf("Traceparent", sampled, "Tracestate", strings.Repeat("x", 300), "Tracestate", strings.Repeat("x", 300)), false},
		"alone":             {headerOf("Tracestate", "a=b"), false},
		"beside nonsense":   {headerOf("Traceparent", "x", "Tracestate", "a=b"), false},
	} {
		spans.Clean(test.header)
		if _, stays := test.header["Tracestate"]; stays != test.stays {
			t.Errorf("%s: stays: %v, want %v", name, stays, test.stays)
		}
	}
}

// A trace that is not kept here goes on all the same.
func TestATraceThatIsNotKeptIsPassedOn(t *testing.T) {
	t.Parallel()
	tracer, recorder := setup(sdktrace.NeverSample())
	ctx, span := tracer.Begin(t.Context(), headerOf("Traceparent", sampled), "POST")
	sent := http.Header{}
	spans.Carry(ctx, sent)
	span.End()
	if got := sent.Get("Traceparent"); !strings.HasPrefix(got, "00-"+clientTrace+"-") || !strings.HasSuffix(got, "-00") || strings.Contains(got, clientStep) {
		t.Errorf("passed on %q", got)
	}
	if span.IsOn() || len(recorder.Ended()) != 0 {
		t.Error("the span was kept")
	}
}

func TestErrorsHaveAKindAndNoText(t *testing.T) {
	t.Parallel()
	expired, cancel := context.WithDeadline(t.Context(), time.Unix(1, 0))
	defer cancel()
	request := httptest.NewRequestWithContext(expired, http.MethodGet, "http://127.0.0.1:1/", nil)
	_, late := http.DefaultTransport.RoundTrip(request)
	for want, err := range map[string]error{
		spans.Canceled: fmt.Errorf("ask: %w", context.Canceled),
		spans.Timeout:  fmt.Errorf("ask: %w", late),
		spans.Other:    errors.New("the prompt says secret"),
	} {
		if got := spans.KindOf(err); got != want {
			t.Errorf("%v: %q, want %q", err, got, want)
		}
	}
}

func TestWhatOthersGiveIsNotedOnlyIfItIsAName(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"end_turn": "end_turn", "claude-code": "claude-code", "ft:gpt-4o:us/eu@1+x": "ft:gpt-4o:us/eu@1+x", strings.Repeat("x", 128): strings.Repeat("x", 128),
		"": "", "the prompt said so": "", "a\nb": "", "a\n": "", strings.Repeat("x", 129): "",
	} {
		if got := spans.Name(given); got != want {
			t.Errorf("%q: %q, want %q", given, got, want)
		}
	}
}

// The names that are OpenTelemetry's are those of its conventions.
func TestNamesAreThoseOfTheConventions(t *testing.T) {
	t.Parallel()
	for want, key := range map[attribute.Key]spans.Key{
		semconv.ErrorTypeKey: spans.ErrorType, semconv.HTTPRequestMethodKey: spans.Method, semconv.HTTPRequestResendCountKey: spans.Resends,
		semconv.HTTPResponseStatusCodeKey: spans.Status, semconv.HTTPRouteKey: spans.Route, semconv.ServerAddressKey: spans.ServerAddress,
		semconv.ServerPortKey: spans.ServerPort, semconv.GenAIConversationIDKey: spans.Conversation, semconv.GenAIOperationNameKey: spans.Operation,
		semconv.GenAIProviderNameKey: spans.Provider, semconv.GenAIRequestMaxTokensKey: spans.MaxTokens, semconv.GenAIRequestModelKey: spans.RequestModel,
		semconv.GenAIRequestStreamKey: spans.RequestStream, semconv.GenAIResponseFinishReasonsKey: spans.FinishReasons,
		semconv.GenAIResponseModelKey: spans.ResponseModel, semconv.GenAIResponseTimeToFirstChunkKey: spans.FirstChunk,
		semconv.GenAIUsageCacheCreationInputTokensKey: spans.CacheWrite, semconv.GenAIUsageCacheReadInputTokensKey: spans.CacheRead,
		semconv.GenAIUsageInputTokensKey: spans.InputTokens, semconv.GenAIUsageOutputTokensKey: spans.OutputTokens,
	} {
		if string(key) != string(want) {
			t.Errorf("%q is %q", key, want)
		}
	}
	if semconv.ErrorTypeOther.Value.AsString() != spans.Other || !strings.HasSuffix(semconv.SchemaURL, "/1.41.0") {
		t.Error("the conventions have other words")
	}
}

// BenchmarkStep measures what a step costs: not traced, beside traced.
func BenchmarkStep(b *testing.B) {
	on := spans.NewTracer(sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.AlwaysSample())))
	for name, tracer := range map[string]*spans.Tracer{"off": nil, "on": on} {
		b.Run(name, func(b *testing.B) {
			ctx, span := tracer.Begin(b.Context(), nil, "POST")
			defer span.End()
			b.ReportAllocs()
			for b.Loop() {
				if err := step(ctx); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
