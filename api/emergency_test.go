package api

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"

	"palimpsest/api/upstream/providerdouble"
	"palimpsest/api/upstream/providertest"
	"palimpsest/pipeline"
)

// small is the window of providers whose models have a larger one in our table.
const small = 20_000

// W22, E4: a prompt that the provider finds too long goes out once more, smaller and
// within the window.
func TestOverflowIsAnsweredByOneSmallerPrompt(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ path, body string }{
		"messages":  {messagesPath, toolSession("claude-sonnet-4-5", 30, 800)},
		"bound":     {messagesPath, toolSession("claude-opus-5-5", 30, 800)},
		"chat":      {chatPath, chatSession(30, 800)},
		"responses": {responsesPath, responsesSession(800)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			double := providertest.NewServer(t, providerdouble.Config{Window: small})
			p := setupAt(t, double.URL)
			got := p.send(http.MethodPost, test.path, test.body, "Anthropic-Beta", "context-management-2025-06-27")
			if got.status != http.StatusOK {
				t.Fatalf("status %d: %s", got.status, got.body)
			}
			if got.header.Get("X-Palimpsest-Compression") != "emergency" || got.header.Get("X-Palimpsest-Attempts") != "2" || got.header.Get("X-Palimpsest-Archived") == "0" {
				t.Errorf("headers %v", got.header)
			}
			sent := double.Requests()
			if len(sent) != 2 || string(sent[0].Body) != test.body || len(sent[1].Body) >= len(sent[0].Body) || sent[1].Prompt > small {
				t.Fatalf("%d requests, of %d and %d bytes", len(sent), len(sent[0].Body), len(sent[len(sent)-1].Body))
			}
			if betas := sent[1].Header.Values("Anthropic-Beta"); strings.Count(strings.Join(betas, ","), "binding") > 1 || betas[0] != "context-management-2025-06-27" {
				t.Errorf("the second attempt asks for the betas %v", betas)
			}
			recorded := p.last(1)
			if recorded.Prompt.Compression != string(pipeline.Emergency) || recorded.Answer.Attempts != 2 || !strings.Contains(string(recorded.Prompt.Report), `"type":"overflow"`) {
				t.Errorf("recorded: %+v %s", recorded, recorded.Prompt.Report)
			}

			// The next request replays what was sent.
			next := p.send(http.MethodPost, test.path, test.body)
			if next.status != http.StatusOK || next.header.Get("X-Palimpsest-Attempts") != "1" || next.header.Get("X-Palimpsest-Compression") != "frozen" {
				t.Errorf("status %d, headers %v", next.status, next.header)
			}
			if again, _ := double.Last(); name != "chat" && string(again.Body) != string(sent[1].Body) {
				t.Errorf("the next request sends another prompt:\n%.300s\n%.300s", again.Body, sent[1].Body)
			}
		})
	}
}

// W22: the same prompt and the same words give the same second attempt.
func TestEmergencyPassIsDeterministic(t *testing.T) {
	t.Parallel()
	var bodies []string
	double := providertest.NewServer(t, providerdouble.Config{Window: small}) // another base URL is another session
	for range 2 {
		setupAt(t, double.URL).send(http.MethodPost, messagesPath, toolSession("claude-sonnet-4-5", 30, 800))
		last, _ := double.Last()
		bodies = append(bodies, string(last.Body))
	}
	if bodies[0] != bodies[1] || bodies[0] == "" {
		t.Errorf("two proxies send\n%.300s\n%.300s", bodies[0], bodies[1])
	}
}

// tooLong is an error with what a proxy might lose: spaces, unknown members, order.
const tooLong = `{ "error":{"message":"prompt is too long: 50000 tokens > 20000 maximum", "type":"invalid_request_error","future":[1e400]},"type":"error","request_id":"req_1"}` + "\n"

func refuseTooLong(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Request-Id", "req_1")
	w.WriteHeader(http.StatusBadRequest)
	_, _ = io.WriteString(w, tooLong)
}

