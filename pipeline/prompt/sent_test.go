package prompt_test

import (
	"testing"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/wire"
)

// The model's factor is learned from whole prompts only.
func TestPromptsThatTheProviderReducedTeachNothing(t *testing.T) {
	t.Parallel()
	for _, reduced := range []bool{true, false} {
		b := newBench(t, conversation.Anthropic, 1_000_000)
		written := b.write([]byte(`{"model":"claude-opus-5-5","max_tokens":10,"messages":[{"role":"user","content":"What does the parser do with an empty file?"}]}`))
		factor := func() float64 { return b.writer.Calibration.Factor(b.scope.Workspace, written.Exchange.Model) }
		before := factor()
		for range 20 {
			b.writer.Answered(written.Sent(), wire.Answer{Reduced: reduced, Usage: wire.Usage{Reported: true, Input: 2 * written.Exchange.Report.After}})
		}
		if changed := factor() != before; changed == reduced {
			t.Errorf("reduced %t: the factor went from %g to %g", reduced, before, factor())
		}
	}
}

// B1, B3, W41: nothing is learned of a body behind which the provider keeps a history, or
// whose beginning only it can read.
func TestPromptsThatTheProviderHoldsAPartOfTeachNothing(t *testing.T) {
	t.Parallel()
	const asked = `"model":"gpt-5.5","input":[{"role":"user","content":"What does the parser do with an empty file?"}]}`
	for head, teaches := range map[string]bool{
		`{`:                                  true,
		`{"previous_response_id":"resp_1",`:  false,
		`{"conversation":{"id":"conv_1"},`:   false,
		`{"store":true,"truncation":"auto",`: true,
	} {
		b := newBench(t, conversation.OpenAIResponses, 1_000_000)
		written := b.write([]byte(head + asked))
		factor := func() float64 { return b.writer.Calibration.Factor(b.scope.Workspace, written.Exchange.Model) }
		before := factor()
		for range 20 {
			b.writer.Answered(written.Sent(), wire.Answer{Usage: wire.Usage{Reported: true, Input: 6 * written.Exchange.Report.After}})
		}
		if changed := factor() != before; changed != teaches {
			t.Errorf("%s the factor went from %g to %g", head, before, factor())
		}
	}
}

// An error that names the prompt's length counts for any prompt. An answer that only ends early counts for one
// that is near its limit.
func TestRefusalOfAShortPromptIsBelieved(t *testing.T) {
	t.Parallel()
	b := newBench(t, conversation.Anthropic, 1_000_000)
	sent := b.write([]byte(`{"model":"claude-opus-5-5","max_tokens":10,"messages":[{"role":"user","content":"What does the parser do with an empty file?"}]}`)).Sent()
	refused := wire.Answer{Error: []byte(`{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}`)}
	if _, overflows := sent.Teaches(refused); !overflows {
		t.Error("an error about the length is not believed")
	}
	if _, overflows := sent.Teaches(wire.Answer{Complete: true, StopReason: "model_context_window_exceeded"}); overflows {
		t.Error("a short prompt is taken for one that is too long")
	}
}
