package upstream

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"palimpsest/pipeline/spans"
	"palimpsest/tenants"
)

// sendTraced sends a request in a trace and returns its span.
func sendTraced(t *testing.T, client *Client, asked Request, target Target) (sdktrace.ReadOnlySpan, error) {
	t.Helper()
	recorder := tracetest.NewSpanRecorder()
	tracer := spans.NewTracer(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder)))
	ctx, _ := tracer.Begin(t.Context(), nil, "request")
	response, err := client.Send(ctx, asked, target)
	if err == nil {
		_ = response.Body.Close()
	}
	if ended := recorder.Ended(); len(ended) != 1 || ended[0].Name() != asked.Method {
		t.Fatalf("%d spans", len(ended))
	}
	return recorder.Ended()[0], err
}

// kindOf returns the kind of error that a span says it ended with.
func kindOf(span sdktrace.ReadOnlySpan) string {
	noted := attribute.NewSet(span.Attributes()...)
	value, _ := noted.Value(attribute.Key(spans.ErrorType))
	return value.AsString()
}

// A provider that does not answer in time, or cannot be reached, is an error of its span.
func TestSilenceOfAProviderIsTraced(t *testing.T) {
	t.Parallel()
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) { <-request.Context().Done() }))
	t.Cleanup(silent.Close)
	down := httptest.NewServer(http.NotFoundHandler())
	down.Close()
	client := New(true)
	t.Cleanup(client.Close)
	for want, target := range map[string]Target{
		spans.Timeout: {BaseURL: silent.URL, Key: "sk-secret", Wait: 50 * time.Millisecond},
		spans.Other:   {BaseURL: down.URL, Key: "sk-secret"},
	} {
		span, err := sendTraced(t, client, Request{Method: http.MethodGet, Path: "/v1/models"}, target)
		if !errors.Is(err, ErrUnreachable) && !errors.Is(err, ErrLate) || kindOf(span) != want || span.Status().Code != codes.Error || span.Status().Description != "" {
			t.Errorf("%v: %q, status %v, want %q", err, kindOf(span), span.Status(), want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := failure(ctx, nil, &net.OpError{}); spans.KindOf(err) != spans.Canceled {
		t.Errorf("of a client that has left: %v", err)
	}
}

func TestTheServerOfATargetIsNamed(t *testing.T) {
	t.Parallel()
	for base, want := range map[string]struct {
		name string
		port int
	}{
		"":                             {"api.anthropic.com", 443},
		"https://gateway.example/v1":   {"gateway.example", 443},
		"http://gateway.example:8080/": {"gateway.example", 8080},
		"http://[::1]/x/{model}":       {"::1", 80},
		"no URL at all":                {"", 0},
	} {
		if name, port := HostOf(Target{Provider: tenants.ProviderAnthropic, BaseURL: base}); name != want.name || port != want.port {
			t.Errorf("%q: %q %d, want %q %d", base, name, port, want.name, want.port)
		}
	}
}
