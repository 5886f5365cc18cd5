package api

import (
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"palimpsest/api/upstream/providerdouble"
	"palimpsest/api/upstream/providertest"
	"palimpsest/tenants"
)

// monthly is a session of the month: who answers it on which terms, and what its requests ask for.
type monthly struct {
	name, model string
	path        string
	head        string // members of the body
	ttl         string // of Anthropic's cache markers
	breakpoint  string // time to live of OpenAI's, on the newest message
	says        string // what the double is told, in the system prompt
	words       int    // of each tool result; 0: as all the others
	early       bool   // it ends with its first compaction, which the client can't make up for
}

func month() []monthly {
	return []monthly{
		{name: "five minutes", model: "claude-sonnet-4-5", path: messagesPath, ttl: "5m"},
		{name: "an hour, fast", model: "claude-opus-5-5", path: messagesPath, ttl: "1h", head: `"speed":"fast",`},
		{name: "in the US", model: "claude-opus-5", path: messagesPath, ttl: "5m", head: `"inference_geo":"us",`},
		{name: "fast, served at the usual speed", model: "claude-opus-5", path: messagesPath, ttl: "5m", head: `"speed":"fast",`, says: "#standard"},
		{name: "searching", model: "claude-sonnet-5", path: messagesPath, ttl: "1h", says: "#search"},
		{name: "a batch's price", model: "claude-sonnet-4-6", path: messagesPath, ttl: "5m", says: "#batch"},
		{name: "long prompts", model: "claude-haiku-5-5", path: messagesPath, ttl: "5m", words: 17_000},
		{name: "another answers", model: "claude-opus-4-8", path: messagesPath, ttl: "5m", head: `"fallbacks":[{"model":"claude-sonnet-4-6"}],`, says: "#other"},
		{name: "another answers unasked", model: "claude-opus-4-8", path: messagesPath, ttl: "5m", says: "#other"},
		{name: "half an hour", model: "gpt-5.6-sol", path: chatPath},
		{name: "half a day, flex", model: "gpt-5.6-sol", path: chatPath, head: `"service_tier":"flex","prompt_cache_options":{"ttl":"12h"},`},
		{name: "half a day on one block", model: "gpt-5.6-luna", path: chatPath, breakpoint: "12h"},
		{name: "priority", model: "gpt-5.5", path: chatPath, head: `"service_tier":"priority",`},
		{name: "priority, served as usual", model: "gpt-6.1-sol", path: responsesPath, head: `"service_tier":"priority",`, says: "#usual"},
		{name: "priority by the project's own setting", model: "gpt-5.6-terra", path: responsesPath, says: "#priority"},
		{name: "no charge for writing", model: "gpt-5.4", path: chatPath},
		{name: "our own price", model: "claude-opus-4-7", path: messagesPath, ttl: "1h"},
		{name: "own price at the key", model: "gpt-5.4-mini", path: chatPath},
	}
}

// ownPrices are the prices that the month's workspace has agreed on with its providers.
func ownPrices(p *proxy) []tenants.ModelPrice {
	return []tenants.ModelPrice{
		{Model: "claude-sonnet-4-6", Input: 2.4, Output: 12, CacheRead: 0.24}, // also where it answers for another
		{Model: "claude-opus-4-7", Input: 4, Output: 18, CacheRead: 0.3},
		{Model: "gpt-5.4-mini", Input: 7, Output: 70, CacheRead: 7},
		{Model: "gpt-5.4-mini", ProviderKey: p.store.keys[1].ID, Input: 0.5, Output: 3, CacheRead: 0.1, CacheWrite5m: 0.6, CacheWrite1h: 0.6},
	}
}

