package api

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"palimpsest/tenants"
)

// variant is what a client may change when it sends its history again.
type variant struct {
	turns, words, tools int
	system, model       bool // has a system prompt; names another model
}

func randomVariant(random *rand.Rand) variant {
	return variant{
		turns: 1 + random.IntN(4), words: 1 + random.IntN(300), tools: random.IntN(2) * (1 + random.IntN(40)),
		system: random.IntN(2) == 0, model: random.IntN(4) == 0,
	}
}

// body returns the variant's request in the format of a path.
func (v variant) body(t *testing.T, path string) string {
	t.Helper()
	messages := []map[string]any{{"role": "user", "content": "What is the meaning of life?"}}
	for i := range v.turns {
		messages = append(messages, map[string]any{"role": "assistant", "content": "Forty-two."},
			map[string]any{"role": "user", "content": strings.Repeat(fmt.Sprintf("word%d ", i), v.words)})
	}
	body, list, system := map[string]any{"model": "gpt-5.5"}, "messages", "instructions"
	var tools []any
	for i := range v.tools {
		name, schema := fmt.Sprintf("tool_%d", i), map[string]any{"type": "object", "description": strings.Repeat("what it takes ", 20)}
		switch path {
		case chatPath:
			tools = append(tools, map[string]any{"type": "function", "function": map[string]any{"name": name, "parameters": schema}})
		case responsesPath:
			tools = append(tools, map[string]any{"type": "function", "name": name, "parameters": schema})
		default:
			tools = append(tools, map[string]any{"name": name, "input_schema": schema})
		}
	}
	if v.model {
		body["model"] = "gpt-5.6-sol"
	}
	switch path {
	case messagesPath:
		body["model"], body["max_tokens"], system = "claude-sonnet-4-5", 50, "system"
		if v.model {
			body["model"] = "claude-haiku-4-5"
		}
	case responsesPath:
		list = "input"
	case chatPath:
		system = ""
		if v.system {
			messages = append([]map[string]any{{"role": "system", "content": strings.Repeat("Be brief. ", 50)}}, messages...)
		}
	}
	body[list] = messages
	if tools != nil {
		body["tools"] = tools
	}
	if v.system && system != "" {
		body[system] = strings.Repeat("Be brief. ", 50)
	}
	raw, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// answerWith returns the answer of a provider that counts so many tokens.
func answerWith(path string, prompt, output int) string {
	switch path {
	case chatPath:
		return fmt.Sprintf(`{"id":"c","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"All right."},"finish_reason":"stop"}],"usage":{"prompt_tokens":%d,"completion_tokens":%d}}`, prompt, output)
	case responsesPath:
		return fmt.Sprintf(`{"id":"r","object":"response","status":"completed","model":"m","output":[{"type":"message","id":"msg_1","status":"completed","role":"assistant","content":[{"type":"output_text","text":"All right.","annotations":[]}]}],"usage":{"input_tokens":%d,"output_tokens":%d}}`, prompt, output)
	default:
		return fmt.Sprintf(`{"id":"m","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"All right."}],"stop_reason":"end_turn","usage":{"input_tokens":%d,"output_tokens":%d}}`, prompt, output)
	}
}

// S48: whatever a client changes between two requests of one thread, and whatever the provider
// counts, each exchange is recorded, and no size is negative.
func TestEveryPairOfRequestsOnAThreadIsRecorded(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for _, path := range []string{messagesPath, chatPath, responsesPath} {
		counted := 0 // the next answer's
		p := setup(t, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, answerWith(path, counted, 4))
		})
		sent := 0
		for pair := range 40 {
			for half := range 2 {
				variant := randomVariant(random)
				if pair == 0 { // the case that was reported
					variant.tools = 40 * (1 - half)
				}
				counted = []int{13, 40, 1 + random.IntN(5000), -5, 1 << 40}[min(pair, random.IntN(5))]
				got := p.send(http.MethodPost, path, variant.body(t, path), "X-Palimpsest-Session-Id", fmt.Sprint("thread-", pair))
				if got.status != http.StatusOK {
					t.Fatalf("%s: status %d: %s", path, got.status, got.body)
				}
				sent++
				checkFigures(t, variant, p.last(sent))
			}
		}
		if _, after, panics := strings.Cut(p.log.String(), "panic"); panics {
			t.Errorf("%s: panic%.3000s", path, after)
		}
	}
}

func checkFigures(t *testing.T, variant variant, recorded tenants.Exchange) {
	t.Helper()
	for name, figure := range map[string]int{
		"tokens before": recorded.Prompt.TokensBefore - 1, "tokens after": recorded.Prompt.TokensAfter - 1, "input": recorded.Tokens.Input,
		"cache read": recorded.Tokens.CacheRead, "cache write": recorded.Tokens.CacheWrite, "output": recorded.Tokens.Output,
		"missed": recorded.Tokens.MissedTokens, "cost": int(recorded.Cost.CostMicroUSD),
	} {
		if figure < 0 || figure > 1_000_000_000_000 {
			t.Errorf("%+v: %s is out of its range: %+v", variant, name, recorded)
		}
	}
}
