package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	v1 "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"palimpsest/api/upstream/providerdouble"
	"palimpsest/api/upstream/providertest"
	"palimpsest/cmd/palimpsest/logs"
	"palimpsest/cmd/palimpsest/settings"
	"palimpsest/migrations/dbtest"
)

const (
	clientTrace  = "4bf92f3577b34da6a3ce929d0e0e4736"
	clientStep   = "00f067aa0ba902b7"
	clientParent = "00-" + clientTrace + "-" + clientStep + "-01"
)

// receiver is a receiver of OTLP over HTTP.
type receiver struct {
	*httptest.Server

	mu       sync.Mutex
	raw      []byte // everything that was received
	header   http.Header
	resource map[string]string
	spans    []*tracepb.Span
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{}
	r.Server = httptest.NewServer(http.HandlerFunc(r.take))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) take(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body)
	if err == nil && request.Header.Get("Content-Encoding") == "gzip" {
		var plain *gzip.Reader
		if plain, err = gzip.NewReader(bytes.NewReader(body)); err == nil {
			body, err = io.ReadAll(plain)
		}
	}
	var batch v1.ExportTraceServiceRequest
	if err != nil || request.URL.Path != "/v1/traces" || request.Header.Get("Content-Type") != "application/x-protobuf" || proto.Unmarshal(body, &batch) != nil {
		http.Error(w, "not OTLP", http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.raw, r.header = append(r.raw, body...), request.Header.Clone()
	for _, resource := range batch.GetResourceSpans() {
		r.resource = noted(resource.GetResource().GetAttributes())
		for _, scope := range resource.GetScopeSpans() {
			r.spans = append(r.spans, scope.GetSpans()...)
		}
	}
}

// received returns the spans that have come, of which one is of a request that ended so:
// the program must have been stopped.
func (r *receiver) received() []*tracepb.Span {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.spans)
}

// noted returns attributes as text.
func noted(attributes []*commonpb.KeyValue) map[string]string {
	values := map[string]string{}
	for _, one := range attributes {
		switch value := one.GetValue().GetValue().(type) {
		case *commonpb.AnyValue_StringValue:
			values[one.GetKey()] = value.StringValue
		case *commonpb.AnyValue_IntValue:
			values[one.GetKey()] = strconv.FormatInt(value.IntValue, 10)
		case *commonpb.AnyValue_BoolValue:
			values[one.GetKey()] = strconv.FormatBool(value.BoolValue)
		case *commonpb.AnyValue_DoubleValue:
			values[one.GetKey()] = fmt.Sprint(value.DoubleValue)
		case *commonpb.AnyValue_ArrayValue:
			for _, element := range value.ArrayValue.GetValues() {
				values[one.GetKey()] += "[" + element.GetStringValue() + "]"
			}
		}
	}
	return values
}

// tree is the spans of one trace.
type tree []*tracepb.Span

// treesOf returns the spans by their traces, in the order in which these began.
func treesOf(all []*tracepb.Span) []tree {
	slices.SortStableFunc(all, func(a, b *tracepb.Span) int { return int(a.GetStartTimeUnixNano()) - int(b.GetStartTimeUnixNano()) })
	var found []tree
	for _, span := range all {
		at := slices.IndexFunc(found, func(t tree) bool { return bytes.Equal(t[0].GetTraceId(), span.GetTraceId()) })
		if at < 0 {
			found, at = append(found, nil), len(found)
		}
		found[at] = append(found[at], span)
	}
	return found
}

// path names a span with those that it belongs to.
func (t tree) path(span *tracepb.Span) string {
	for _, one := range t {
		if bytes.Equal(one.GetSpanId(), span.GetParentSpanId()) {
			return t.path(one) + " > " + span.GetName()
		}
	}
	return span.GetName()
}

// at returns the only span with a path.
func (t tree) at(test testing.TB, path string) *tracepb.Span {
	test.Helper()
	var found []*tracepb.Span
	for _, span := range t {
		if t.path(span) == path {
			found = append(found, span)
		}
	}
	if len(found) != 1 {
		test.Fatalf("%d spans at %q; there are\n%s", len(found), path, strings.Join(t.paths(), "\n"))
	}
	return found[0]
}

func (t tree) paths() []string {
	paths := make([]string, len(t))
	for i, span := range t {
		paths[i] = t.path(span)
	}
	return paths
}