// termsOnRecord are the terms that sessions of the month are answered on.
func termsOnRecord() map[string]tenants.Served {
	return map[string]tenants.Served{
		"an hour, fast":                         {ServiceTier: "standard", Speed: "fast", Region: "global"},
		"in the US":                             {ServiceTier: "standard", Speed: "standard", Region: "us"},
		"fast, served at the usual speed":       {ServiceTier: "standard", Speed: "standard", Region: "global"},
		"a batch's price":                       {ServiceTier: "batch", Speed: "standard", Region: "global"},
		"priority":                              {ServiceTier: "priority"},
		"priority, served as usual":             {ServiceTier: "default"},
		"priority by the project's own setting": {ServiceTier: "priority"},
		"ended early: half a day, flex":         {ServiceTier: "flex"},
		"another answers":                       {ServiceTier: "standard", Speed: "standard", Region: "global", AnsweredBy: "claude-sonnet-4-6"},
		"another answers unasked":               {ServiceTier: "standard", Speed: "standard", Region: "global", AnsweredBy: "claude-sonnet-4-6"},
	}
}

// tariffs are the double's prices. They are written down here once more, and nothing of our catalog
// is used for them.
func tariffs() map[string]providerdouble.Tariff {
	claude := func(input, output, read float64) providerdouble.Tariff {
		return providerdouble.Tariff{
			Input: input, Output: output, Read: read, Write: 1.25 * input, WriteHour: 2 * input, Search: 0.01,
			Tiers: map[string]float64{"fast": 2, "batch": 0.5}, Regions: map[string]float64{"us": 1.1},
		}
	}
	openai := func(input, output, read, write, fast float64) providerdouble.Tariff {
		return providerdouble.Tariff{
			Input: input, Output: output, Read: read, Write: write, LongAbove: 272_000, LongInput: 2, LongOutput: 1.5,
			Tiers: map[string]float64{"priority": fast, "flex": 0.5},
		}
	}
	haiku := claude(0.1, 0.5, 0.01)
	haiku.LongAbove, haiku.LongInput, haiku.LongOutput = 100_000, 5, 5
	return map[string]providerdouble.Tariff{
		"claude-sonnet-4-5": claude(3, 15, 0.3), "claude-opus-5-5": claude(4, 20, 0.2), "claude-opus-5": claude(5, 25, 0.5), "claude-sonnet-5": claude(2, 10, 0.2),
		"claude-sonnet-4-6": claude(2.4, 12, 0.24), "claude-opus-4-8": claude(5, 25, 0.5), "claude-haiku-5-5": haiku,
		"gpt-5.6-sol": openai(4, 20, 0.4, 5, 2), "gpt-5.6-luna": openai(0.2, 1.2, 0.02, 0.25, 2), "gpt-5.6-terra": openai(2, 12, 0.2, 2.5, 2),
		"gpt-6.1-sol": openai(2, 10, 0.1, 2.5, 2), "gpt-5.5": openai(5, 30, 0.5, 5, 2.5), "gpt-5.4": openai(2.5, 15, 0.25, 2.5, 2),
		"claude-opus-4-7": claude(4, 18, 0.3), "gpt-5.4-mini": openai(0.5, 3, 0.1, 0.6, 2),
	}
}

// servedOtherwise is the double's script: it answers on other terms than it was asked for where the
// system prompt says so.
func servedOtherwise(asked providerdouble.Request) providerdouble.Reply {
	reply := providerdouble.Reply{Text: strings.Repeat("Done. ", 40)}
	for word, terms := range map[string]providerdouble.Terms{
		"#standard": {Speed: "standard"}, "#search": {Searches: 2}, "#batch": {Tier: "batch"}, "#other": {Model: "claude-sonnet-4-6"},
		"#usual": {Tier: "default"}, "#priority": {Tier: "priority"},
	} {
		if strings.Contains(string(asked.Body), word) {
			reply.Terms = terms
		}
	}
	return reply
}

