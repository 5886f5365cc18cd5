package api

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"palimpsest/pipeline/sharedtest"
)

// sessionOf returns the path and a long session of a format as the shared data names it, and what a
// server answers it with.
func sessionOf(t *testing.T, format, model string) (path, body, answer string) {
	t.Helper()
	switch format {
	case "anthropic":
		return messagesPath, toolSession(model, 30, 800), `{"type":"message","role":"assistant","content":[{"type":"text","text":"All right."}],"stop_reason":"end_turn","usage":{"input_tokens":4000,"output_tokens":4}}`
	case "responses":
		return responsesPath, strings.ReplaceAll(responsesSession(800), "gpt-5.5", model), `{"object":"response","status":"completed","output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"All right."}]}],"usage":{"input_tokens":4000,"output_tokens":4}}`
	default:
		return chatPath, strings.ReplaceAll(chatSession(30, 800), "gpt-5.5", model), `{"object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"All right."},"finish_reason":"stop"}],"usage":{"prompt_tokens":4000,"completion_tokens":4}}`
	}
}

// refusing is a provider that refuses the first request, and answers those that follow.
func refusing(asked *atomic.Int32, status int, refusal, answer string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		if asked.Add(1) == 1 {
			w.WriteHeader(status)
			_, _ = io.WriteString(w, refusal)
			return
		}
		_, _ = io.WriteString(w, answer)
	}
}

// W49: whatever a server says, and with whatever status, the emergency pass is made, and the window of
// a model that nobody knew is learned.
func TestEveryRefusalIsAnsweredByOneSmallerPrompt(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile(sharedtest.Path(t, "data", "reports", "refusals.json"))
	if err != nil {
		t.Fatal(err)
	}
	var all []struct {
		Name, Format   string
		Status, Window int
		Body           json.RawMessage
	}
	if err := json.Unmarshal(content, &all); err != nil {
		t.Fatal(err)
	}
	for _, test := range all {
		t.Run(test.Name, func(t *testing.T) {
			t.Parallel()
			path, body, answer := sessionOf(t, test.Format, "house-model")
			var asked atomic.Int32
			p := setup(t, refusing(&asked, test.Status, string(test.Body), answer))
			got := p.send(http.MethodPost, path, body)
			if got.status != http.StatusOK || asked.Load() != 2 || got.header.Get("X-Palimpsest-Compression") != "emergency" {
				t.Errorf("asked %d times, status %d, headers %v: %.300s", asked.Load(), got.status, got.header, got.body)
			}
			p.store.mu.Lock()
			learned := p.store.windows["house-model"]
			p.store.mu.Unlock()
			if learned == 0 || strings.Contains(string(test.Body), "8000") && learned != test.Window {
				t.Errorf("learned a window of %d, want %d", learned, test.Window)
			}
		})
	}
}

