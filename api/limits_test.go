package api

import (
	"encoding/json"
	"io"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"testing"

	"palimpsest/api/upstream"
	"palimpsest/api/upstream/providerdouble"
	"palimpsest/api/upstream/providertest"
	"palimpsest/tenants"
)

// ask is a question to each endpoint of the pipeline.
const (
	askClaude = `{"model":"claude-opus-5-5","max_tokens":100,"messages":[{"role":"user","content":"Hello."}]}`
	askGPT    = `{"model":"gpt-5.5","max_completion_tokens":100,"messages":[{"role":"user","content":"Hello."}]}`
)

// said is one of our errors in either dialect.
type said struct {
	Error struct {
		Type    string `json:"type"`
		Code    string `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

func (a answer) said(t *testing.T) said {
	t.Helper()
	var read said
	if err := json.Unmarshal(a.body, &read); err != nil || read.Error.Message == "" {
		t.Fatalf("status %d: %s (%v)", a.status, a.body, err)
	}
	return read
}

func TestKeyReachesOnlyWhatItsLimitsAllow(t *testing.T) {
	t.Parallel()
	double := providertest.NewServer(t, providerdouble.Config{})
	p := setupAt(t, double.URL)
	for name, test := range map[string]struct {
		limits     tenants.Limits
		path, body string
		header     []string
		want       string // error code; empty if the request is let in
		named      string // in the message
	}{
		"an allowed model":                {limits: tenants.Limits{Models: []string{"gpt-*", "CLAUDE-opus-*"}}, path: messagesPath, body: askClaude},
		"another model":                   {limits: tenants.Limits{Models: []string{"claude-haiku-*"}}, path: messagesPath, body: askClaude, want: "permission_error", named: "claude-haiku-*"},
		"another model, counted":          {limits: tenants.Limits{Models: []string{"claude-haiku-*"}}, path: countPath, body: askClaude, want: "permission_error", named: "claude-haiku-*"},
		"another model in Chat":           {limits: tenants.Limits{Models: []string{"claude-*"}}, path: chatPath, body: askGPT, want: "model_not_allowed", named: "claude-*"},
		"a model in no known body":        {limits: tenants.Limits{Models: []string{"claude-*"}}, path: compactPath, body: `{"model":"gpt-5.5","input":5}`, want: "endpoint_not_allowed", named: "claude-*"},
		"a relayed model":                 {limits: tenants.Limits{Models: []string{"claude-*"}}, path: "/v1/embeddings", body: `{"model":"x","input":"y"}`, want: "endpoint_not_allowed", named: "/v1/embeddings"},
		"a relayed cost":                  {limits: tenants.Limits{Quota: tenants.Quota{DayMicroUSD: 1e6}}, path: "/v1/embeddings", body: `{"model":"x","input":"y"}`, want: "endpoint_without_price", named: "/v1/embeddings"},
		"a model without a price":         {limits: tenants.Limits{Quota: tenants.Quota{DayMicroUSD: 1e6}}, path: chatPath, body: strings.Replace(askGPT, "gpt-5.5", "my-llama", 1), want: "model_without_price", named: "my-llama"},
		"an allowed endpoint":             {limits: tenants.Limits{Endpoints: []string{"/v1/messages"}}, path: "/anthropic/messages", body: askClaude, header: []string{"Anthropic-Version", "2023-06-01"}},
		"another endpoint":                {limits: tenants.Limits{Endpoints: []string{"/v1/messages"}}, path: chatPath, body: askGPT, want: "endpoint_not_allowed", named: "/v1/messages"},
		"its own address":                 {limits: tenants.Limits{Addresses: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}, path: messagesPath, body: askClaude},
		"another address":                 {limits: tenants.Limits{Addresses: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}, path: messagesPath, body: askClaude, header: []string{"X-Forwarded-For", "10.0.0.1"}, want: "permission_error", named: "127.0.0.1"},
		"a locked pipeline":               {limits: tenants.Limits{LockOverrides: true}, path: messagesPath, body: askClaude, header: []string{"X-Palimpsest-Bypass", "true", "X-Prxy-Pipe", "none"}, want: "permission_error", named: "X-Prxy-Pipe, X-Palimpsest-Bypass"},
		"a locked provider":               {limits: tenants.Limits{LockOverrides: true}, path: messagesPath, body: askClaude, header: []string{"X-Provider-Key", "sk-mine"}, want: "permission_error", named: "X-Provider-Key"},
		"a session's name is no override": {limits: tenants.Limits{LockOverrides: true}, path: messagesPath, body: askClaude, header: []string{"X-Palimpsest-Session-Id", "mine"}},
	} {
		p.store.limit(test.limits)
		before := len(double.Requests())
		got := p.send(http.MethodPost, test.path, test.body, test.header...)
		if test.want == "" {
			if got.status != http.StatusOK {
				t.Errorf("%s: status %d: %s", name, got.status, got.body)
			}
			continue
		}
		told := got.said(t)
		if got.status != http.StatusForbidden || told.Error.Code != test.want && told.Error.Type != test.want || !strings.Contains(told.Error.Message, test.named) {
			t.Errorf("%s: status %d, %+v", name, got.status, told)
		}
		if len(double.Requests()) != before {
			t.Errorf("%s: the provider was asked", name)
		}
	}
}

// A key with allowed models reaches no relayed path, whatever the method.
func TestKeyWithModelsReachesNoRelayedPath(t *testing.T) {
	t.Parallel()
	p := setup(t, func(_ http.ResponseWriter, request *http.Request) {
		t.Errorf("the provider was asked: %s %s", request.Method, request.URL)
	})
	p.store.limit(tenants.Limits{Models: []string{"claude-*"}})
	for _, method := range upstream.Methods() {
		for _, path := range []string{"/v1/files/x", "/v1/batches", "/v1/anything/else"} {
			if got := p.send(method, path, ""); got.status != http.StatusForbidden {
				t.Errorf("%s %s: status %d: %s", method, path, got.status, got.body)
			}
		}
	}
}

func TestLockedKeyMayNotTryAnotherPipeline(t *testing.T) {
	t.Parallel()
	p := setup(t, func(http.ResponseWriter, *http.Request) {})
	p.store.limit(tenants.Limits{LockOverrides: true})
	if got := p.send(http.MethodGet, "/v1/pipeline", ""); got.status != http.StatusOK {
		t.Errorf("its own pipeline: %d: %s", got.status, got.body)
	}
	if got := p.send(http.MethodGet, "/v1/pipeline", "", "X-Palimpsest-Pipe", "none"); got.status != http.StatusForbidden {
		t.Errorf("another: %d: %s", got.status, got.body)
	}
}

func TestRateIsToldInTheClientsDialect(t *testing.T) {
	t.Parallel()
	double := providertest.NewServer(t, providerdouble.Config{})
	p := setupAt(t, double.URL)
	p.store.limit(tenants.Limits{Quota: tenants.Quota{RequestsPerMinute: 2}})
	if got := p.send(http.MethodPost, messagesPath, askClaude); got.status != http.StatusOK || got.header.Get("X-Palimpsest-Ratelimit-Remaining-Requests") != "1" || got.header.Get("X-Palimpsest-Ratelimit-Limit-Requests") != "2" {
		t.Errorf("status %d, headers %v", got.status, got.header)
	}
	p.send(http.MethodPost, messagesPath, askClaude)
	for path, test := range map[string]struct{ body, kind, code string }{
		messagesPath: {askClaude, "rate_limit_error", ""},
		chatPath:     {askGPT, "rate_limit_error", "rate_limit_exceeded"},
	} {
		got := p.send(http.MethodPost, path, test.body)
		told := got.said(t)
		wait, err := strconv.Atoi(got.header.Get("Retry-After"))
		if got.status != http.StatusTooManyRequests || told.Error.Type != test.kind || told.Error.Code != test.code || err != nil || wait < 1 || wait > 30 {
			t.Errorf("%s: status %d, Retry-After %q, %+v", path, got.status, got.header.Get("Retry-After"), told)
		}
		if got.header.Get("X-Should-Retry") != "true" || got.header.Get("X-Palimpsest-Error-Source") != "proxy" || !strings.Contains(told.Error.Message, "2 requests a minute") {
			t.Errorf("%s: %v, %+v", path, got.header, told)
		}
	}
	if asked := len(double.Requests()); asked != 2 {
		t.Errorf("the provider was asked %d times", asked)
	}
}

func TestBudgetCountsWhatExchangesCost(t *testing.T) {
	t.Parallel()
	double := providertest.NewServer(t, providerdouble.Config{})
	p := setupAt(t, double.URL)
	p.store.limit(tenants.Limits{Quota: tenants.Quota{MonthMicroUSD: 1}})
	if got := p.send(http.MethodPost, messagesPath, askClaude); got.status != http.StatusOK {
		t.Fatalf("status %d: %s", got.status, got.body)
	}
	if cost := p.last(1).Cost.CostMicroUSD; cost < 1 {
		t.Fatalf("the exchange cost %d", cost)
	}
	for path, test := range map[string]struct{ body, kind, code string }{
		messagesPath: {askClaude, "rate_limit_error", ""},
		chatPath:     {askGPT, "insufficient_quota", "insufficient_quota"},
	} {
		got := p.send(http.MethodPost, path, test.body)
		told := got.said(t)
		wait, err := strconv.Atoi(got.header.Get("Retry-After"))
		if got.status != http.StatusTooManyRequests || told.Error.Type != test.kind || told.Error.Code != test.code || err != nil || wait < 1 || wait > 31*24*3600 {
			t.Errorf("%s: status %d, Retry-After %q, %+v", path, got.status, got.header.Get("Retry-After"), told)
		}
		if got.header.Get("X-Should-Retry") != "false" || !strings.Contains(told.Error.Message, "0.000001 USD a month") || got.header.Get("X-Palimpsest-Ratelimit-Remaining-Month-Usd") != "0.00" {
			t.Errorf("%s: %v, %+v", path, got.header, told)
		}
	}
}

func TestTokensCountWhatIsSentAndAnswered(t *testing.T) {
	t.Parallel()
	double := providertest.NewServer(t, providerdouble.Config{})
	p := setupAt(t, double.URL)
	p.store.limit(tenants.Limits{Quota: tenants.Quota{TokensPerMinute: 200}})
	body := strings.Replace(askClaude, "Hello.", strings.Repeat("word ", 120), 1)
	got := p.send(http.MethodPost, messagesPath, body)
	if got.status != http.StatusOK {
		t.Fatalf("status %d: %s", got.status, got.body)
	}
	used := p.last(1)
	if total := used.Tokens.Input + used.Tokens.CacheRead + used.Tokens.CacheWrite + used.Tokens.Output; total < 100 || total > 250 {
		t.Fatalf("the exchange used %d tokens", total)
	}
	if got := p.send(http.MethodPost, messagesPath, body); got.status != http.StatusTooManyRequests || got.header.Get("Retry-After") == "" {
		t.Errorf("the second: status %d, %v: %s", got.status, got.header, got.body)
	}
	huge := p.send(http.MethodPost, messagesPath, strings.Replace(askClaude, "Hello.", strings.Repeat("word ", 1000), 1))
	if huge.status != http.StatusTooManyRequests || huge.header.Get("Retry-After") != "" && strings.Contains(huge.said(t).Error.Message, "never fits") {
		t.Errorf("what never fits: status %d, %v: %s", huge.status, huge.header, huge.body)
	}
}

func TestOpenStreamsCountUntilTheyEnd(t *testing.T) {
	t.Parallel()
	began, end := make(chan struct{}), make(chan struct{})
	p := setup(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("X-Ratelimit-Remaining-Requests", "7")
		_, _ = io.WriteString(w, "event: ping\ndata: {}\n\n")
		_ = http.NewResponseController(w).Flush()
		began <- struct{}{}
		<-end
	})
	p.store.limit(tenants.Limits{Quota: tenants.Quota{Concurrency: 1}})
	open := p.open(t.Context(), http.MethodPost, messagesPath, askClaude)
	defer open.Body.Close()
	<-began
	if open.Header.Get("X-Ratelimit-Remaining-Requests") != "7" || open.Header.Get("X-Palimpsest-Ratelimit-Remaining-Concurrency") != "0" {
		t.Errorf("headers %v", open.Header)
	}
	got := p.send(http.MethodPost, messagesPath, askClaude)
	if got.status != http.StatusTooManyRequests || got.header.Get("Retry-After") != "" || !strings.Contains(got.said(t).Error.Message, "1 request at once") {
		t.Errorf("the second: status %d, %v: %s", got.status, got.header, got.body)
	}
	end <- struct{}{}
	if _, err := io.ReadAll(open.Body); err != nil {
		t.Fatal(err)
	}
	p.last(2) // the first has ended for us too
	again := p.open(t.Context(), http.MethodPost, messagesPath, askClaude)
	defer again.Body.Close()
	<-began
	if again.StatusCode != http.StatusOK {
		t.Errorf("after the first has ended: status %d", again.StatusCode)
	}
	end <- struct{}{}
}

// What a request under way may cost is held of the budget until it has ended; what
// costs nothing passes meanwhile.
func TestBudgetIsHeldWhileAStreamIsOpen(t *testing.T) {
	t.Parallel()
	began, end := make(chan struct{}), make(chan struct{})
	p := setup(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "event: ping\ndata: {}\n\n")
		_ = http.NewResponseController(w).Flush()
		if strings.HasSuffix(r.URL.Path, "/count_tokens") {
			return
		}
		began <- struct{}{}
		<-end
		_, _ = io.WriteString(w, "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"x\"}}\n\n")
	})
	p.store.limit(tenants.Limits{Quota: tenants.Quota{DayMicroUSD: 10}}) // an answer of 100 tokens may cost more
	open := p.open(t.Context(), http.MethodPost, messagesPath, askClaude)
	defer open.Body.Close()
	<-began
	for path, test := range map[string]struct{ body, code string }{
		messagesPath: {askClaude, ""}, chatPath: {askGPT, "rate_limit_exceeded"},
	} {
		got := p.send(http.MethodPost, path, test.body)
		told := got.said(t)
		if got.status != http.StatusTooManyRequests || told.Error.Type != "rate_limit_error" || told.Error.Code != test.code ||
			got.header.Get("Retry-After") != "" || got.header.Get("X-Should-Retry") != "true" || !strings.Contains(told.Error.Message, "under way") {
			t.Errorf("%s: status %d, %v: %s", path, got.status, got.header, got.body)
		}
	}
	if got := p.send(http.MethodPost, messagesPath+"/count_tokens", askClaude); got.status != http.StatusOK {
		t.Errorf("a count: status %d: %s", got.status, got.body)
	}
	end <- struct{}{}
	if _, err := io.ReadAll(open.Body); err != nil {
		t.Fatal(err)
	}
	p.last(4) // the stream has ended for us too, with a refusal, which costs nothing
	again := p.open(t.Context(), http.MethodPost, messagesPath, askClaude)
	defer again.Body.Close()
	<-began
	if again.StatusCode != http.StatusOK {
		t.Errorf("after the first has ended: status %d", again.StatusCode)
	}
	end <- struct{}{}
}