// body returns the session's request with so many steps.
func (m monthly) body(steps int) string {
	words := m.words
	if words == 0 {
		words = 800
	}
	system := fmt.Sprintf("You work on %q. %s %s", m.name, m.says, strings.Repeat("Be careful. ", 400))
	said := func(i int) string { return strings.Repeat(fmt.Sprintf("%s%d ", m.name[:4], i), words) }
	var items []string
	for i := range steps {
		result, isLast := said(i), i == steps-1
		switch m.path {
		case messagesPath:
			marker := ""
			if isLast {
				marker = `,"cache_control":{"type":"ephemeral","ttl":"` + m.ttl + `"}`
			}
			items = append(items, fmt.Sprintf(`{"role":"assistant","content":[{"type":"tool_use","id":"toolu_%d","name":"bash","input":{"command":"step %d"}}]}`, i, i),
				fmt.Sprintf(`{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_%d","content":%q%s}]}`, i, result, marker))
		case chatPath:
			items = append(items, fmt.Sprintf(`{"role":"assistant","content":null,"tool_calls":[{"id":"call_%d","type":"function","function":{"name":"bash","arguments":"{}"}}]}`, i),
				fmt.Sprintf(`{"role":"tool","tool_call_id":"call_%d","content":%q}`, i, result))
		case responsesPath:
			items = append(items, fmt.Sprintf(`{"type":"function_call","call_id":"call_%d","name":"bash","arguments":"{}"}`, i),
				fmt.Sprintf(`{"type":"function_call_output","call_id":"call_%d","output":%q}`, i, result))
		}
	}
	history := strings.Join(append([]string{`{"role":"user","content":"Do it all."}`}, items...), ",")
	switch m.path {
	case messagesPath:
		return fmt.Sprintf(`{%s"model":%q,"max_tokens":1000,"tools":[{"name":"bash","input_schema":{"type":"object"}}],"system":[{"type":"text","text":%q,"cache_control":{"type":"ephemeral","ttl":%q}}],"messages":[%s]}`, m.head, m.model, system, m.ttl, history)
	case chatPath:
		first := fmt.Sprintf(`{"role":"system","content":%q}`, system)
		if m.breakpoint != "" {
			first = fmt.Sprintf(`{"role":"system","content":[{"type":"text","text":%q,"prompt_cache_breakpoint":{"mode":"explicit","ttl":%q}}]}`, system, m.breakpoint)
		}
		return fmt.Sprintf(`{%s"model":%q,"max_completion_tokens":1000,"messages":[%s,%s]}`, m.head, m.model, first, history)
	}
	return fmt.Sprintf(`{%s"model":%q,"max_output_tokens":1000,"store":false,"instructions":%q,"input":[%s]}`, m.head, m.model, system, history)
}

