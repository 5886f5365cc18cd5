package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"palimpsest/api/upstream/providerdouble"
	"palimpsest/cmd/palimpsest/settings"
	"palimpsest/pipeline/wire"
)

// large is a conversation whose prompt does not fit into a window of 20,000 tokens.
func large() []byte {
	messages := []string{`{"role":"user","content":"Port the scanner."}`}
	for n := range 30 {
		messages = append(messages,
			fmt.Sprintf(`{"role":"assistant","content":[{"type":"tool_use","id":"toolu_%d","name":"Bash","input":{"command":"go test ./part%d"}}]}`, n, n),
			fmt.Sprintf(`{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_%d","content":%s}]}`, n, wire.Quote(strings.Repeat("all is well. ", 300))))
	}
	return fmt.Appendf(nil, `{"model":"claude-sonnet-4-5","max_tokens":1000,"tools":[{"name":"Bash","input_schema":{"type":"object"}}],"messages":[%s]}`, strings.Join(messages, ","))
}

// misbehaving sends a request to which the provider does something wrong, and reads what
// comes of it.
func (w *tenant) misbehaving(how string, stream bool) {
	w.t.Helper()
	body := fmt.Sprintf(askMessages, `,"stream":`+strconv.FormatBool(stream))
	request, err := http.NewRequestWithContext(w.t.Context(), http.MethodPost, w.url("/v1/messages"), strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+w.key)
	request.Header.Set("Anthropic-Version", "2023-06-01")
	request.Header.Set(providerdouble.MisbehaveHeader, how)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		w.t.Fatal(err)
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body) // that may break off
}

func TestFailuresAndRetriesAreTraced(t *testing.T) {
	t.Parallel()
	to := newReceiver(t)
	i := startTraced(t, providerdouble.Config{Window: 20_000}, func(traces *settings.Traces) { traces.TracesEndpoint = to.URL + "/v1/traces" })
	w := i.tenant("failing")
	w.misbehaving(providerdouble.MisbehaveRateLimit, false)
	w.misbehaving(providerdouble.MisbehaveFailure, false)
	w.misbehaving(providerdouble.MisbehaveCut, true)
	w.misbehaving(providerdouble.MisbehaveMidstream, true)
	if response, _ := w.post("/v1/messages", large(), nil); response.Header.Get("X-Palimpsest-Attempts") != "2" {
		t.Fatalf("status %d after %s attempts", response.StatusCode, response.Header.Get("X-Palimpsest-Attempts"))
	}
	key := w.key
	w.key = "plm_live_nobodys"
	w.post("/v1/messages", fmt.Appendf(nil, askMessages, ""), nil)
	w.key = key
	i.shutdown()

	const failed, fine = tracepb.Status_STATUS_CODE_ERROR, tracepb.Status_STATUS_CODE_UNSET
	const request = "POST /v1/messages"
	const chat = request + " > chat claude-sonnet-4-5"
	found := treesOf(to.received())
	if len(found) != 6 {
		t.Fatalf("%d traces, want 6", len(found))
	}
	for n, want := range []struct {
		path   string
		status tracepb.Status_StatusCode
		says   []string
	}{
		0: {request, fine, []string{"error.type", "429", "http.response.status_code", "429", "palimpsest.error.from", "provider"}},
		1: {request, failed, []string{"error.type", "500", "http.response.status_code", "500", "palimpsest.error.from", "provider"}},
		2: {request, failed, []string{"error.type", "_OTHER", "http.response.status_code", "200", "palimpsest.aborted", "provider"}},
		3: {request, failed, []string{"error.type", "overloaded_error", "http.response.status_code", "200", "palimpsest.error.from", "provider"}},
		4: {request, fine, []string{"error.type", "-", "palimpsest.compression", "emergency"}},
		5: {request, fine, []string{"error.type", "authentication_error", "http.response.status_code", "401", "palimpsest.error.from", "proxy", "palimpsest.workspace.id", "-"}},
	} {
		root := found[n].at(t, want.path)
		if root.GetStatus().GetCode() != want.status || root.GetStatus().GetMessage() != "" {
			t.Errorf("trace %d: status %v, want %v", n, root.GetStatus(), want.status)
		}
		says(t, root, want.says...)
		if n < 4 {
			model, kind := found[n].at(t, chat), noted(root.GetAttributes())["error.type"]
			says(t, model, "error.type", kind)
			if model.GetStatus().GetCode() != failed {
				t.Errorf("trace %d: what the model did is fine", n)
			}
		}
		if n < 2 {
			says(t, found[n].at(t, chat+" > POST"), "error.type", want.says[1])
		}
	}
	retried := found[4]
	says(t, retried.at(t, chat), "palimpsest.attempts", "2", "error.type", "-")
	retried.at(t, request+" > shrink prompt > pipeline > module ipc > commit epoch")
	var sent []*tracepb.Span
	for _, span := range retried {
		if retried.path(span) == chat+" > POST" {
			sent = append(sent, span)
		}
	}
	if len(sent) != 2 {
		t.Fatalf("%d requests to the provider:\n%s", len(sent), strings.Join(retried.paths(), "\n"))
	}
	says(t, sent[0], "http.response.status_code", "400", "http.request.resend_count", "-")
	says(t, sent[1], "http.response.status_code", "200", "http.request.resend_count", "1")
	if admit := found[5].at(t, request+" > admit > authenticate"); admit.GetStatus().GetCode() != failed || len(found[5]) != 3 {
		t.Errorf("an unknown key is let in:\n%s", strings.Join(found[5].paths(), "\n"))
	}
	holdsNothing(t, to, w, nil)
}

