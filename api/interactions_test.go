package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"palimpsest/api/upstream/providerdouble"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/fulltest"
	"palimpsest/pipeline/sharedtest"
	"palimpsest/pipeline/wire"
	"palimpsest/pipeline/wire/sessiontest"
	"palimpsest/tenants"
)

const interactionsPath = "/v1beta/interactions"

// W13, W26: Google gets the client's bytes, and the client Google's.
func TestInteractionsPassByteForByte(t *testing.T) {
	t.Parallel()
	p, double := onGoogle(t, providerdouble.Config{})
	const model = ` {"model" : "gemini-3.1-pro-preview", "store":false, "input" : `
	for name, body := range map[string]string{
		"a text": model + `"h\u00e9"}`, "a content": model + `{"type":"text","text":"h\u00e9"} }`, "contents": model + `[{"type":"text","text":"h\u00e9"}] }`,
		"steps": model + `[ {"type":"user_input","content":[{"type":"text","text":"h\u00e9"}]} ] }`,
	} {
		for _, path := range []string{interactionsPath, "/v1" + interactionsPath} {
			got := p.send(http.MethodPost, path, body)
			sent, _ := double.Last()
			if got.status != http.StatusOK || string(sent.Body) != body || sent.Path != interactionsPath || sent.Header.Get("X-Goog-Api-Key") != googleSecret {
				t.Errorf("%s: %d %s\nsent %s %q", name, got.status, got.body, sent.Path, sent.Body)
			}
			if !bytes.HasPrefix(got.body, []byte(`{"id":"v1_`)) {
				t.Errorf("%s", got.body)
			}
		}
	}
	got := p.send(http.MethodPost, interactionsPath+"?alt=sse", model+`"hi","stream":true}`)
	if !bytes.HasPrefix(got.body, []byte("event: interaction.created\ndata: {")) || !bytes.HasSuffix(got.body, []byte("event: done\ndata: [DONE]\n\n")) {
		t.Errorf("%s", got.body)
	}
	used := p.last(9)
	if used.Request.Model != "gemini-3.1-pro-preview" || used.Request.Endpoint != interactionsPath || !used.Request.Stream || used.Tokens.Input == 0 || used.Tokens.Output == 0 || used.Cost.CostMicroUSD == 0 {
		t.Errorf("recorded %+v", used)
	}
}

// A stored interaction continues at Google, and is read, ended and deleted there.
func TestInteractionsWithAHistoryAtGoogleAreNeverEdited(t *testing.T) {
	t.Parallel()
	p, double := onGoogle(t, providerdouble.Config{})
	p.store.windows["gemini-3.1-pro-preview"] = 3000
	first := p.send(http.MethodPost, interactionsPath, `{"model":"gemini-3.1-pro-preview","input":"hi"}`)
	session := sessiontest.Generate(1, sessiontest.Options{Format: conversation.GeminiInteractions, Model: "gemini-3.1-pro-preview", Turns: 30, Signer: double.Double})
	body := session.Body(session.Steps() - 1)
	got := p.send(http.MethodPost, interactionsPath, string(body))
	if shortened, _ := double.Last(); got.status != http.StatusOK || len(shortened.Body) >= len(body) {
		t.Fatalf("%d, %d bytes of %d: %.300s", got.status, len(shortened.Body), len(body), got.body)
	}
	body = wire.Set(body, "previous_interaction_id", wire.Get(first.body, "id"))
	got = p.send(http.MethodPost, interactionsPath, string(body))
	if sent, _ := double.Last(); got.status != http.StatusOK || !bytes.Equal(sent.Body, body) {
		t.Errorf("%d, %d bytes of %d", got.status, len(sent.Body), len(body))
	}
	for _, request := range [][2]string{{http.MethodGet, "/v1_x?stream=true"}, {http.MethodPost, "/v1_x/cancel"}, {http.MethodDelete, "/v1_x"}} {
		p.send(request[0], interactionsPath+request[1], "")
		if sent, _ := double.Last(); sent.Method != request[0] || sent.Path != interactionsPath+request[1] {
			t.Errorf("%v went to %s %s", request, sent.Method, sent.Path)
		}
	}
}

