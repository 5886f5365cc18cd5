package prompt_test

import (
	"testing"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/wire"
)

// The model's factor is learnt from whole prompts only.
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
