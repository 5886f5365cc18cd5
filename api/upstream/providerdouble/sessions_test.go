package providerdouble_test

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"palimpsest/api/upstream/providerdouble"
	"palimpsest/api/upstream/providertest"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/fulltest"
	"palimpsest/pipeline/wire/sessiontest"
)

func everything(format conversation.Format, model string, double *providerdouble.Double) sessiontest.Options {
	return sessiontest.Options{
		Format: format, Model: model, Turns: 40, Signer: double, Parallel: true, Thinking: true, Images: true, CJK: true, HugeResults: true,
		ToolErrors: true, Reminders: true, CacheMarkers: true, SessionID: "session-1", Stream: true,
	}
}

func TestGeneratedSessionsAreLegalAtEveryStep(t *testing.T) {
	t.Parallel()
	tests := []struct {
		format conversation.Format
		model  string
	}{
		{conversation.Anthropic, "claude-sonnet-4-5"}, {conversation.Anthropic, "claude-opus-4-6"}, {conversation.Anthropic, "claude-opus-5-5"},
		{conversation.OpenAIChat, ""}, {conversation.OpenAIResponses, ""}, {conversation.Gemini, "gemini-3-pro-preview"}, {conversation.Gemini, "gemini-2.5-pro"}, {conversation.GeminiInteractions, ""},
	}
	for i := range fulltest.Part(3 * len(tests)) {
		test, seed := tests[i%len(tests)], uint64(i/len(tests))
		t.Run(fmt.Sprintf("%s %s %d", test.format, test.model, seed), func(t *testing.T) {
			t.Parallel()
			double := providerdouble.NewHandler(providerdouble.Config{Window: 3_000_000})
			session := sessiontest.Generate(seed, everything(test.format, test.model, double))
			for step, body := range session.Bodies() {
				if err := double.Validate(string(test.format), body); err != nil {
					t.Fatalf("step %d is refused: %v", step, err)
				}
			}
		})
	}
}

// W36, W39, W40: sessions with blocks, items and messages of every kind.
func TestVariedSessionsAreLegalAtEveryStep(t *testing.T) {
	t.Parallel()
	tests := []struct {
		format conversation.Format
		model  string
	}{
		{conversation.Anthropic, "claude-sonnet-4-5"}, {conversation.Anthropic, "claude-opus-4-6"}, {conversation.Anthropic, "claude-opus-5"},
		{conversation.OpenAIChat, ""}, {conversation.OpenAIResponses, ""},
	}
	for i := range fulltest.Part(2 * len(tests)) {
		test, seed := tests[i%len(tests)], uint64(i/len(tests))
		t.Run(fmt.Sprintf("%s %s %d", test.format, test.model, seed), func(t *testing.T) {
			t.Parallel()
			double := providerdouble.NewHandler(providerdouble.Config{Window: 3_000_000})
			options := everything(test.format, test.model, double)
			options.Varied, options.HugeResults, options.Turns = true, false, 60
			session := sessiontest.Generate(seed, options)
			for step, body := range session.Bodies() {
				if err := double.Validate(string(test.format), body); err != nil {
					t.Fatalf("step %d is refused: %v", step, err)
				}
			}
		})
	}
}

func TestBoundThinkingOfAGeneratedSessionIsAccepted(t *testing.T) {
	t.Parallel()
	for _, varied := range []bool{false, true} {
		double := providerdouble.NewHandler(providerdouble.Config{Window: 3_000_000, BindThinking: true})
		options := everything(conversation.Anthropic, "claude-opus-5-5", double)
		options.Varied = varied
		options.Bind = func(head []byte) (sessiontest.Binder, error) { return double.Bind(head) }
		session := sessiontest.Generate(1, options)
		for step, body := range session.Bodies() {
			if err := double.Validate(providerdouble.Anthropic, body); err != nil {
				t.Fatalf("varied %v: step %d is refused: %v", varied, step, err)
			}
		}
	}
}

// Wire fact 0.2: reasoning of the newest models that stands behind another prefix
// is left out, and the answer says so.
func TestReasoningBehindAnotherPrefixIsLeftOut(t *testing.T) {
	t.Parallel()
	double := providertest.NewServer(t, providerdouble.Config{Window: 3_000_000})
	options := everything(conversation.OpenAIResponses, "gpt-6-sol", double.Double)
	options.Stream, options.HugeResults = false, false
	options.Bind = func(head []byte) (sessiontest.Binder, error) { return double.BindItems(head) }
	session := sessiontest.Generate(1, options)
	body := session.Body(session.Steps() - 1)

	status, answer := post(t, double.URL+"/v1/responses", body)
	if status != http.StatusOK || strings.Contains(answer, "input_transformations") {
		t.Fatalf("answer is %d %.400s", status, answer)
	}
	whole, _ := double.Last()

	edited := bytes.Replace(body, []byte(`"text":"Step 1: `), []byte(`"text":"Step one: `), 1)
	status, answer = post(t, double.URL+"/v1/responses", edited)
	if status != http.StatusOK || !strings.Contains(answer, `"input_transformations":[{"type":"reasoning_dropped","path":"input[2]","reason":"prefix_mismatch"}`) {
		t.Fatalf("answer is %d %.400s", status, answer)
	}
	if last, _ := double.Last(); last.Prompt >= whole.Prompt {
		t.Errorf("%d tokens with reasoning left out, %d with it", last.Prompt, whole.Prompt)
	}

	forged := bytes.Replace(body, []byte(`"encrypted_content":"A`), []byte(`"encrypted_content":"B`), 1)
	if status, _ = post(t, double.URL+"/v1/responses", forged); status != http.StatusBadRequest {
		t.Errorf("forged reasoning is answered %d", status)
	}
}