// Google's refusals reach the client unchanged, and ours have their form.
func TestInteractionsRefusalsHaveGooglesForm(t *testing.T) {
	t.Parallel()
	p, _ := onGoogle(t, providerdouble.Config{})
	const hello = `{"model":"gemini-3.1-pro-preview","input":"hi"}`
	for name, test := range map[string]struct {
		path, body string
		header     []string
		status     int
		said, code string
	}{
		"unknown member":     {interactionsPath, `{"model":"gemini-3.1-pro-preview","input":"hi","messages":[]}`, nil, 400, "Unknown parameter 'messages'.", "invalid_request"},
		"rate limit":         {interactionsPath, hello, []string{providerdouble.MisbehaveHeader, providerdouble.MisbehaveRateLimit}, 429, "You exceeded your current quota", "rate_limit_exceeded"},
		"unknown history":    {interactionsPath, `{"model":"gemini-3.1-pro-preview","input":"hi","previous_interaction_id":"v1_x"}`, nil, 404, "Interaction 'v1_x' not found.", "not_found"},
		"model and agent":    {interactionsPath, `{"model":"a","agent":"b","input":"hi"}`, nil, 400, "The request body cannot be read: read body: agent: is there beside a model", "invalid_body"},
		"no input":           {interactionsPath, `{}`, nil, 400, "The request body cannot be read", "invalid_body"},
		"another path":       {"/v1beta/inter%61ctions", hello, nil, 400, "The request's path could be taken for another one", ""},
		"a slash at its end": {interactionsPath + "/", hello, nil, 400, "The request's path could be taken for another one", "invalid_path"},
	} {
		got := p.send(http.MethodPost, test.path, test.body, test.header...)
		var body struct {
			Error struct{ Code, Message string }
		}
		if err := json.Unmarshal(got.body, &body); err != nil && test.code != "" || got.status != test.status || !strings.HasPrefix(body.Error.Message, test.said) || test.code != "" && body.Error.Code != test.code {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
}

// W22: a prompt that Google finds too long goes out once more, smaller.
func TestInteractionsOverflowIsAnsweredByOneSmallerPrompt(t *testing.T) {
	t.Parallel()
	p, double := onGoogle(t, providerdouble.Config{Window: small})
	session := sessiontest.Generate(2, sessiontest.Options{Format: conversation.GeminiInteractions, Model: "gemini-3.1-pro-preview", Turns: 60, Parallel: true, Thinking: true, ToolErrors: true, Stream: true, Signer: double.Double, TargetTokens: 2 * small})
	body := session.Body(session.Steps() - 1)
	got := p.send(http.MethodPost, interactionsPath, string(body))
	sent := double.Requests()
	if got.status != http.StatusOK || got.header.Get("X-Palimpsest-Compression") != "emergency" || len(sent) != 2 || sent[1].Prompt > small || !bytes.Equal(sent[0].Body, body) {
		t.Errorf("%d %s, %d requests: %.300s", got.status, got.header.Get("X-Palimpsest-Compression"), len(sent), got.body)
	}
}

// W36, W39, W40: recorded sessions, as bodies of the Interactions API, are refused nowhere; unshortened ones arrive
// byte for byte.
func TestRecordedSessionsPassInteractions(t *testing.T) {
	t.Parallel()
	files := sharedtest.Files(t, "data/transcripts/*.anthropic.json")
	for i := range fulltest.Part(len(files)) {
		file := files[i]
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			recorded, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			body := stepsFromMessages(t, recorded)
			p, double := onGoogle(t, providerdouble.Config{Window: 2_000_000})
			p.sendWhole(body, interactionsPath)
			if got, _ := double.Last(); got.Status != http.StatusOK || !bytes.Equal(got.Body, body) {
				t.Errorf("status %d, %d bytes of %d: %v", got.Status, len(got.Body), len(body), got.Invalid)
			}
			p.store.windows["gemini-3.1-pro-preview"] = 20_000
			got := p.send(http.MethodPost, interactionsPath, string(body), "X-Palimpsest-Session-Id", "short")
			sent, _ := double.Last()
			if got.status != http.StatusOK || sent.Invalid != nil {
				t.Errorf("%d %.300s: %v", got.status, got.body, sent.Invalid)
			}
		})
	}
}

