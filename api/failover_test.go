package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"palimpsest/api/failover"
	"palimpsest/api/upstream/providerdouble"
	"palimpsest/pipeline"
	"palimpsest/tenants"
)

// accounts is the proxy before one provider with several accounts, which can be made to fail.
type accounts struct {
	*proxy

	double *providerdouble.Double
	clock  *movingClock

	mu     sync.Mutex
	fails  map[string]http.HandlerFunc // by account; nil: it answers
	asked  []string                    // accounts, in the order of requests
	waited time.Duration
}

// setupAccounts starts a proxy with one provider key for each account, which fail over.
func setupAccounts(t *testing.T, names ...string) *accounts {
	t.Helper()
	a := &accounts{double: providerdouble.NewHandler(providerdouble.Config{}), clock: &movingClock{}, fails: map[string]http.HandlerFunc{}}
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		account := strings.TrimPrefix(r.Header.Get("X-Api-Key")+r.Header.Get("Authorization"), "Bearer ")
		a.mu.Lock()
		a.asked = append(a.asked, account)
		fails := a.fails[account]
		a.mu.Unlock()
		if fails != nil {
			fails(w, r)
			return
		}
		a.double.ServeHTTP(w, r)
	}))
	t.Cleanup(provider.Close)
	a.proxy = setupAt(t, provider.URL)
	a.store.mu.Lock()
	a.store.keys = nil
	for i, name := range names {
		for _, dialect := range tenants.Providers() {
			a.store.keys = append(a.store.keys, tenants.ProviderKey{
				ID: uuid.NewSHA1(uuid.NameSpaceOID, []byte(name+string(dialect))), Provider: dialect, Name: name, BaseURL: provider.URL,
				ProviderKeySecret: tenants.ProviderKeySecret{Sealed: []byte(name)}, ProviderKeyRouting: tenants.ProviderKeyRouting{Order: i},
			})
		}
	}
	a.store.mu.Unlock()
	a.setFailover(tenants.FailoverAccounts)
	var err error
	if a.Failover, err = failover.New(a.clock.now, func(_ context.Context, wait time.Duration) error {
		a.waited += wait
		a.clock.advance(wait)
		a.fail("one", nil)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	a.Now, a.Prompts.Now = a.clock.now, a.clock.now
	return a
}

func (a *accounts) setFailover(to tenants.Failover) {
	a.store.mu.Lock()
	a.store.data.Failover = to
	a.store.mu.Unlock()
	a.Settings.ForgetAll()
}

// fail has an account answer by a handler from now on; nil: as the provider does.
func (a *accounts) fail(account string, by http.HandlerFunc) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.fails[account] = by
}

// takeAsked returns which accounts were asked since it was called before.
func (a *accounts) takeAsked() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	asked := a.asked
	a.asked = nil
	return asked
}

// refuses answers with a status and an error.
func refuses(status int, body string, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		http.Error(w, body, status)
	}
}

// cuts ends the connection without an answer.
func cuts(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

const overloadedStream = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n"

// A failure of a key has another answer with the same prompt; one of the request does not.
func TestFailuresOfAKeyHaveAnotherAnswer(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		fails http.HandlerFunc
		moves bool
	}{
		"429":           {refuses(429, `{"type":"error","error":{"type":"rate_limit_error","message":"slow down"}}`), true},
		"529":           {refuses(529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`), true},
		"503":           {refuses(503, "upstream connect error"), true},
		"a revoked key": {refuses(401, `{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}`), true},
		"no credit":     {refuses(400, `{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the API."}}`), true},
		"no answer":     {cuts, true},
		"an error in the stream": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = w.Write([]byte(overloadedStream))
		}, true},
		"an invalid request":        {refuses(400, `{"type":"error","error":{"type":"invalid_request_error","message":"max_tokens: required"}}`), false},
		"a model nobody has":        {refuses(404, `{"type":"error","error":{"type":"not_found_error","message":"model: x"}}`), false},
		"a prompt that is too long": {refuses(400, `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 250000 tokens > 200000 maximum"}}`), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := setupAccounts(t, "one", "two")
			a.fail("one", test.fails)
			got := a.send(http.MethodPost, messagesPath, streaming(toolSession("claude-opus-5-5", 3, 40)))
			asked := a.takeAsked()
			if moved := slices.Equal(asked, []string{"one", "two"}); moved != test.moves || test.moves && got.status != http.StatusOK {
				t.Fatalf("%d from %q: %s", got.status, asked, got.body)
			}
			recorded := a.last(1)
			if test.moves && (recorded.Answer.ProviderKey != a.store.keys[len(tenants.Providers())].ID || !strings.Contains(string(recorded.Prompt.Report), `"failover"`) || recorded.Answer.Attempts != 2) {
				t.Errorf("recorded of key %s with %d attempts: %s", recorded.Answer.ProviderKey, recorded.Answer.Attempts, recorded.Prompt.Report)
			}
		})
	}
}

