package api

import (
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"palimpsest/tenants"
)

// The prices of claude-opus-5-5, in millionths of a dollar for a token.
const (
	opusWrite  = 5
	opusAnswer = 20
)

// unended is how a request ends that the provider does not report the usage of.
type unended struct {
	provider http.HandlerFunc // nil if it cannot be reached
	stream   bool
	leaves   bool // the client, once the provider has the request
	after    time.Duration
	want     string // what is charged: "nothing", "prompt" (what was sent, at least), "everything" (that was held)
}

// S47: a request that ends without a usage stays charged, unless it provably cost nothing.
func TestRequestsThatEndWithoutUsageAreCharged(t *testing.T) {
	t.Parallel()
	refuse := func(status int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, `{"type":"error","error":{"type":"x","message":"no"}}`, status)
		}
	}
	waits := func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}
	cuts := func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		panic(http.ErrAbortHandler)
	}
	says := func(kind, text string, cut bool) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			w.Header().Set("Content-Type", kind)
			_, _ = io.WriteString(w, text)
			if cut {
				_ = http.NewResponseController(w).Flush()
				panic(http.ErrAbortHandler)
			}
		}
	}
	const overloaded = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"x\"}}\n\n"
	for name, test := range map[string]unended{
		"nobody listens":                      {want: "nothing"},
		"refused with 400":                    {provider: refuse(400), want: "nothing"},
		"refused with 429":                    {provider: refuse(429), want: "nothing"},
		"refused with 529":                    {provider: refuse(529), stream: true, want: "nothing"},
		"refused inside the stream":           {provider: says("text/event-stream", overloaded, false), stream: true, want: "nothing"},
		"left before the first byte":          {provider: waits, leaves: true, want: "everything"},
		"a stream, left before it began":      {provider: waits, stream: true, leaves: true, want: "prompt"},
		"a stream, left after it had thought": {provider: waits, stream: true, leaves: true, after: 3 * time.Second, want: "thoughts"},
		"cut before the first byte":           {provider: cuts, want: "everything"},
		"a stream, cut before it began":       {provider: cuts, stream: true, want: "prompt"},
		"cut in the middle":                   {provider: says("application/json", `{"id":"m","type":"mess`, true), want: "everything"},
		"an answer that says nothing of it":   {provider: says("application/json", `{}`, false), want: "everything"},
		"an answer without JSON":              {provider: says("text/plain", `hello`, false), want: "everything"},
		"a stream without a usage":            {provider: says("text/event-stream", "event: ping\ndata: {}\n\n", false), stream: true, want: "prompt"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test.check(t)
		})
	}
}

func (u unended) check(t *testing.T) {
	t.Helper()
	began := make(chan struct{}, 1)
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) > 1 {
			http.Error(w, "{}", http.StatusBadRequest) // the next request, which must not come
			return
		}
		began <- struct{}{}
		u.provider(w, r)
	}))
	t.Cleanup(server.Close)
	if u.provider == nil {
		server.Close()
	}
	p := setupAt(t, server.URL)
	clock := &clock{at: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)}
	p.Now = clock.now
	p.store.limit(tenants.Limits{Quota: tenants.Quota{DayMicroUSD: 1, TokensPerMinute: 10_000}})
	body := askClaude
	if u.stream {
		body = strings.Replace(body, `"model"`, `"stream":true,"model"`, 1)
	}
	if u.leaves {
		p.leave(t, body, func() {
			<-began
			clock.advance(u.after)
		})
	} else {
		p.send(http.MethodPost, messagesPath, body)
	}
	recorded := p.last(1)
	prompt := int64(recorded.Prompt.TokensAfter) * opusWrite
	want := map[string]int64{"nothing": 0, "prompt": prompt, "thoughts": prompt + 100*opusAnswer, "everything": prompt + 100*opusAnswer}[u.want]
	if got := recorded.Cost.CostMicroUSD; got > want || u.want == "prompt" && got == 0 || u.want != "prompt" && got != want || recorded.Cost.NetMicroUSD != 0 {
		t.Errorf("%d is charged, want %d: %+v", got, want, recorded)
	}
	if isEstimated := strings.Contains(string(recorded.Prompt.Report), `"type":"estimated"`); isEstimated != (want > 0) {
		t.Errorf("reported: %s", recorded.Prompt.Report)
	}
	again := p.send(http.MethodPost, messagesPath, askClaude)
	if isRefused := strings.Contains(string(again.body), "has used it up"); isRefused != (want > 0) {
		t.Errorf("the next request: status %d: %s", again.status, again.body)
	}
}