// stepsFromMessages returns a recorded body of Messages as one of the Interactions API.
func stepsFromMessages(t *testing.T, recorded []byte) []byte {
	t.Helper()
	var from struct {
		Messages []struct {
			Role    string
			Content []struct {
				Type, Text, Thinking, Name, ID string
				ToolUseID                      string `json:"tool_use_id"`
				Input, Content                 json.RawMessage
			}
		}
	}
	if err := json.Unmarshal(recorded, &from); err != nil {
		t.Fatal(err)
	}
	type object map[string]any
	var steps []object
	for _, message := range from.Messages {
		kind := map[string]string{"user": "user_input", "assistant": "model_output"}[message.Role]
		for _, block := range message.Content {
			switch block.Type {
			case "text":
				steps = append(steps, object{"type": kind, "content": []object{{"type": "text", "text": block.Text}}})
			case "thinking":
				steps = append(steps, object{"type": "thought", "summary": []object{{"type": "text", "text": block.Thinking}}})
			case "tool_use":
				steps = append(steps, object{"type": "function_call", "id": block.ID, "name": block.Name, "arguments": block.Input})
			case "tool_result":
				steps = append(steps, object{"type": "function_result", "call_id": block.ToolUseID, "result": string(block.Content)})
			default:
				steps = append(steps, object{"type": kind, "content": []object{{"type": "text", "text": "[" + block.Type + "]"}}})
			}
		}
	}
	body, err := json.Marshal(object{"model": "gemini-3.1-pro-preview", "store": false, "input": steps})
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// W41: a request that continues an answer stored by the provider belongs to its session, however long the chain is. An
// answer that the provider must not store is not remembered here either, and another account's is not found.
func TestContinuedAnswersAreOneSession(t *testing.T) {
	t.Parallel()
	for name, format := range map[string]struct{ path, previous, answer, stream string }{
		"Interactions": {
			interactionsPath, "previous_interaction_id",
			`{"id":%q,"object":"interaction","model":"m","status":"completed","steps":[{"type":"model_output","content":[{"type":"text","text":"Yes."}]}],"usage":{"total_input_tokens":5,"total_output_tokens":2}}`,
			"event: interaction.completed\ndata: {\"event_type\":\"interaction.completed\",\"interaction\":%s}\n\n",
		},
		"Responses": {
			responsesPath, "previous_response_id",
			`{"id":%q,"object":"response","model":"m","status":"completed","output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Yes."}]}],"usage":{"input_tokens":5,"output_tokens":2}}`,
			"event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":%s}\n\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked := 0
			p := setup(t, func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				asked++
				answer := fmt.Sprintf(format.answer, fmt.Sprint("a", asked))
				w.Header().Set("Content-Type", "application/json")
				if bytes.Contains(body, []byte(`"stream":true`)) {
					w.Header().Set("Content-Type", "text/event-stream")
					answer = fmt.Sprintf(format.stream, answer)
				}
				_, _ = io.WriteString(w, answer)
			})
			p.store.keys = append(p.store.keys, tenants.ProviderKey{ID: uuid.New(), Provider: tenants.ProviderGemini, Name: "gemini", BaseURL: p.provider + "/v1beta", ProviderKeySecret: tenants.ProviderKeySecret{Sealed: []byte(providerKey)}})
			continues := func(id string) string { return `,"` + format.previous + `":"` + id + `"` }
			sessions := make([]uuid.UUID, 0, 8)
			for n, members := range []string{
				"", `,"stream":true` + continues("a1"), continues("a2"), continues("a1"), `,"store":false`, continues("a5"), `,"store":true`, continues("a7"),
			} {
				got := p.send(http.MethodPost, format.path, fmt.Sprintf(`{"model":"m","input":"Question %d"%s}`, n, members))
				if got.status != http.StatusOK {
					t.Fatalf("%d %s", got.status, got.body)
				}
				sessions = append(sessions, p.last(n+1).Request.Session)
			}
			for n, same := range []int{0, 0, 0, 0, 4, 5, 6, 6} {
				if slices.Index(sessions, sessions[n]) != same {
					t.Errorf("request %d is in the session of request %d, want %d: %v", n, slices.Index(sessions, sessions[n]), same, sessions)
				}
			}
			for _, update := range p.memory.seen() {
				if len(update.Messages.Entries) > 0 && update.Increment.Continued != (update.Source == format.previous) {
					t.Errorf("continued %t, source %s", update.Increment.Continued, update.Source)
				}
			}
		})
	}
}
