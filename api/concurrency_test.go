package api

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"palimpsest/api/limits"
	"palimpsest/api/upstream/providerdouble"
	"palimpsest/api/upstream/providertest"
	"palimpsest/pipeline/wire/anthropic"
	"palimpsest/tenants"
)

// manyKeys lets in a key of each of several workspaces.
type manyKeys map[string]tenants.APIKey

// Authenticate implements tenants.KeyAuthenticator.
func (k manyKeys) Authenticate(_ context.Context, secret string) (tenants.APIKey, error) {
	key, known := k[secret]
	switch {
	case !known:
		return tenants.APIKey{}, tenants.ErrKeyUnknown
	case key.Suspended:
		return tenants.APIKey{}, tenants.ErrSuspended
	}
	return key, nil
}

func keyOf(workspace tenants.WorkspaceID) tenants.APIKey {
	return tenants.APIKey{ID: uuid.New(), Workspace: workspace, Prefix: "plm_live_te", Scopes: []tenants.Scope{tenants.ScopeProxy}}
}

const (
	heldQuestion  = `{"model":"claude-sonnet-4-5","max_tokens":10,"stream":true,"messages":[{"role":"user","content":"hold"}]}`
	quickQuestion = `{"model":"claude-sonnet-4-5","max_tokens":10,"messages":[{"role":"user","content":"quick"}]}`
	quickAnswer   = `{"id":"m","type":"message","role":"assistant","model":"claude-sonnet-4-5","content":[{"type":"text","text":"done"}],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1}}`
)

// A workspace that holds as many streams as it may before a slow provider is refused
// more, in its client's dialect; another workspace is served all the while; and when
// one stream ends, one more may come.
func TestNoisyWorkspaceDoesNotSlowAnother(t *testing.T) {
	t.Parallel()
	const limit = 200
	var held atomic.Int32
	arrived, end := make(chan struct{}, limit), make(chan struct{})
	p := setup(t, func(w http.ResponseWriter, r *http.Request) {
		asked, _ := io.ReadAll(r.Body)
		if bytes.Contains(asked, []byte("quick")) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, quickAnswer)
			return
		}
		held.Add(1)
		defer held.Add(-1)
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, started)
		_ = http.NewResponseController(w).Flush()
		arrived <- struct{}{}
		select {
		case <-end:
		case <-r.Context().Done():
		}
	})
	t.Cleanup(func() { close(end) })
	noisy, quiet := tenants.NewWorkspaceID(), tenants.NewWorkspaceID()
	p.Keys = manyKeys{"noisy": keyOf(noisy), "quiet": keyOf(quiet)}
	p.Concurrency = NewConcurrency(limit)
	as := func(key string) []string { return []string{"Authorization", "Bearer " + key} }

	streams := make([]*http.Response, limit)
	for i := range streams {
		streams[i] = p.open(t.Context(), http.MethodPost, messagesPath, heldQuestion, as("noisy")...)
		defer streams[i].Body.Close()
		awaitOne(t, arrived)
	}
	if held.Load() != limit {
		t.Fatalf("the provider holds %d streams, want %d", held.Load(), limit)
	}

	for range 50 {
		if got := p.send(http.MethodPost, messagesPath, quickQuestion, as("quiet")...); got.status != http.StatusOK {
			t.Fatalf("the quiet workspace: status %d: %s", got.status, got.body)
		}
		got := p.send(http.MethodPost, messagesPath, quickQuestion, as("noisy")...)
		if got.status != http.StatusTooManyRequests || got.header.Get("Retry-After") != "1" || errorType(t, got.body) != "rate_limit_error" {
			t.Fatalf("the noisy workspace: status %d, retry-after %q: %s", got.status, got.header.Get("Retry-After"), got.body)
		}
	}
	if got := p.send(http.MethodPost, chatPath, `{"model":"gpt-5.5","messages":[{"role":"user","content":"quick"}]}`, as("noisy")...); got.status != http.StatusTooManyRequests || !bytes.Contains(got.body, []byte(`"code":"workspace_concurrency"`)) {
		t.Errorf("in the other dialect: status %d: %s", got.status, got.body)
	}
	if got := p.send(http.MethodGet, "/v1/files", "", as("noisy")...); got.status != http.StatusTooManyRequests {
		t.Errorf("a relayed request: status %d: %s", got.status, got.body)
	}

	end <- struct{}{}
	awaitPlace(t, p.Concurrency, noisy, limit-1)
	if got := p.send(http.MethodPost, messagesPath, quickQuestion, as("noisy")...); got.status != http.StatusOK {
		t.Errorf("after a stream has ended: status %d: %s", got.status, got.body)
	}
}

// What has ended is forgotten, however it ended.
func TestConcurrencyForgetsWhatHasEnded(t *testing.T) {
	t.Parallel()
	one := NewConcurrency(1)
	workspace := tenants.NewWorkspaceID()
	for range 3 {
		leave, err := one.enter(workspace)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := one.enter(workspace); err == nil {
			t.Error("a second request was let in")
		}
		if other, err := one.enter(tenants.NewWorkspaceID()); err != nil {
			t.Errorf("another workspace: %v", err)
		} else {
			other()
		}
		leave()
	}
	if len(one.open) != 0 {
		t.Errorf("%d workspaces are remembered", len(one.open))
	}
	var none *Concurrency
	if _, err := none.enter(workspace); err != nil {
		t.Errorf("without a limit: %v", err)
	}
}