// W52: over a generated month with every tier and every life of a cache, what is on record is what
// the provider charges, and each compaction that saved money is known to have done so, as is each
// that cost money. What it saved is measured by sending the same requests to a second provider as
// the client sent them, at the same times.
func TestAMonthCostsWhatTheProviderCharges(t *testing.T) {
	t.Parallel()
	clock := &clock{at: time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)}
	config := providerdouble.Config{Now: clock.now, Script: servedOtherwise}
	tariffs := tariffs()
	double, uncompacted := providertest.NewServer(t, config), providertest.NewServer(t, config)
	p := setupAt(t, double.URL)
	p.store.prices = ownPrices(p)
	p.store.pipeline = tenants.PipelineConfig{Modules: "ipc", YAML: "ipc: {contextWindow: 12000, preserveTokens: 1000, preserveLastTurns: 2, targetUtilization: 0.75}"}
	p.Now, p.Prompts.Now = clock.now, clock.now

	random := rand.New(rand.NewPCG(52, 8))
	gaps := []time.Duration{20 * time.Second, time.Minute, 3 * time.Minute, 7 * time.Minute, 20 * time.Minute, 45 * time.Minute, 2 * time.Hour, 13 * time.Hour}
	type sum struct{ truth, ours, spent float64 }
	compactions, recordedSum, sent := map[string]*sum{}, 0.0, 0
	sessions := month()
	for _, session := range month() {
		if session.words == 0 {
			session.early, session.name = true, "ended early: "+session.name
			sessions = append(sessions, session)
		}
	}
	for _, session := range sessions {
		isOver := false
		for steps := 1; steps <= 14 && !isOver; steps++ {
			headers := []string{"X-Palimpsest-Session-Id", session.name, "Anthropic-Version", "2023-06-01"}
			gap := gaps[min(random.IntN(len(gaps)), random.IntN(len(gaps)))]
			switch {
			case session.early && session.path == messagesPath:
				gap = time.Minute
			case session.early:
				gap = 10 * time.Minute // for GPT-5.6 and newer the cache is warm
			case session.words > 0:
				headers = append(headers, "X-Palimpsest-Bypass", "true")
				isOver = steps == 6
			}
			clock.advance(gap)
			body := session.body(steps)
			if got := p.send(http.MethodPost, session.path, body, headers...); got.status != http.StatusOK {
				t.Fatalf("%s, step %d: status %d: %s", session.name, steps, got.status, got.body)
			}
			sent++
			recorded := p.last(sent)
			if want, is := termsOnRecord()[session.name]; is && recorded.Answer.Served != want {
				t.Errorf("%s, step %d: answered on %+v, want %+v", session.name, steps, recorded.Answer.Served, want)
			}
			sendTo(t, uncompacted.URL, session.path, body)
			last, _ := double.Last()
			lastUncompacted, _ := uncompacted.Last()
			charged, without := last.Charge(tariffs), lastUncompacted.Charge(tariffs)
			recordedSum += float64(recorded.Cost.CostMicroUSD)
			if diff := math.Abs(float64(recorded.Cost.CostMicroUSD) - charged*1e6); diff > 2 {
				t.Errorf("%s, step %d: $%.6f on record, the provider charges $%.6f: %+v", session.name, steps, float64(recorded.Cost.CostMicroUSD)/1e6, charged, recorded)
			}
			isOver = isOver || session.early && recorded.Prompt.Projection > 0
			if recorded.Prompt.Projection > 0 {
				key := fmt.Sprintf("%s, compaction %d", session.name, recorded.Prompt.Projection)
				if compactions[key] == nil {
					compactions[key] = &sum{}
				}
				compactions[key].truth += without - charged
				compactions[key].ours += float64(recorded.Cost.NetMicroUSD) / 1e6
				compactions[key].spent += charged
			}
		}
	}
	if bill := double.Bill(tariffs) * 1e6; math.Abs(recordedSum-bill) > 0.005*bill || bill == 0 {
		t.Errorf("the month is on record with $%.4f, the provider charges $%.4f", recordedSum/1e6, bill/1e6)
	}
	gained, lost := 0, 0
	for key, sum := range compactions {
		t.Logf("%-60s saved $%.4f, on record $%.4f, of $%.4f", key, sum.truth, sum.ours, sum.spent)
		if math.Abs(sum.truth) < 0.02*sum.spent {
			continue // nobody can say whether it was worth it
		}
		if sum.truth > 0 {
			gained++
		} else {
			lost++
		}
		if (sum.truth > 0) != (sum.ours > 0) {
			t.Errorf("%s: it saved $%.5f, and $%.5f are on record", key, sum.truth, sum.ours)
		}
	}
	t.Logf("%d requests, $%.2f; of %d compactions %d saved and %d cost", sent, double.Bill(tariffs), len(compactions), gained, lost)
	if gained < 10 || lost < 3 {
		t.Errorf("%d compactions saved money and %d cost some: the month proves too little", gained, lost)
	}
}

// sendTo sends a body to a provider as its client would.
func sendTo(t *testing.T, provider, path, body string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, provider+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("X-Api-Key", providerKey)
	request.Header.Set("Authorization", "Bearer "+providerKey)
	request.Header.Set("Anthropic-Version", "2023-06-01")
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if said, _ := io.ReadAll(response.Body); response.StatusCode != http.StatusOK {
		t.Fatalf("without a proxy: status %d: %s", response.StatusCode, said)
	}
}