// streaming asks for a stream.
func streaming(body string) string { return strings.Replace(body, `{`, `{"stream":true,`, 1) }

// Without the setting, with a key that the request names or brings along, and with text that only one
// account can read, there is no other key.
func TestNoOtherKeyAnswersWithoutLeave(t *testing.T) {
	t.Parallel()
	sealed := `{"model":"gpt-5.5","store":false,"input":[{"role":"user","content":"x"},{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"abc"},{"role":"assistant","content":"y"},{"role":"user","content":"z"}]}`
	for name, test := range map[string]struct {
		setting    tenants.Failover
		path, body string
		header     []string
		want       int // accounts asked
	}{
		"off":                         {tenants.FailoverOff, messagesPath, toolSession("claude-opus-5-5", 3, 40), nil, 1},
		"a named key":                 {tenants.FailoverAccounts, messagesPath, toolSession("claude-opus-5-5", 3, 40), []string{"X-Palimpsest-Provider", "one"}, 1},
		"encrypted reasoning":         {tenants.FailoverAccounts, responsesPath, sealed, nil, 1},
		"encrypted, the same account": {tenants.FailoverAccount, responsesPath, sealed, nil, 2},
		"a response of the account":   {tenants.FailoverAccount, responsesPath, `{"model":"gpt-5.5","previous_response_id":"resp_1","input":"x"}`, nil, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := setupAccounts(t, "one", "two")
			a.setFailover(test.setting)
			a.fail("one", refuses(529, `{"error":{"message":"Overloaded"}}`))
			a.fail("two", refuses(529, `{"error":{"message":"the other"}}`))
			got := a.send(http.MethodPost, test.path, test.body, test.header...)
			if asked := a.takeAsked(); len(asked) != test.want || got.status != 529 || !strings.Contains(string(got.body), "Overloaded") {
				t.Errorf("%d, %s after asking %q", got.status, got.body, asked)
			}
		})
	}
}

// What an account has sealed goes back to it, also when the session's first key works again.
func TestSealedContentStaysWithItsAccount(t *testing.T) {
	t.Parallel()
	a := setupAccounts(t, "one", "two")
	a.fail("one", refuses(529, `{}`))
	turn := `{"model":"gpt-5.5","store":false,"prompt_cache_key":"s","input":[{"role":"user","content":"x"}%s]}`
	for _, more := range []string{"", `,{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"abc"},{"role":"assistant","content":"y"},{"role":"user","content":"z"}`} {
		a.send(http.MethodPost, responsesPath, fmt.Sprintf(turn, more), "X-Palimpsest-Session-Id", "s")
		a.fail("one", nil)
		a.clock.advance(time.Hour)
	}
	if asked := a.takeAsked(); !slices.Equal(asked, []string{"one", "two", "two"}) {
		t.Errorf("asked %q", asked)
	}
}

// A session stays with the key that it moved to while its cache is warm, and a key that failed is left alone for a while.
func TestMovedSessionStaysUntilItsCacheIsCold(t *testing.T) {
	t.Parallel()
	a := setupAccounts(t, "one", "two")
	a.fail("one", refuses(529, `{}`))
	for _, step := range []struct {
		session string
		after   time.Duration
		want    []string
	}{
		{"moved", 0, []string{"one", "two"}},
		{"new", time.Second, []string{"two"}},
		{"moved", 10 * time.Second, []string{"two"}},
		{"moved", time.Hour, []string{"one"}},
	} {
		a.clock.advance(step.after)
		body := strings.Replace(cached(toolSession("claude-opus-5-5", 30, 100)), "Do it all.", "Do it for "+step.session, 1)
		if got := a.send(http.MethodPost, messagesPath, body, "X-Palimpsest-Session-Id", step.session); got.status != http.StatusOK {
			t.Fatalf("%d: %s", got.status, got.body)
		}
		if asked := a.takeAsked(); !slices.Equal(asked, step.want) {
			t.Errorf("%s, %s later: asked %q, want %q", step.session, step.after, asked, step.want)
		}
		a.fail("one", nil)
	}
}