func TestSuspendedAndUnverifiedWorkspacesAreRefusedInTheClientsDialect(t *testing.T) {
	t.Parallel()
	p := setup(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, quickAnswer)
	})
	suspended, unverified := keyOf(tenants.NewWorkspaceID()), keyOf(tenants.NewWorkspaceID())
	suspended.Suspended, unverified.Unverified = true, true
	p.Keys = manyKeys{"suspended": suspended, "unverified": unverified}
	p.Contact = "ops@example.com"

	ask := func(path, key string) answer {
		return p.send(http.MethodPost, path, quickQuestion, "Authorization", "Bearer "+key)
	}
	if got := ask(messagesPath, "unverified"); got.status != http.StatusOK {
		t.Errorf("without the setting: status %d: %s", got.status, got.body)
	}
	p.RequireVerified = true
	for key, says := range map[string]string{"suspended": "ops@example.com", "unverified": "verified an e-mail address"} {
		for _, path := range []string{messagesPath, chatPath, responsesPath, "/v1/files"} {
			got := ask(path, key)
			if got.status != http.StatusForbidden || !strings.Contains(string(got.body), says) || got.header.Get("X-Should-Retry") != "false" {
				t.Errorf("%s to %s: status %d: %s", key, path, got.status, got.body)
			}
			if errorType(t, got.body) != "permission_error" && path == messagesPath {
				t.Errorf("%s to %s: %s", key, path, got.body)
			}
		}
	}
}

// Of the two limiters each says when to come back as it knows: the workspace's in a
// second, a key's when its limit frees, and one that never frees says so.
func TestEachLimiterSaysWhenToComeBack(t *testing.T) {
	t.Parallel()
	p := setup(t, func(http.ResponseWriter, *http.Request) { t.Error("the provider was asked") })
	for name, test := range map[string]struct {
		err             error
		after, tryAgain string
	}{
		"the workspace's":            {errCrowded, "1", ""},
		"a key's rate":               {limits.Exceeded{Kind: limits.Requests, Wait: 42 * time.Second}, "42", "true"},
		"a key's concurrency":        {limits.Exceeded{Kind: limits.Concurrency}, "", "true"},
		"a key's day":                {limits.Exceeded{Kind: limits.DayBudget, Wait: 5 * time.Hour}, "18000", "false"},
		"a key's month":              {limits.Exceeded{Kind: limits.MonthBudget, Wait: 240 * time.Hour}, "864000", "false"},
		"more than ever passes":      {limits.Exceeded{Kind: limits.Tokens, Asked: 1000}, "", "false"},
		"suspended, and permanently": {tenants.ErrSuspended, "", "false"},
	} {
		recorder := httptest.NewRecorder()
		context := echo.New().NewContext(httptest.NewRequestWithContext(t.Context(), http.MethodPost, messagesPath, http.NoBody), recorder)
		if err := p.refuse(context, anthropic.New(), &RequestLog{}, test.err); err != nil {
			t.Fatal(err)
		}
		header := recorder.Header()
		if header.Get("Retry-After") != test.after || header.Get("X-Should-Retry") != test.tryAgain {
			t.Errorf("%s: Retry-After %q, X-Should-Retry %q, want %q and %q", name, header.Get("Retry-After"), header.Get("X-Should-Retry"), test.after, test.tryAgain)
		}
	}
}

// errorType returns the type of an error as a provider's client reads it.
func errorType(t *testing.T, body []byte) string {
	t.Helper()
	var read struct {
		Error struct {
			Type string `json:"type"`
		} `json:"error"`
	}
	if err := json.Unmarshal(body, &read); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	return read.Error.Type
}

func awaitOne(t *testing.T, signal <-chan struct{}) {
	t.Helper()
	select {
	case <-signal:
	case <-time.After(patience):
		t.Fatal("nothing comes")
	}
}

// awaitPlace waits until a workspace has so many requests open.
func awaitPlace(t *testing.T, concurrency *Concurrency, workspace tenants.WorkspaceID, want int) {
	t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		concurrency.mu.Lock()
		open := concurrency.open[workspace]
		concurrency.mu.Unlock()
		if open == want {
			return
		}
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("%d requests are open, want %d", open, want)
		}
	}
}

// E10, C3: of requests of one conversation that come at once, over the target, one makes
// an epoch and all send its prompt.
func TestConcurrentRequestsMakeOneEpoch(t *testing.T) {
	t.Parallel()
	double := providertest.NewServer(t, providerdouble.Config{})
	p := setupAt(t, double.URL)
	p.store.windows["claude-sonnet-4-5"] = small
	body := toolSession("claude-sonnet-4-5", 30, 800)
	const clients = 8
	found := make(chan string, clients)
	var group sync.WaitGroup
	for range clients {
		group.Go(func() {
			got := p.send(http.MethodPost, messagesPath, body)
			found <- fmt.Sprintf("%d %s", got.status, got.header.Get("X-Palimpsest-Compression"))
		})
	}
	group.Wait()
	close(found)
	times := map[string]int{}
	for how := range found {
		times[how]++
	}
	if times["200 epoch"] != 1 || times["200 frozen"] != clients-1 || p.memory.writes()[0] != 1 {
		t.Errorf("%v, %d commits", times, p.memory.writes()[0])
	}
	sent := double.Requests()
	for _, request := range sent {
		if string(request.Body) != string(sent[0].Body) || len(request.Body) >= len(body) {
			t.Errorf("the provider gets %d bytes and %d bytes", len(sent[0].Body), len(request.Body))
		}
	}
}