// A summary is written after the request that called for it, and in its trace.
func TestSummariesAreInTheTraceOfTheirRequest(t *testing.T) {
	t.Parallel()
	to := newReceiver(t)
	double := providerdouble.Config{Script: providerdouble.WithNotes(providerdouble.Echo, func(providerdouble.Request) providerdouble.Reply {
		return providerdouble.Reply{Text: providerdouble.Notes}
	})}
	i := startTraced(t, double, func(traces *settings.Traces) { traces.Endpoint = to.URL })
	w := newWorker(i.tenant("summarized"))
	w.setPipelinef("ipc: {contextWindow: 30000, compressTo: 0.4, llmCompression: {model: claude-haiku-4-5}}\n")
	w.untilEpoch()
	w.untilSummaries(1)
	i.shutdown()
	for _, trace := range treesOf(to.received()) {
		for _, span := range trace {
			if span.GetName() != "summarize" {
				continue
			}
			const summarize = "POST /v1/messages > summarize"
			says(t, trace.at(t, summarize), "palimpsest.outcome", "accepted", "palimpsest.summary.messages", "*")
			says(t, trace.at(t, summarize+" > chat claude-haiku-4-5"), "gen_ai.usage.output_tokens", "*", "gen_ai.request.model", "claude-haiku-4-5")
			trace.at(t, summarize+" > chat claude-haiku-4-5 > POST")
			trace.at(t, "POST /v1/messages > write prompt > pipeline > module ipc > commit epoch")
			return
		}
	}
	t.Error("no summary is traced")
}

// What a client says of a trace passes, and nothing is traced.
func TestNothingIsTracedUnlessAskedFor(t *testing.T) {
	t.Parallel()
	to := newReceiver(t)
	for name, traces := range map[string]settings.Traces{
		"not set":  settings.DefaultTraces(),
		"disabled": {Endpoint: to.URL, Disabled: true},
		"no spans": {TracesEndpoint: to.URL, Exporter: "none"},
	} {
		if traces.IsOn() {
			t.Errorf("%s: requests are traced", name)
		}
	}
	i := startTraced(t, providerdouble.Config{}, func(traces *settings.Traces) { traces.Endpoint, traces.Disabled = to.URL, true })
	w := i.tenant("untraced")
	w.post("/v1/messages", fmt.Appendf(nil, askMessages, ""), map[string]string{
		"Traceparent": clientParent, "Tracestate": "vendor=of-the-client", "Baggage": "user=alice",
	})
	w.post("/v1/messages", fmt.Appendf(nil, askMessages, ""), map[string]string{"Traceparent": "ignore all that was said", "Tracestate": "a=b"})
	if strings.Contains(i.metrics(), "palimpsest_spans") || strings.Contains(i.log.String(), "trace_id") {
		t.Error("metrics or the log tell of traces")
	}
	i.shutdown()
	if len(to.raw) > 0 {
		t.Error("something was sent to the receiver")
	}
	calls := i.double.Requests()
	first, second := calls[0].Header, calls[1].Header
	if first.Get("Traceparent") != clientParent || first.Get("Tracestate") != "vendor=of-the-client" || first.Get("Baggage") != "" {
		t.Errorf("the provider got %v", first)
	}
	if second.Get("Traceparent") != "" || second.Get("Tracestate") != "" {
		t.Errorf("the provider got %v", second)
	}
}

// A receiver that is down, or takes and never answers, harms no request, and holds the end up
// no longer than the program may take.
func TestReceiverThatFailsHarmsNobody(t *testing.T) {
	t.Parallel()
	down := httptest.NewServer(http.NotFoundHandler())
	down.Close()
	hanging := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) {
		_, _ = io.Copy(io.Discard, request.Body)
		<-request.Context().Done()
	}))
	t.Cleanup(hanging.Close)
	refusing := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(refusing.Close)
	for name, url := range map[string]string{"down": down.URL, "hangs": hanging.URL, "refuses": refusing.URL} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := startTraced(t, providerdouble.Config{}, func(traces *settings.Traces) { traces.Endpoint = url })
			i.program.Longest = time.Second
			w := i.tenant("unheard")
			for range 20 {
				if response, answer := w.post("/v1/messages", fmt.Appendf(nil, askMessages, `,"stream":true`), nil); response.StatusCode != http.StatusOK || !strings.Contains(string(answer), "message_stop") {
					t.Fatalf("status %d: %s", response.StatusCode, answer)
				}
			}
			i.shutdown()
			want := "spans are lost"
			if name == "hangs" {
				want = "spans were lost at the end"
			}
			if !strings.Contains(i.log.String(), want) || strings.Contains(i.log.String(), promptMarker) {
				t.Errorf("the log does not say that %s", want)
			}
			if name != "hangs" && !strings.Contains(i.metrics(), `palimpsest_spans_total{outcome="lost"}`) {
				t.Error("no metric tells of it")
			}
		})
	}
}
