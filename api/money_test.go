package api

import (
	"encoding/json"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"palimpsest/api/upstream/providerdouble"
	"palimpsest/api/upstream/providertest"
	"palimpsest/pipeline/cost"
	"palimpsest/tenants"
)

// caching starts a proxy before a provider that caches what it is sent, both with
// the same clock, and returns what sends a body and waits for its record.
func caching(t *testing.T) (*proxy, *clock, func(body string) (answer, tenants.Exchange)) {
	t.Helper()
	clock := &clock{at: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)}
	double := providertest.NewServer(t, providerdouble.Config{Now: clock.now})
	p := setupAt(t, double.URL)
	p.store.windows["gpt-5.5"] = small
	p.Now, p.Prompts.Now = clock.now, clock.now
	sent := 0
	return p, clock, func(body string) (answer, tenants.Exchange) {
		t.Helper()
		clock.advance(20 * time.Second)
		got := p.send(http.MethodPost, chatPath, body)
		if got.status != http.StatusOK {
			t.Fatalf("status %d: %s", got.status, got.body)
		}
		sent++
		return got, p.last(sent)
	}
}

// busts returns the counts of the metric of cache misses by cause.
func busts(t *testing.T, metrics *Metrics) map[cost.Cause]int {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics.answer.busts)
	families, err := registry.Gather()
	if err != nil || len(families) != 1 {
		t.Fatalf("%d families: %v", len(families), err)
	}
	counts := map[cost.Cause]int{}
	for _, metric := range families[0].GetMetric() {
		counts[cost.Cause(metric.GetLabel()[0].GetValue())] = int(metric.GetCounter().GetValue())
	}
	return counts
}

// C11: every miss of the provider's cache has its cause on record.
func TestMissesOfTheProvidersCacheAreRecordedWithTheirCause(t *testing.T) {
	t.Parallel()
	p, clock, send := caching(t)
	withTools := func(body string) string {
		return strings.Replace(body, `"messages"`, `"tools":[{"type":"function","function":{"name":"bash","parameters":{"type":"object"}}}],"messages"`, 1)
	}
	missed := map[cost.Cause]int{}
	next := func(body string, want cost.Cause) {
		t.Helper()
		_, recorded := send(body)
		if got := cost.Cause(recorded.Tokens.MissCause); got != want {
			t.Errorf("the miss is put down to %q, want %q: %+v", got, want, recorded)
		}
		if missing := recorded.Tokens.MissedTokens > 0; missing != (want != cost.None && want != cost.ColdStart) {
			t.Errorf("%q: %d tokens are missed", want, recorded.Tokens.MissedTokens)
		}
		missed[want]++
	}
	next(chatSession(4, 300), cost.ColdStart)
	next(chatSession(5, 300), cost.None)
	clock.advance(25 * time.Hour) // GPT-5.5 keeps prompts for a day
	next(chatSession(6, 300), cost.TTLExpiry)
	next(withTools(chatSession(7, 300)), cost.PrefixChangeClient)
	next(withTools(chatSession(8, 300)), cost.None)

	delete(missed, cost.None)
	missed[cost.PrefixChangeOurs], missed[cost.Provider] = 0, 0
	if got := busts(t, p.Metrics); !maps.Equal(got, missed) {
		t.Errorf("counted are %v, want %v", got, missed)
	}
}

