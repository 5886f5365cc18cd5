package providertest_test

import (
	"fmt"
	"testing"

	"palimpsest/api/upstream/providertest"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/wire/wiregen"
)

func everything(format conversation.Format, model string, double *providertest.Double) wiregen.Options {
	return wiregen.Options{
		Format: format, Model: model, Turns: 40, Signer: double, Parallel: true, Thinking: true, Images: true, CJK: true, HugeResults: true,
		ToolErrors: true, Reminders: true, CacheMarkers: true, SessionID: "session-1", Stream: true,
	}
}

func TestGeneratedSessionsAreLegalAtEveryStep(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		format conversation.Format
		model  string
	}{
		{conversation.Anthropic, "claude-sonnet-4-5"}, {conversation.Anthropic, "claude-opus-4-6"}, {conversation.Anthropic, "claude-opus-5-5"},
		{conversation.OpenAIChat, ""}, {conversation.OpenAIResponses, ""},
	} {
		for seed := range uint64(3) {
			t.Run(fmt.Sprintf("%s %s %d", test.format, test.model, seed), func(t *testing.T) {
				t.Parallel()
				double := providertest.NewHandler(providertest.Config{Window: 3_000_000})
				session := wiregen.Generate(seed, everything(test.format, test.model, double))
				for step, body := range session.Bodies() {
					if err := double.Validate(string(test.format), body); err != nil {
						t.Fatalf("step %d is refused: %v", step, err)
					}
				}
			})
		}
	}
}

func TestBoundThinkingOfAGeneratedSessionIsAccepted(t *testing.T) {
	t.Parallel()
	double := providertest.NewHandler(providertest.Config{Window: 3_000_000, BindThinking: true})
	options := everything(conversation.Anthropic, "claude-opus-5-5", double)
	options.Bind = func(head []byte) (wiregen.Binder, error) { return double.Bind(head) }
	session := wiregen.Generate(1, options)
	for step, body := range session.Bodies() {
		if err := double.Validate(providertest.Anthropic, body); err != nil {
			t.Fatalf("step %d is refused: %v", step, err)
		}
	}
}