// says checks attributes of a span: pairs of a name and a value, where "*" is any and "-" none.
func says(t *testing.T, span *tracepb.Span, pairs ...string) {
	t.Helper()
	has := noted(span.GetAttributes())
	for i := 0; i+1 < len(pairs); i += 2 {
		value, is := has[pairs[i]]
		if want := pairs[i+1]; is == (want == "-") || want != "*" && want != "-" && value != want {
			t.Errorf("%s: %s is %q, want %q", span.GetName(), pairs[i], value, want)
		}
	}
}

// startTraced starts the program with its log on a database of its own, before a receiver.
func startTraced(t *testing.T, double providerdouble.Config, change func(*settings.Traces)) *instance {
	t.Helper()
	double.Key = providerKey
	double.Count = counter(t).Count
	config := settings.DefaultConfig()
	config.Serving.Addr, config.Serving.AdminAddr = "127.0.0.1:0", "127.0.0.1:0"
	config.Storage.DatabaseURL, config.Storage.DataDir = dbtest.New(t).OwnerURL, t.TempDir()
	config.Storage.SecretKey = dbtest.SecretKey
	config.Serving.AllowPrivateUpstreams, config.Serving.DrainDelay = true, 0
	change(&config.Traces)
	if err := config.Validate(); err != nil {
		t.Fatal(err)
	}
	i := &instance{t: t, config: config, log: &syncBuffer{}, double: providertest.NewServer(t, double)}
	program, err := newProgram(t.Context(), config, logs.New(i.log, "json"))
	if err != nil {
		t.Fatal(err)
	}
	i.program = program
	t.Cleanup(func() { program.stop(context.Background()) })
	return i
}

const (
	promptMarker = "zanzibar-marmalade-of-the-prompt"
	systemMarker = "quixotic-system-of-the-prompt"
	askMessages  = `{"model":"claude-sonnet-4-5","max_tokens":100,"system":"` + systemMarker + `","messages":[{"role":"user","content":"` + promptMarker + `"}]%s}`
)