// C11, and a lane with many epochs is pointed out.
func TestEpochsAreOnRecordAndMayBeWarnedOf(t *testing.T) {
	t.Parallel()
	p, _, send := caching(t)
	epochs, ours, last := 0, 0, ""
	for turns := 5; epochs < 4; turns += 2 {
		if turns > 400 {
			t.Fatalf("only %d epochs", epochs)
		}
		got, recorded := send(chatSession(turns, 300))
		last = recorded.ID.String()
		if strings.Contains(string(recorded.Prompt.Report), `"type":"completed"`) {
			epochs++
			if recorded.Tokens.MissCause != string(cost.PrefixChangeOurs) {
				t.Errorf("epoch %d: the miss is put down to %q", epochs, recorded.Tokens.MissCause)
			}
		}
		if recorded.Tokens.MissCause == string(cost.PrefixChangeOurs) {
			ours++
		}
		if recorded.Prompt.Projection != epochs {
			t.Errorf("projection %d on record after %d epochs", recorded.Prompt.Projection, epochs)
		}
		warned := strings.Contains(got.header.Get("X-Palimpsest-Warning"), "epochs=")
		if warned != (epochs >= 3) {
			t.Errorf("after %d epochs the warning is %q", epochs, got.header.Get("X-Palimpsest-Warning"))
		}
	}
	if ours != epochs {
		t.Errorf("%d misses are ours, of %d epochs", ours, epochs)
	}
	p.log.holds(last) // all requests are logged
	if events := strings.Count(p.log.String(), `"ipc.warning":"epochs"`); events != 2 {
		t.Errorf("the log warns %d times, want once for each epoch from the third on", events)
	}
}

// B1: an answer that was broken off or ended in an error teaches nothing about sizes.
func TestAnswersThatBrokeOffTeachNoSizes(t *testing.T) {
	t.Parallel()
	const opened = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"claude-sonnet-4-5\",\"content\":[],\"usage\":{\"input_tokens\":90000,\"output_tokens\":1}}}\n\n"
	for name, provider := range map[string]http.HandlerFunc{
		"an error inside the stream": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = w.Write([]byte(opened + "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n"))
		},
		"cut off": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = w.Write([]byte(opened))
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := setup(t, provider)
			body := strings.Replace(toolSession("claude-sonnet-4-5", 3, 100), `"model"`, `"stream":true,"model"`, 1)
			first := p.send(http.MethodPost, messagesPath, body)
			recorded := p.last(1)
			if recorded.Tokens.Input != 90_000 || recorded.Cost.CostMicroUSD == 0 {
				t.Fatalf("the usage is not on record: %+v", recorded)
			}
			second := p.send(http.MethodPost, messagesPath, body)
			if before, after := first.header.Get("X-Palimpsest-Tokens-After"), second.header.Get("X-Palimpsest-Tokens-After"); before != after || before == "" {
				t.Errorf("the prompt is estimated at %s tokens, then at %s", before, after)
			}
		})
	}
}

// W41: an answer that goes on from one that the provider stores is metered, and its
// prompt is left as it is.
func TestChainOfStoredResponsesIsMetered(t *testing.T) {
	t.Parallel()
	double := providertest.NewServer(t, providerdouble.Config{})
	p := setupAt(t, double.URL)
	first := p.send(http.MethodPost, responsesPath, `{"model":"gpt-5.5","store":true,"input":"Remember the number seven."}`)
	var stored struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal(first.body, &stored); err != nil || stored.ID == "" {
		t.Fatalf("status %d: %s (%v)", first.status, first.body, err)
	}
	body := `{"model":"gpt-5.5", "previous_response_id":"` + stored.ID + `","input":"Which number?"}`
	got := p.send(http.MethodPost, responsesPath, body)
	if last, _ := double.Last(); got.status != http.StatusOK || string(last.Body) != body || got.header.Get("X-Palimpsest-Compression") != "bypassed" {
		t.Fatalf("status %d, headers %v: %s", got.status, got.header, got.body)
	}
	p.last(2)
	p.store.mu.Lock()
	defer p.store.mu.Unlock()
	for _, recorded := range p.store.exchanges {
		if recorded.Tokens.Input == 0 || recorded.Tokens.Output == 0 || recorded.Cost.CostMicroUSD == 0 {
			t.Errorf("recorded: %+v", recorded)
		}
		if recorded.Prompt.Compression == "bypassed" && recorded.Tokens.Input <= recorded.Prompt.TokensAfter {
			t.Errorf("the history that the provider keeps does not count: %+v", recorded)
		}
	}
}