// W22, W49: an error before the first word of a stream is a refusal in every format.
func TestRefusalsInsideStreamsAreAnsweredByOneSmallerPrompt(t *testing.T) {
	t.Parallel()
	const (
		started  = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"type\":\"message\",\"role\":\"assistant\",\"content\":[],\"usage\":{\"input_tokens\":1,\"output_tokens\":1}}}\n\nevent: ping\ndata: {\"type\":\"ping\"}\n\n"
		textual  = "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n"
		said     = textual + "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"hi\"}}\n\n"
		tooLong  = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"prompt is too long: 14000 tokens > 8000 maximum\"}}\n\n"
		overload = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n"
		full     = "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"model_context_window_exceeded\"},\"usage\":{\"input_tokens\":8000,\"output_tokens\":0}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"

		role    = "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"finish_reason\":null}]}\n\n"
		word    = "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hi\"},\"finish_reason\":null}]}\n\n"
		refused = "data: {\"error\":{\"message\":\"This model's maximum context length is 8000 tokens. However, your messages resulted in 14000 tokens.\",\"code\":400}}\n\ndata: [DONE]\n\n"
		flat    = "data: {\"object\":\"error\",\"message\":\"The input (14000 tokens) is longer than the model's context length (8000 tokens).\",\"type\":\"BadRequestError\",\"code\":400}\n\n"
		cut     = "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"length\"}]}\n\ndata: {\"choices\":[],\"usage\":{\"prompt_tokens\":8000,\"completion_tokens\":0}}\n\ndata: [DONE]\n\n"
		router  = ": OPENROUTER PROCESSING\n\ndata: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"finish_reason\":\"error\",\"error\":{\"code\":400,\"message\":\"prompt is too long: 14000 tokens > 8000 maximum\"}}]}\n\n"
		busy    = "data: {\"error\":{\"message\":\"Rate limit reached: too many tokens per minute\",\"code\":\"rate_limit_exceeded\"}}\n\n"
	)
	messages := toolSession("house-model", 30, 800)
	messages = strings.Replace(messages, `"max_tokens"`, `"stream":true,"max_tokens"`, 1)
	chat := strings.Replace(strings.ReplaceAll(chatSession(30, 800), "gpt-5.5", "house-model"), `"model"`, `"stream":true,"stream_options":{"include_usage":true},"model"`, 1)
	for name, test := range map[string]struct {
		path, body, first, second, want string
		asked                           int32
	}{
		"messages: an error at once":        {messagesPath, messages, tooLong, started + said, started + said, 2},
		"messages: an error behind a ping":  {messagesPath, messages, started + tooLong, started + said, started + said, 2},
		"messages: an empty text":           {messagesPath, messages, started + textual + tooLong, started + said, started + said, 2},
		"messages: the window is full":      {messagesPath, messages, started + full, started + said, started + said, 2},
		"messages: said before":             {messagesPath, messages, started + said + tooLong, "", started + said + tooLong, 1},
		"messages: overloaded":              {messagesPath, messages, started + overload, "", started + overload, 1},
		"messages: no name, another's data": {messagesPath, messages, refused, started + said, started + said, 2},
		"chat: an error at once":            {chatPath, chat, refused, role + word, role + word, 2},
		"chat: behind the role":             {chatPath, chat, role + refused, role + word, role + word, 2},
		"chat: no error member":             {chatPath, chat, role + flat, role + word, role + word, 2},
		"chat: cut at the window":           {chatPath, chat, role + cut, role + word, role + word, 2},
		"chat: behind a comment":            {chatPath, chat, router, role + word, role + word, 2},
		"chat: said before":                 {chatPath, chat, role + word + refused, "", role + word + refused, 1},
		"chat: a rate":                      {chatPath, chat, busy, "", busy, 1},
		"chat: JSON in place of a stream":   {chatPath, chat, "{\"error\":\"context_length_exceeded\"}", role + word, role + word, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var asked atomic.Int32
			p := setup(t, streams(&asked, test.first, test.second))
			got := p.send(http.MethodPost, test.path, test.body)
			if got.status != http.StatusOK || string(got.body) != test.want || asked.Load() != test.asked {
				t.Errorf("asked %d times, status %d, headers %v:\n%.500s", asked.Load(), got.status, got.header, got.body)
			}
		})
	}
}