// S14: neither what was said nor a key is in what is exported.
func TestExchangesAreTraced(t *testing.T) {
	t.Parallel()
	to := newReceiver(t)
	i := startTraced(t, providerdouble.Config{}, func(traces *settings.Traces) {
		traces.Endpoint, traces.Headers, traces.Service, traces.Resource = to.URL, "authorization=Bearer%20collector", "proxy", "deployment.environment.name=test"
	})
	w := i.tenant("traced")
	_, content := w.post("/v1/messages", fmt.Appendf(nil, askMessages, ""), nil)
	streamed, _ := w.post("/v1/messages", fmt.Appendf(nil, askMessages, `,"stream":true`), map[string]string{
		"Traceparent": clientParent, "Tracestate": "vendor=of-the-client", "Baggage": "user=alice",
	})
	if streamed.StatusCode != http.StatusOK {
		t.Fatalf("status %d", streamed.StatusCode)
	}
	i.shutdown()

	found := treesOf(to.received())
	if len(found) != 2 {
		t.Fatalf("%d traces, want 2", len(found))
	}
	for n, trace := range found {
		const request, model = "POST /v1/messages", "POST /v1/messages > chat claude-sonnet-4-5"
		root := trace.at(t, request)
		if root.GetKind() != tracepb.Span_SPAN_KIND_SERVER || root.GetStatus().GetCode() == tracepb.Status_STATUS_CODE_ERROR {
			t.Errorf("%s: %v", root.GetName(), root.GetStatus())
		}
		says(t, root, "http.request.method", "POST", "http.route", "/v1/messages", "http.response.status_code", "200", "error.type", "-",
			"palimpsest.request.id", "*", "palimpsest.workspace.id", "*", "palimpsest.session.id", "*", "palimpsest.lane.id", "*", "palimpsest.api_key.id", "*")
		for _, step := range []string{
			"admit", "admit > authenticate", "read body", "route", "write prompt", "write prompt > parse body", "write prompt > find lane",
			"write prompt > pipeline", "write prompt > pipeline > module ipc", "write prompt > seal body", "record request", "record exchange",
		} {
			if step := trace.at(t, request+" > "+step); step.GetStatus().GetCode() == tracepb.Status_STATUS_CODE_ERROR || step.GetEndTimeUnixNano() < step.GetStartTimeUnixNano() {
				t.Errorf("%s: %v", step.GetName(), step)
			}
		}
		chat, sent := trace.at(t, model), trace.at(t, model+" > POST")
		trace.at(t, model+" > relay answer")
		says(t, chat, "gen_ai.operation.name", "chat", "gen_ai.provider.name", "anthropic", "gen_ai.request.model", "claude-sonnet-4-5", "gen_ai.response.model", "*",
			"gen_ai.request.max_tokens", "100", "gen_ai.usage.input_tokens", "*", "gen_ai.usage.output_tokens", "*", "gen_ai.response.finish_reasons", "[end_turn]",
			"gen_ai.conversation.id", noted(root.GetAttributes())["palimpsest.session.id"], "server.address", "127.0.0.1", "server.port", "*", "palimpsest.attempts", "1")
		says(t, sent, "http.request.method", "POST", "http.response.status_code", "200", "server.address", "127.0.0.1")
		if chat.GetKind() != tracepb.Span_SPAN_KIND_CLIENT || sent.GetKind() != tracepb.Span_SPAN_KIND_CLIENT {
			t.Error("what the provider does is not a call")
		}
		calls := i.double.Requests()
		if want := fmt.Sprintf("00-%x-%x-01", sent.GetTraceId(), sent.GetSpanId()); calls[n].Header.Get("Traceparent") != want {
			t.Errorf("the provider was told %q, want %q", calls[n].Header.Get("Traceparent"), want)
		}
		if calls[n].Header.Get("Baggage") != "" {
			t.Error("the provider has the baggage")
		}
		if line := `"trace_id":"` + hex.EncodeToString(root.GetTraceId()) + `"`; !strings.Contains(i.log.String(), line) {
			t.Errorf("the log does not say %s", line)
		}
	}
	says(t, found[0].at(t, "POST /v1/messages > chat claude-sonnet-4-5"), "gen_ai.request.stream", "false", "gen_ai.response.time_to_first_chunk", "-")
	stream := found[1].at(t, "POST /v1/messages > chat claude-sonnet-4-5")
	says(t, stream, "gen_ai.request.stream", "true", "gen_ai.response.time_to_first_chunk", "*")
	first := found[1].at(t, "POST /v1/messages > chat claude-sonnet-4-5 > first token")
	if first.GetEndTimeUnixNano() > stream.GetEndTimeUnixNano() || first.GetStartTimeUnixNano() < stream.GetStartTimeUnixNano() {
		t.Error("the first token came outside the answer")
	}
	if root := found[1][0]; hex.EncodeToString(root.GetTraceId()) != clientTrace || hex.EncodeToString(root.GetParentSpanId()) != clientStep {
		t.Errorf("the client's trace does not go on: %x %x", root.GetTraceId(), root.GetParentSpanId())
	}
	if root := found[0][0]; len(root.GetParentSpanId()) != 0 {
		t.Errorf("a trace that begins here has the parent %x", root.GetParentSpanId())
	}
	if got := i.double.Requests()[1].Header.Get("Tracestate"); got != "vendor=of-the-client" {
		t.Errorf("the provider has the tracestate %q", got)
	}
	if to.resource["service.name"] != "proxy" || to.resource["deployment.environment.name"] != "test" || to.resource["service.version"] == "" {
		t.Errorf("resource %v", to.resource)
	}
	if got := to.header.Get("Authorization"); got != "Bearer collector" {
		t.Errorf("the receiver was sent Authorization %q", got)
	}
	holdsNothing(t, to, w, content)
}

// holdsNothing checks that no byte that was exported is of a prompt, an answer, a key, or
// of what else a client writes.
func holdsNothing(t *testing.T, to *receiver, w *tenant, answer []byte) {
	t.Helper()
	to.mu.Lock()
	defer to.mu.Unlock()
	said := string(answer)
	if _, text, is := strings.Cut(said, `"text":"`); is {
		said, _, _ = strings.Cut(text, `"`)
	}
	if answer == nil {
		said = promptMarker
	}
	for _, secret := range []string{promptMarker, systemMarker, w.key, w.key[:12], providerKey, said, "of-the-client", "alice", "traced@example.com"} {
		if len(secret) < 4 || bytes.Contains(to.raw, []byte(secret)) {
			t.Errorf("a span holds %q", secret)
		}
	}
	if len(to.raw) < 1000 || !bytes.Contains(to.raw, []byte("claude-sonnet-4-5")) {
		t.Error("what was received is not what was looked at")
	}
}
