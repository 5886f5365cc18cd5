package providerdouble_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"palimpsest/api/upstream/providerdouble"
)

// The server holds a thread for one request that goes on with it, and judges both together.
func TestThreadsAreHeld(t *testing.T) {
	t.Parallel()
	double := providerdouble.NewHandler(providerdouble.Config{})
	post := func(beta, thread, rest string) (status int, id, text, code string) {
		t.Helper()
		body := fmt.Sprintf(`{"model":"claude-sonnet-4-5","max_tokens":100,"thread":%s,%s}`, thread, rest)
		request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/messages", strings.NewReader(body))
		request.Header = http.Header{"Anthropic-Version": {"2023-06-01"}, "X-Api-Key": {"k"}, "Anthropic-Beta": {beta}}
		recorder := httptest.NewRecorder()
		double.ServeHTTP(recorder, request)
		var answer struct {
			ID      string `json:"id"`
			Content []struct {
				Text string `json:"text"`
			} `json:"content"`
			Error struct {
				Message string `json:"message"`
				Details struct {
					Code string `json:"error_code"`
				} `json:"details"`
			} `json:"error"`
		}
		if err := json.Unmarshal(recorder.Body.Bytes(), &answer); err != nil {
			t.Fatal(err)
		}
		text = answer.Error.Message
		if len(answer.Content) > 0 {
			text = answer.Content[0].Text
		}
		return recorder.Code, answer.ID, text, answer.Error.Details.Code
	}
	const beta, create = "message-threads-2026-08-12", `{"type":"create"}`
	next := func(id string) string { return `{"type":"continue","previous_message_id":"` + id + `"}` }
	said := func(text string) string { return `"messages":[{"role":"user","content":"` + text + `"}]` }

	if status, _, text, _ := post("", create, said("hi")); status != http.StatusBadRequest || !strings.HasPrefix(text, "thread:") {
		t.Errorf("without the beta header: %d, %s", status, text)
	}
	if status, _, _, code := post(beta, next("msg_nobody"), said("hi")); status != http.StatusNotFound || code != "thread_not_found" {
		t.Errorf("a thread that is not there: %d, %s", status, code)
	}
	status, first, text, _ := post(beta, create, `"system":"s",`+said("one"))
	if status != http.StatusOK {
		t.Fatalf("%d, %s", status, text)
	}
	if status, _, _, code := post(beta, next(first), `"system":"another",`+said("two")); status != http.StatusBadRequest || code != "thread_fingerprint_mismatch" {
		t.Errorf("another system prompt: %d, %s", status, code)
	}
	status, second, text, _ := post(beta, next(first), said("two"))
	if status != http.StatusOK || text != "You said: two" {
		t.Fatalf("%d, %s", status, text)
	}
	if status, _, _, code := post(beta, next(first), said("two")); status != http.StatusBadRequest || code != "thread_already_continued" {
		t.Errorf("a second time: %d, %s", status, code)
	}
	if status, _, text, _ := post(beta, next(second), `"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1"}]}]`); status != http.StatusBadRequest || !strings.HasPrefix(text, "messages.4.") {
		t.Errorf("a result without its call, as the fifth message: %d, %s", status, text)
	}
}