// leave sends a request whose client leaves once ready returns.
func (p *proxy) leave(t *testing.T, body string, ready func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url+messagesPath, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("X-Api-Key", testKey)
	go func() {
		ready()
		cancel()
	}()
	if response, err := http.DefaultClient.Do(request); err == nil {
		_ = response.Body.Close()
		t.Errorf("the client had an answer: %d", response.StatusCode)
	}
}

// S47: many requests at once, each of which asks for many answers, spend a budget and one
// request's maximum at most.
func TestParallelRequestsKeepToABudgetWhateverTheyAskFor(t *testing.T) {
	t.Parallel()
	var billed atomic.Int64 // by the provider
	p := setup(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		billed.Add(100*5 + 128*300*30)
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprint(w, answerWith(chatPath, 100, 128*300))
	})
	const budget = 3_000_000
	p.store.limit(tenants.Limits{Quota: tenants.Quota{DayMicroUSD: budget}})
	body := strings.Replace(askGPT, `"max_completion_tokens":100`, `"max_completion_tokens":300,"n":128`, 1)
	var group sync.WaitGroup
	for range 60 {
		group.Go(func() { p.send(http.MethodPost, chatPath, body) })
	}
	group.Wait()
	const most = 128*300*30 + 1000
	if spent := billed.Load(); spent > budget+most || spent == 0 {
		t.Errorf("the provider bills %d for a budget of %d", spent, budget)
	}
}