// W22, E4: where the second attempt fails in whatever way, the original error goes
// back byte for byte, and there is no third.
func TestFailedEmergencyPassGivesTheOriginalError(t *testing.T) {
	t.Parallel()
	for name, second := range map[string]http.HandlerFunc{
		"too long again": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 30000 tokens > 20000 maximum"}}`)
		},
		"overloaded": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(529) },
		"rate limit": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(http.StatusTooManyRequests)
		},
		"no answer": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var asked atomic.Int32
			p := setup(t, func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				if asked.Add(1) == 1 {
					refuseTooLong(w)
					return
				}
				second(w, r)
			})
			got := p.send(http.MethodPost, messagesPath, toolSession("claude-sonnet-4-5", 30, 800))
			if got.status != http.StatusBadRequest || string(got.body) != tooLong || got.header.Get("Request-Id") != "req_1" || got.header.Get("Retry-After") != "" {
				t.Errorf("status %d, headers %v: %s", got.status, got.header, got.body)
			}
			if asked.Load() != 2 || got.header.Get("X-Palimpsest-Attempts") != "2" || got.header.Get("X-Palimpsest-Error-Source") != "provider" {
				t.Errorf("asked %d times, headers %v", asked.Load(), got.header)
			}
		})
	}
}

// W22, E4: where no smaller prompt can be made, or none may be, there is one attempt.
func TestNoSmallerPromptMeansNoSecondAttempt(t *testing.T) {
	t.Parallel()
	long := toolSession("claude-sonnet-4-5", 30, 800)
	for name, test := range map[string]struct {
		body   string
		header []string
	}{
		"bypassed":        {long, []string{"X-Palimpsest-Bypass", "true"}},
		"no modules":      {long, []string{"X-Palimpsest-Pipe", "none"}},
		"frozen":          {strings.Replace(long, `"max_tokens"`, `"compaction":{"type":"summarize"},"max_tokens"`, 1), nil},
		"compared":        {strings.Replace(long, `"max_tokens"`, `"fallback_credit_token":"fct_1","max_tokens"`, 1), nil},
		"strict binding":  {strings.Replace(long, `"max_tokens"`, `"thinking":{"type":"adaptive","block_binding":{"prefix_mismatch_behavior":"error"}},"max_tokens"`, 1), nil},
		"too long still":  {strings.Replace(long, `"max_tokens"`, `"system":"`+strings.Repeat("many words ", 15_000)+`","max_tokens"`, 1), nil},
		"nothing to free": {`{"model":"claude-sonnet-4-5","max_tokens":10,"messages":[{"role":"user","content":"` + strings.Repeat("many words ", 3000) + `"}]}`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var asked atomic.Int32
			p := setup(t, func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				asked.Add(1)
				refuseTooLong(w)
			})
			got := p.send(http.MethodPost, messagesPath, test.body, test.header...)
			if got.status != http.StatusBadRequest || string(got.body) != tooLong || asked.Load() != 1 || got.header.Get("X-Palimpsest-Attempts") != "1" {
				t.Errorf("asked %d times, status %d, headers %v: %s", asked.Load(), got.status, got.header, got.body)
			}
		})
	}
}

// W22, W23, B6: an error that is longer than any that is understood, or none that
// tells of a prompt, passes as it came.
func TestOtherErrorsAreNotTriedAgain(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"another":  `{"type":"error","error":{"type":"invalid_request_error","message":"messages.1: roles must alternate"}}`,
		"no JSON":  "<html>prompt is too long: 3 tokens > 2 maximum</html>",
		"very big": `{"type":"error","pad":"` + strings.Repeat("x", 100<<10) + `","error":{"type":"invalid_request_error","message":"prompt is too long: 50000 tokens > 20000 maximum"}}`,
		"empty":    "",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var asked atomic.Int32
			p := setup(t, func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				asked.Add(1)
				w.WriteHeader(http.StatusBadRequest)
				_, _ = io.WriteString(w, body)
			})
			got := p.send(http.MethodPost, messagesPath, toolSession("claude-sonnet-4-5", 30, 800))
			if got.status != http.StatusBadRequest || string(got.body) != body || asked.Load() != 1 {
				t.Errorf("asked %d times, status %d: %.200s", asked.Load(), got.status, got.body)
			}
		})
	}
}