// Where another account would have to read all of a large prompt, the request waits for its own as long as
// that costs less.
func TestARequestWaitsWhereThatIsCheaper(t *testing.T) {
	t.Parallel()
	a := setupAccounts(t, "one", "two")
	for _, test := range []struct {
		turns, words int
		after        string
		want         []string
	}{
		{30, 900, "5", []string{"one", "one"}},
		{30, 900, "59", []string{"one", "two"}},
		{3, 200, "5", []string{"one", "two"}},
	} {
		body := strings.Replace(toolSession("claude-opus-5-5", test.turns, test.words), `"Do it all."`, fmt.Sprintf(`[{"type":"text","text":"Do it in %s s.","cache_control":{"type":"ephemeral"}}]`, test.after), 1)
		body = cached(body)
		if got := a.send(http.MethodPost, messagesPath, body); got.status != http.StatusOK {
			t.Fatalf("%d: %s", got.status, got.body)
		}
		a.takeAsked()
		a.fail("one", refuses(429, `{"type":"error","error":{"type":"rate_limit_error","message":"slow down"}}`, "Retry-After", test.after))
		got := a.send(http.MethodPost, messagesPath, body)
		if asked := a.takeAsked(); got.status != http.StatusOK || !slices.Equal(asked, test.want) {
			t.Errorf("%d turns, %s s: %d after asking %q, want %q", test.turns, test.after, got.status, asked, test.want)
		}
		a.fail("one", nil)
		a.clock.advance(2 * time.Minute)
	}
	if a.waited != 5*time.Second {
		t.Errorf("waited %s", a.waited)
	}
}

// cached puts a cache marker on the last message.
func cached(body string) string {
	at := strings.LastIndex(body, `"type":"tool_result"`)
	return body[:at] + `"cache_control":{"type":"ephemeral"},` + body[at:]
}

// New sessions spread over keys of the same order, and stay with theirs.
func TestSessionsSpreadOverEqualKeysAndStay(t *testing.T) {
	t.Parallel()
	a := setupAccounts(t, "one", "two")
	a.store.mu.Lock()
	for i := range a.store.keys {
		a.store.keys[i].Order = 0
	}
	a.store.mu.Unlock()
	a.Settings.ForgetAll()
	used := map[string]int{}
	for i := range 16 {
		for turn := range 3 {
			body := strings.Replace(toolSession("claude-opus-5-5", 2+turn, 40), "Do it all.", fmt.Sprint("Do ", i), 1)
			if got := a.send(http.MethodPost, messagesPath, body, "X-Palimpsest-Session-Id", fmt.Sprint("s", i)); got.status != http.StatusOK {
				t.Fatalf("%d: %s", got.status, got.body)
			}
		}
		asked := a.takeAsked()
		if len(slices.Compact(asked)) != 1 {
			t.Errorf("session %d went to %q", i, asked)
		}
		used[asked[0]]++
	}
	if used["one"] < 3 || used["two"] < 3 {
		t.Errorf("16 sessions went to %v", used)
	}
}

// What became of a request before its prompt was too long stays in its record.
func TestFailoverBeforeAnEmergencyIsRecorded(t *testing.T) {
	t.Parallel()
	a := setupAccounts(t, "one", "two")
	a.fail("one", refuses(529, `{}`))
	a.fail("two", func(w http.ResponseWriter, r *http.Request) {
		a.fail("two", nil)
		refuses(http.StatusBadRequest, tooLong)(w, r)
	})
	if got := a.send(http.MethodPost, messagesPath, toolSession("claude-opus-5-5", 30, 800)); got.status != http.StatusOK {
		t.Fatalf("%d: %s", got.status, got.body)
	}
	if asked := a.takeAsked(); !slices.Equal(asked, []string{"one", "two", "two"}) {
		t.Errorf("asked %q", asked)
	}
	var report pipeline.Report
	if err := json.Unmarshal(a.last(1).Prompt.Report, &report); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"moved", "overflow"} {
		if count := len(slices.DeleteFunc(slices.Clone(report.Events), func(event pipeline.ReportEntry) bool { return event.Type != kind })); count != 1 {
			t.Errorf("%d events %s in %+v", count, kind, report.Events)
		}
	}
}
