package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"palimpsest/api/upstream/providertest"
	"palimpsest/cmd/palimpsest/buildtest"
	"palimpsest/migrations/dbtest"
	"palimpsest/pipeline/fulltest"
)

// What the biller charges, in millionths of a dollar: list prices of claude-sonnet-4-5 and
// gpt-5.5, for a prompt that it counts smaller than we do.
const (
	billedPrompt  = 10 * 3
	sonnetAnswer  = 1000 * 15
	gptAnswers    = 4 * 500 * 30
	dearestBilled = gptAnswers + 10*5
)

// biller is a provider that notes what it charges as its requests arrive, and ends them in
// every way.
type biller struct {
	mu      sync.Mutex
	billed  int64
	arrived map[string]func() // what lets the clients of requests leave
	count   int
	more    sync.Cond
}

func newBiller() *biller {
	b := &biller{arrived: map[string]func(){}}
	b.more.L = &b.mu
	return b
}

// ServeHTTP implements http.Handler.
func (b *biller) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var asked struct {
		Stream   bool `json:"stream"`
		Messages []struct{ Content string }
	}
	if json.Unmarshal(body, &asked) != nil || len(asked.Messages) == 0 {
		return // it did not come whole: the program was killed
	}
	id, isChat := asked.Messages[0].Content, strings.HasSuffix(r.URL.Path, "/chat/completions")
	n := b.note(id, asked.Stream, isChat)
	w.Header().Set("Content-Type", "application/json")
	switch {
	case n%7 == 3:
		http.Error(w, `{"type":"error","error":{"type":"api_error","message":"no"}}`, http.StatusInternalServerError)
	case asked.Stream:
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "event: content_block_start\ndata: {\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n"+
			"event: content_block_delta\ndata: {\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"0123456789012345678901234567890123456789\"}}\n\n")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	case n%7 == 1:
		<-r.Context().Done() // the client leaves, or the program is killed
	case n%7 == 2:
		panic(http.ErrAbortHandler)
	case isChat:
		_, _ = io.WriteString(w, `{"id":"c","object":"chat.completion","model":"gpt-5.5","choices":[{"index":0,"message":{"role":"assistant","content":"x"},"finish_reason":"stop"}],"usage":{"prompt_tokens":10,"completion_tokens":2000}}`)
	default:
		_, _ = io.WriteString(w, `{"id":"m","type":"message","role":"assistant","model":"claude-sonnet-4-5","content":[{"type":"text","text":"x"}],"stop_reason":"end_turn","usage":{"input_tokens":10,"output_tokens":1000}}`)
	}
}

// note charges for a request and returns its number.
func (b *biller) note(id string, stream, isChat bool) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.count++
	switch {
	case b.count%7 == 3:
	case stream:
		b.billed += billedPrompt + 10*15
	case isChat:
		b.billed += dearestBilled
	default:
		b.billed += billedPrompt + sonnetAnswer
	}
	if b.count%7 == 1 && !stream {
		b.arrived[id]()
	}
	b.more.Broadcast()
	return b.count
}

// wait returns once so many more requests have arrived, or all clients have stopped.
func (b *biller) wait(more int, stopped <-chan struct{}) {
	go func() {
		<-stopped
		b.mu.Lock()
		defer b.mu.Unlock()
		b.more.Broadcast()
	}()
	b.mu.Lock()
	defer b.mu.Unlock()
	for until := b.count + more; b.count < until; {
		select {
		case <-stopped:
			return
		default:
		}
		b.more.Wait()
	}
}

// ask sends requests of every kind until one is refused, or the program is killed.
func (b *biller) ask(t *testing.T, w *tenant, client string) {
	t.Helper()
	for step := 0; ; step++ {
		id := fmt.Sprintf("%s, step %d", client, step)
		path, body := "/v1/messages", fmt.Sprintf(`{"model":"claude-sonnet-4-5","max_tokens":1000,"stream":%t,"messages":[{"role":"user","content":%q}]}`, step%3 == 1, id)
		if step%3 == 2 {
			path, body = "/v1/chat/completions", fmt.Sprintf(`{"model":"gpt-5.5","max_completion_tokens":500,"n":4,"messages":[{"role":"user","content":%q}]}`, id)
		}
		if status, err := b.send(t, w, id, path, body); status == http.StatusTooManyRequests || err != nil {
			return
		}
	}
}

func (b *biller) send(t *testing.T, w *tenant, id, path, body string) (status int, err error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	b.mu.Lock()
	b.arrived[id] = cancel
	b.mu.Unlock()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url(path), strings.NewReader(body))
	if err != nil {
		t.Error(err)
		return 0, err
	}
	request.Header.Set("Authorization", "Bearer "+w.key)
	request.Header.Set("Anthropic-Version", "2023-06-01")
	response, err := http.DefaultClient.Do(request)
	if ctx.Err() != nil {
		return 0, nil // it has left
	}
	if err != nil {
		return 0, err // killed
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body)
	return response.StatusCode, nil
}

// S47: parallel requests of every kind, of a program that is killed and started again among
// them, cost their provider no more than the budget and one request's maximum, and
// everything that they cost is recorded.
func TestKilledProgramKeepsToABudget(t *testing.T) {
	t.Parallel()
	database, bills := dbtest.New(t), newBiller()
	provider := httptest.NewServer(bills)
	t.Cleanup(provider.Close)
	c := &child{t: t, binary: buildtest.Palimpsest(t), dir: t.TempDir(), databaseURL: database.OwnerURL}
	c.start()
	w := &tenant{instance: &instance{t: t, double: &providertest.Server{URL: provider.URL}}}
	c.adopt(w)
	w.join("budget")
	kills := len(slices.Collect(fulltest.Part(20)))
	clients := 25
	if fulltest.Everything() {
		clients = 200
	}
	budget := int64((kills+1)*clients) * 40_000
	var created struct{ Secret string }
	w.call(http.MethodPost, "/api/v1/keys", map[string]any{"name": "held", "scopes": []string{"proxy"}, "budget_month_usd": float64(budget) / 1e6}, http.StatusCreated, &created)
	w.key = created.Secret
	for round := range kills + 1 {
		var asking sync.WaitGroup
		stopped := make(chan struct{})
		for client := range clients {
			asking.Go(func() { bills.ask(t, w, fmt.Sprintf("round %d, client %d", round, client)) })
		}
		go func() {
			asking.Wait()
			close(stopped)
		}()
		if round < kills {
			bills.wait(50, stopped)
			_ = c.command.Process.Signal(syscall.SIGKILL)
			_ = c.command.Wait()
		}
		<-stopped
		if round < kills {
			c.start()
			c.adopt(w)
		}
	}
	c.stop() // has recorded everything
	var recorded int64
	if err := database.Owner(t).QueryRow(t.Context(), "SELECT sum(cost_microusd) FROM exchanges").Scan(&recorded); err != nil {
		t.Fatal(err)
	}
	most := budget + dearestBilled + 1000
	if bills.billed > most || bills.billed < budget/10 {
		t.Errorf("%d requests cost their provider %d, with a budget of %d", bills.count, bills.billed, budget)
	}
	if recorded < bills.billed || recorded > most {
		t.Errorf("%d is recorded of the %d that the provider charges, with a budget of %d", recorded, bills.billed, budget)
	}
}