// B6: an unknown model is shown as such until the provider tells its window, which is
// kept.
func TestWindowOfAnUnknownModelIsLearnt(t *testing.T) {
	t.Parallel()
	double := providertest.NewServer(t, providerdouble.Config{Window: small, AllowUnknown: true})
	p := setupAt(t, double.URL)
	before := p.send(http.MethodPost, messagesPath, toolSession("house-model", 2, 10))
	if before.status != http.StatusOK || before.header.Get("X-Palimpsest-Context-Window") != "unknown" {
		t.Errorf("before: %d, %v", before.status, before.header)
	}
	long := p.send(http.MethodPost, messagesPath, toolSession("house-model", 30, 800))
	if long.status != http.StatusOK || long.header.Get("X-Palimpsest-Compression") != "emergency" {
		t.Errorf("status %d, headers %v: %s", long.status, long.header, long.body)
	}
	p.store.mu.Lock()
	learned := fmt.Sprint(p.store.windows)
	p.store.mu.Unlock()
	if learned != "map[house-model:20000]" {
		t.Errorf("learnt: %s", learned)
	}
	after := p.send(http.MethodPost, messagesPath, toolSession("house-model", 2, 10))
	if after.header.Get("X-Palimpsest-Context-Window") != "19000" || after.header.Get("X-Palimpsest-Utilization") == "" {
		t.Errorf("after: %v", after.header)
	}
	p.Settings.Forget(p.store.workspace) // as on another replica
	if again := p.send(http.MethodPost, messagesPath, toolSession("house-model", 2, 10)); again.header.Get("X-Palimpsest-Context-Window") != "19000" {
		t.Errorf("read again: %v", again.header)
	}
}

// B6: a model of the table may have a smaller window at the workspace's provider: it
// is learned as well, so that the provider refuses once and not at every refill.
func TestSmallerWindowOfAKnownModelIsLearnt(t *testing.T) {
	t.Parallel()
	double := providertest.NewServer(t, providerdouble.Config{Window: small})
	p := setupAt(t, double.URL)
	body := toolSession("claude-sonnet-4-5", 30, 800)
	if first := p.send(http.MethodPost, messagesPath, body); first.status != http.StatusOK || first.header.Get("X-Palimpsest-Compression") != "emergency" {
		t.Fatalf("status %d, headers %v: %.300s", first.status, first.header, first.body)
	}
	again := p.send(http.MethodPost, messagesPath, toolSession("claude-sonnet-4-5", 2, 10))
	if again.header.Get("X-Palimpsest-Context-Window") != "19000" {
		t.Errorf("after it: %v", again.header)
	}
}

// A refusal that names no sizes says that the window is smaller than what was
// sent; what our headers tell of the prompt stays what it was.
func TestRefusalWithoutSizesLeavesTheEstimateAsItIs(t *testing.T) {
	t.Parallel()
	double := providertest.NewServer(t, providerdouble.Config{Window: small})
	p := setupAt(t, double.URL)
	body := responsesSession(500)
	got := p.send(http.MethodPost, responsesPath, body)
	before, err := strconv.Atoi(got.header.Get("X-Palimpsest-Tokens-Before"))
	if err != nil || got.status != http.StatusOK || got.header.Get("X-Palimpsest-Compression") != "emergency" {
		t.Fatalf("status %d, headers %v: %.300s", got.status, got.header, got.body)
	}
	if before > len(body)/2 {
		t.Errorf("%d tokens before for a body of %d bytes", before, len(body))
	}
}