// S47: what the provider's own tools cost is held before an answer, and charged by what its usage names.
func TestFeesOfTheProvidersToolsAreSettled(t *testing.T) {
	t.Parallel()
	var searches atomic.Int64
	p := setup(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"id":"m","type":"message","role":"assistant","model":"claude-opus-5-5","content":[{"type":"text","text":"Yes."}],"stop_reason":"end_turn","usage":{"input_tokens":10,"output_tokens":10,"server_tool_use":{"web_search_requests":%d}}}`, searches.Load())
	})
	const tokens, fee = 10*4 + 10*opusAnswer, 10_000
	p.store.limit(tenants.Limits{Quota: tenants.Quota{DayMicroUSD: 2 * fee}})
	body := strings.Replace(askClaude, `"messages"`, `"tools":[{"type":"web_search_20250305","name":"web_search","max_uses":2}],"messages"`, 1)
	for n, used := range []int64{0, 2} {
		searches.Store(used)
		if got := p.send(http.MethodPost, messagesPath, body); got.status != http.StatusOK {
			t.Fatalf("request %d: status %d: %s", n, got.status, got.body)
		}
		if recorded := p.last(n + 1); recorded.Cost.CostMicroUSD != tokens+used*fee {
			t.Errorf("%d searches cost %d, want %d", used, recorded.Cost.CostMicroUSD, tokens+used*fee)
		}
	}
	if got := p.send(http.MethodPost, messagesPath, body); got.status != http.StatusTooManyRequests {
		t.Errorf("the fees have used up the budget: status %d: %s", got.status, got.body)
	}
}

// S47, W52: a web search of Chat is charged although the usage has no count of it.
func TestSearchWithoutACountIsSettled(t *testing.T) {
	t.Parallel()
	p := setup(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, answerWith(chatPath, 10, 10))
	})
	body := `{"model":"gpt-5-search-api","max_tokens":10,"web_search_options":{},"messages":[{"role":"user","content":"hi"}]}`
	if got := p.send(http.MethodPost, chatPath, body); got.status != http.StatusOK {
		t.Fatalf("status %d: %s", got.status, got.body)
	}
	if recorded := p.last(1); recorded.Cost.CostMicroUSD < 10_000 || recorded.Cost.CostMicroUSD > 10_200 {
		t.Errorf("a search costs %d, want 10,000 and the tokens", recorded.Cost.CostMicroUSD)
	}
}

// A request refused for another budget than its key's says whose it is.
func TestBudgetsOfOthersAreNamed(t *testing.T) {
	t.Parallel()
	p := setup(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, answerWith(messagesPath, 10, 10))
	})
	p.store.budgets = []tenants.Budget{
		{Spender: tenants.Spender{Kind: tenants.WorkspaceSpends}, Quota: tenants.Quota{MonthMicroUSD: 1_000}},
		{Spender: tenants.Spender{Kind: tenants.ProjectSpends, ID: "search"}, Quota: tenants.Quota{DayMicroUSD: 1}},
	}
	project := []string{"X-Palimpsest-Tag-Project", "search"}
	if got := p.send(http.MethodPost, messagesPath, askClaude, project...); got.status != http.StatusOK {
		t.Fatalf("the first: status %d: %s", got.status, got.body)
	}
	p.last(1)
	got := p.send(http.MethodPost, messagesPath, askClaude, project...)
	if message := got.said(t).Error.Message; got.status != http.StatusTooManyRequests || !strings.Contains(message, `The project "search" has a budget of 0.000001 USD a day`) {
		t.Errorf("the project's next: status %d: %s", got.status, message)
	}
	if got := p.send(http.MethodPost, chatPath, strings.Replace(askGPT, "gpt-5.5", "my-llama", 1)); got.status != http.StatusForbidden {
		t.Errorf("a model without a price: status %d: %s", got.status, got.body)
	}
	for n := 2; n < 7; n++ {
		if got = p.send(http.MethodPost, messagesPath, askClaude); got.status != http.StatusOK {
			break
		}
	}
	if message := got.said(t).Error.Message; got.status != http.StatusTooManyRequests || !strings.Contains(message, "The workspace has a budget of 0.001 USD a month") {
		t.Errorf("the workspace's last: status %d: %s", got.status, message)
	}
}

// Each end user is held to the limits that the workspace sets for all of them, however a request names them; one that
// names no one is not.
func TestEndUsersAreHeldToLimitsOfTheirOwn(t *testing.T) {
	t.Parallel()
	for name, budget := range map[string]tenants.Budget{
		"requests": {Quota: tenants.Quota{RequestsPerMinute: 1}}, "tokens": {Quota: tenants.Quota{TokensPerMinute: 30}}, "budget": {Quota: tenants.Quota{DayMicroUSD: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := setup(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, answerWith(messagesPath, 10, 100))
			})
			budget.Kind = tenants.EndUserSpends
			p.store.budgets = []tenants.Budget{budget}
			named := strings.Replace(askClaude, "{", `{"metadata":{"user_id":"alice"},`, 1)
			sent := 0
			for _, step := range []struct {
				body   string
				header []string
				status int
			}{
				{named, nil, http.StatusOK},
				{named, nil, http.StatusTooManyRequests},
				{askClaude, []string{"X-Palimpsest-User", "alice"}, http.StatusTooManyRequests},
				{named, []string{"X-Palimpsest-User", "bob"}, http.StatusOK}, // the header wins
				{askClaude, []string{"X-Palimpsest-User", "bob"}, http.StatusTooManyRequests},
				{askClaude, nil, http.StatusOK}, {askClaude, nil, http.StatusOK},
			} {
				got := p.send(http.MethodPost, messagesPath, step.body, step.header...)
				sent++
				p.last(sent)
				if got.status != step.status {
					t.Fatalf("request %d: status %d, want %d: %s", sent, got.status, step.status, got.body)
				}
				if step.status != http.StatusOK && !strings.HasPrefix(got.said(t).Error.Message, "The end user of this request ") {
					t.Errorf("it says %s", got.body)
				}
			}
		})
	}
}

// S47: what a request under way holds is on the local disk, for the next process to record.
func TestRequestUnderWayIsOnTheLocalDisk(t *testing.T) {
	t.Parallel()
	began, end := make(chan struct{}), make(chan struct{})
	p := setup(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		began <- struct{}{}
		<-end
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, answerWith(messagesPath, 10, 10))
	})
	dir := t.TempDir()
	database, kept := p.spooling(dir)
	close(database.Open)
	p.store.limit(tenants.Limits{Quota: tenants.Quota{DayMicroUSD: 1_000_000}})
	var group sync.WaitGroup
	group.Go(func() { p.send(http.MethodPost, messagesPath, askClaude) })
	<-began
	if stats := kept.Stats(); stats.Records != 1 {
		t.Errorf("under way: %+v", stats)
	}
	close(end)
	group.Wait()
	p.Recorder.Stop()
	if stats := kept.Stats(); stats.Records != 0 {
		t.Errorf("once it is recorded: %+v", stats)
	}
}

// W52: every step of an answer that the provider charges for is charged, though the total of its usage leaves out
// compactions and advice of another model: https://platform.claude.com/docs/en/build-with-claude/compaction.
func TestEveryIterationIsCharged(t *testing.T) {
	t.Parallel()
	const (
		message = `{"id":"m","type":"message","role":"assistant","model":"claude-sonnet-5","content":[{"type":"compaction","content":"s"},{"type":"text","text":"Yes."}],"stop_reason":"end_turn","usage":%s}`
		stream  = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"model\":\"claude-sonnet-5\",\"usage\":{\"input_tokens\":229,\"output_tokens\":1}}}\n\n" +
			"event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":%s}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
		compacted = `{"input_tokens":229,"output_tokens":8,"iterations":[{"type":"compaction","input_tokens":100,"cache_creation_input_tokens":55096,"output_tokens":128},{"type":"message","input_tokens":229,"output_tokens":8}]}`
		twice     = `{"input_tokens":500,"cache_read_input_tokens":1000,"output_tokens":20,"iterations":[{"type":"compaction","input_tokens":60000,"output_tokens":300},{"type":"message","input_tokens":200,"output_tokens":10},{"type":"compaction","input_tokens":70000,"output_tokens":200},{"type":"message","input_tokens":300,"cache_read_input_tokens":1000,"output_tokens":10}]}`
		paused    = `{"input_tokens":0,"output_tokens":0,"iterations":[{"type":"compaction","input_tokens":180000,"output_tokens":3500}]}`
		advised   = `{"input_tokens":500,"output_tokens":90,"iterations":[{"type":"message","input_tokens":200,"output_tokens":40},{"type":"advisor_message","model":"claude-opus-5-5","input_tokens":1000,"output_tokens":600},{"type":"message","input_tokens":300,"output_tokens":50}]}`
	)
	for name, test := range map[string]struct {
		answer string
		tokens int // of input and output together
		cost   float64
	}{
		"a compaction":             {fmt.Sprintf(message, compacted), 229 + 8 + 100 + 55_096 + 128, 329*2 + 55_096*2.5 + 136*10},
		"a compaction in a stream": {fmt.Sprintf(stream, compacted), 229 + 8 + 100 + 55_096 + 128, 329*2 + 55_096*2.5 + 136*10},
		"two compactions":          {fmt.Sprintf(message, twice), 500 + 1000 + 20 + 130_000 + 500, 130_500*2 + 1000*0.2 + 520*10},
		"a pause behind it":        {fmt.Sprintf(message, paused), 183_500, 180_000*2 + 3500*10},
		"advice":                   {fmt.Sprintf(message, advised), 500 + 90 + 1600, 500*2 + 90*10 + 1000*4 + 600*20},
		"advice in a stream":       {fmt.Sprintf(stream, advised), 500 + 90 + 1600, 500*2 + 90*10 + 1000*4 + 600*20},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			isStream := strings.HasPrefix(test.answer, "event:")
			p := setup(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", map[bool]string{true: "text/event-stream", false: "application/json"}[isStream])
				_, _ = io.WriteString(w, test.answer)
			})
			p.send(http.MethodPost, messagesPath, fmt.Sprintf(`{"model":"claude-sonnet-5","max_tokens":9000,"stream":%t,"messages":[{"role":"user","content":"hi"}]}`, isStream))
			got := p.last(1)
			if sum := got.Tokens.Input + got.Tokens.CacheRead + got.Tokens.CacheWrite + got.Tokens.Output; sum != test.tokens || math.Abs(float64(got.Cost.CostMicroUSD)-test.cost) > 1 {
				t.Errorf("%d tokens for %d millionths of a dollar are recorded, want %d for %.0f", sum, got.Cost.CostMicroUSD, test.tokens, test.cost)
			}
		})
	}
}