// W49: an answer that the model's window ended before it said anything is a refusal too. What the
// provider charges for it counts.
func TestAnswersThatTheWindowEndsTeachIt(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ format, full string }{
		"messages":  {"anthropic", `{"type":"message","role":"assistant","content":[{"type":"text","text":"I"}],"stop_reason":"model_context_window_exceeded","usage":{"input_tokens":7999,"output_tokens":1}}`},
		"max":       {"anthropic", `{"type":"message","role":"assistant","content":[],"stop_reason":"max_tokens","usage":{"input_tokens":8000,"output_tokens":0}}`},
		"chat":      {"chat", `{"object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":""},"finish_reason":"length"}],"usage":{"prompt_tokens":8000,"completion_tokens":0,"total_tokens":8000}}`},
		"z.ai":      {"chat", `{"object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":""},"finish_reason":"model_context_window_exceeded"}],"usage":{"prompt_tokens":8000,"completion_tokens":0}}`},
		"error 200": {"chat", `{"error":{"message":"This model's maximum context length is 8000 tokens. However, your messages resulted in 14000 tokens.","code":400}}`},
		"responses": {"responses", `{"object":"response","status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"output":[],"usage":{"input_tokens":8000,"output_tokens":0}}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path, body, answer := sessionOf(t, test.format, "house-model")
			var asked atomic.Int32
			p := setup(t, refusing(&asked, http.StatusOK, test.full, answer))
			got := p.send(http.MethodPost, path, body)
			if got.status != http.StatusOK || string(got.body) != answer || asked.Load() != 2 {
				t.Errorf("asked %d times, status %d, headers %v: %.300s", asked.Load(), got.status, got.header, got.body)
			}
			p.store.mu.Lock()
			learned := p.store.windows["house-model"]
			p.store.mu.Unlock()
			if learned != 8000 {
				t.Errorf("learned a window of %d", learned)
			}
		})
	}
}

// W49: a short answer, and one that its request cut off, teach nothing.
func TestAnswersThatTheRequestEndsTeachNothing(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ format, answer string }{
		"max_tokens":    {"anthropic", `{"type":"message","role":"assistant","content":[{"type":"text","text":"` + strings.Repeat("word ", 90) + `"}],"stop_reason":"max_tokens","usage":{"input_tokens":8000,"output_tokens":100}}`},
		"length":        {"chat", `{"object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"` + strings.Repeat("word ", 90) + `"},"finish_reason":"length"}],"usage":{"prompt_tokens":8000,"completion_tokens":100}}`},
		"nothing, done": {"chat", `{"object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":""},"finish_reason":"stop"}],"usage":{"prompt_tokens":8000,"completion_tokens":0}}`},
		"thought":       {"chat", `{"object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":""},"finish_reason":"length"}],"usage":{"prompt_tokens":8000,"completion_tokens":4000}}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path, body, _ := sessionOf(t, test.format, "house-model")
			var asked atomic.Int32
			p := setup(t, func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				asked.Add(1)
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, test.answer)
			})
			got := p.send(http.MethodPost, path, body)
			p.store.mu.Lock()
			learned := fmt.Sprint(p.store.windows)
			p.store.mu.Unlock()
			if string(got.body) != test.answer || asked.Load() != 1 || learned != "map[]" {
				t.Errorf("asked %d times, learned %s: %.300s", asked.Load(), learned, got.body)
			}
		})
	}
}

// W49: what a first attempt cost that ended at the window is a part of the exchange's cost.
func TestFirstAttemptThatEndedAtTheWindowIsPaid(t *testing.T) {
	t.Parallel()
	full := `{"type":"message","role":"assistant","content":[],"stop_reason":"model_context_window_exceeded","usage":{"input_tokens":20000,"output_tokens":0}}`
	_, _, answer := sessionOf(t, "anthropic", "")
	cost := func(answers ...string) int64 {
		var asked atomic.Int32
		p := setup(t, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, answers[min(int(asked.Add(1)), len(answers))-1])
		})
		p.store.windows["claude-sonnet-4-5"] = 120_000
		p.send(http.MethodPost, messagesPath, toolSession("claude-sonnet-4-5", 30, 800))
		return p.last(1).Cost.CostMicroUSD
	}
	once, twice := cost(answer), cost(full, answer)
	if once == 0 || twice-once != 20_000*3 {
		t.Errorf("one answer costs %d, with the first attempt %d", once, twice)
	}
}

// W49: a window that shows only once words have gone out is learned for the next request.
func TestLateWordOfTheWindowIsLearned(t *testing.T) {
	t.Parallel()
	stream := started + "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n" +
		"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"" + strings.Repeat("word ", 90) + "\"}}\n\n" +
		"event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"model_context_window_exceeded\"},\"usage\":{\"input_tokens\":7900,\"output_tokens\":100}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
	var asked atomic.Int32
	p := setup(t, streams(&asked, stream))
	got := p.send(http.MethodPost, messagesPath, strings.Replace(toolSession("house-model", 30, 800), `"max_tokens"`, `"stream":true,"max_tokens"`, 1))
	p.last(1)
	p.store.mu.Lock()
	defer p.store.mu.Unlock()
	if string(got.body) != stream || asked.Load() != 1 || p.store.windows["house-model"] != 8000 {
		t.Errorf("asked %d times, learned %v:\n%.300s", asked.Load(), p.store.windows, got.body)
	}
}

// B6: a provider that names no size teaches that the window is smaller than what was sent.
func TestRefusalWithoutNumbersTeachesAnUnknownModelsWindow(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	p := setup(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		if asked.Add(1) == 1 {
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = io.WriteString(w, `{"error":{"code":500,"message":"Context size has been exceeded.","type":"server_error"}}`)
			return
		}
		_, _, answer := sessionOf(t, "chat", "")
		_, _ = io.WriteString(w, answer)
	})
	_, body, _ := sessionOf(t, "chat", "house-model")
	got := p.send(http.MethodPost, chatPath, body)
	before, err := strconv.Atoi(got.header.Get("X-Palimpsest-Tokens-Before"))
	p.store.mu.Lock()
	learned := p.store.windows["house-model"]
	p.store.mu.Unlock()
	if err != nil || got.status != http.StatusOK || learned >= before || learned < before*9/10 {
		t.Errorf("status %d: learned a window of %d from a prompt of %d", got.status, learned, before)
	}
}