// What a workspace sets for a model holds in place of the table.
func TestWindowOfAWorkspaceHolds(t *testing.T) {
	t.Parallel()
	double := providertest.NewServer(t, providerdouble.Config{Window: small})
	p := setupAt(t, double.URL)
	p.store.windows["claude-sonnet-4-5"] = small
	got := p.send(http.MethodPost, messagesPath, toolSession("claude-sonnet-4-5-20250929", 30, 800))
	if got.status != http.StatusOK || got.header.Get("X-Palimpsest-Compression") != "epoch" || got.header.Get("X-Palimpsest-Context-Window") != "19000" {
		t.Errorf("status %d, headers %v: %.300s", got.status, got.header, got.body)
	}
}

// A window that cannot be stored is used all the same.
func TestLearntWindowHoldsWhileTheStoreIsDown(t *testing.T) {
	t.Parallel()
	double := providertest.NewServer(t, providerdouble.Config{Window: small, AllowUnknown: true})
	p := setupAt(t, double.URL)
	p.send(http.MethodPost, messagesPath, toolSession("house-model", 2, 10))
	p.store.fail(errDown)
	p.send(http.MethodPost, messagesPath, toolSession("house-model", 30, 800))
	overrides, err := p.Settings.Overrides(context.Background(), p.store.workspace, uuid.Nil)
	if err != nil || overrides.Windows["house-model"] != small {
		t.Errorf("windows %v (%v)", overrides.Windows, err)
	}
	if !strings.Contains(p.log.String(), "window is not kept") {
		t.Error("the log does not say that it is not kept")
	}
}

// W22: an error that is encoded all the same is understood. Its text passes as it came,
// plain, so that the stored key can be looked for in it.
func TestEncodedOverflowIsUnderstood(t *testing.T) {
	t.Parallel()
	recorder := httptest.NewRecorder()
	refuseTooLong(recorder)
	text := recorder.Body.String()
	encoded := gzipped(t, text)
	var asked atomic.Int32
	p := setup(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		asked.Add(1)
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Encoding", "gzip")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, encoded)
	})
	got := p.send(http.MethodPost, messagesPath, toolSession("claude-sonnet-4-5", 30, 800), "Accept-Encoding", "gzip")
	if asked.Load() != 2 || string(got.body) != text || got.header.Get("Content-Encoding") != "" {
		t.Errorf("asked %d times: %q", asked.Load(), got.body)
	}
}

// W22, W43: a client's own compaction request is sent as it came; where the
// provider finds that too long, the lane's projection goes out in its place.
func TestClientsCompactionIsRescuedToo(t *testing.T) {
	t.Parallel()
	double := providertest.NewServer(t, providerdouble.Config{Window: small})
	p := setupAt(t, double.URL)
	header := []string{"X-Claude-Code-Session-Id", "0199-compacting"}
	body := toolSession("claude-sonnet-4-5", 30, 800)
	p.send(http.MethodPost, messagesPath, body, header...)
	p.store.mu.Lock()
	clear(p.store.windows) // what was learned would have the projection go out at once
	p.store.mu.Unlock()
	p.Settings.Forget(p.store.workspace)
	double.Reset()
	asks := strings.Replace(body, `],"model":`, `,{"role":"user","content":"Summarize."}],"model":`, 1)
	got := p.send(http.MethodPost, messagesPath, asks, append(header, "X-Claude-Code-Compaction", "auto")...)
	sent := double.Requests()
	if got.status != http.StatusOK || len(sent) != 2 || string(sent[0].Body) != asks || len(sent[1].Body) >= len(asks) {
		t.Fatalf("status %d after %d requests, headers %v: %.300s", got.status, len(sent), got.header, got.body)
	}
	if got.header.Get("X-Palimpsest-Compression") != "emergency" {
		t.Errorf("headers %v", got.header)
	}
	if recorded := p.last(2); recorded.Request.Class != "compaction" {
		t.Errorf("recorded as %q", recorded.Request.Class)
	}
}
