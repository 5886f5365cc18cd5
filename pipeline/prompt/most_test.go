package prompt_test

import (
	"strings"
	"testing"

	"palimpsest/pipeline/conversation"
)

// S47: what may be spent is that of the dearest model, all answers, the tier, and the uses
// of the provider's tools.
func TestWhatMayBeSpentIsTheMostThatIsAskedFor(t *testing.T) {
	t.Parallel()
	b := newBench(t, conversation.OpenAIChat, 1_000_000)
	written := func(members string) (prompt int, answers int, micro int64) {
		most := b.write([]byte(`{"model":"gpt-5.5",` + members + `"messages":[{"role":"user","content":"` + strings.Repeat("word ", 50) + `"}]}`)).Most()
		if most.PromptMicroUSD <= 0 || most.PromptMicroUSD >= most.MicroUSD {
			t.Errorf("%s: the prompt alone comes to %d of %d", members, most.PromptMicroUSD, most.MicroUSD)
		}
		return most.Prompt, most.Answers, most.MicroUSD
	}
	prompt, _, one := written(`"max_tokens":1000,`)
	for members, want := range map[string]struct {
		answers int
		micro   int64
	}{
		`"max_tokens":1000,`:         {1000, one},
		`"max_tokens":1000,"n":128,`: {128_000, one + 127*1000*30},
		``:                           {128_000, one + 127*1000*30},
		`"max_tokens":1000000000,`:   {128_000, one + 127*1000*30},
		`"max_tokens":1000,"service_tier":"priority",`:       {1000, one * 5 / 2},
		`"max_tokens":1000,"models":["gpt-5.6-luna"],`:       {1000, one},
		`"max_tokens":1000,"models":["gpt-6-astra"],`:        {1000, int64(float64(prompt)*12.5) + 1000*50},
		`"max_tokens":1000,"web_search_options":{},`:         {1000, one + 10*(10_000*5+30_000)},
		`"max_tokens":1000,"web_search_options":null,"n":1,`: {1000, one},
	} {
		if _, answers, micro := written(members); answers != want.answers || micro-want.micro > 1 || want.micro-micro > 1 {
			t.Errorf("%s: %d tokens and %d, want %d and %d", members, answers, micro, want.answers, want.micro)
		}
	}
}

// A prompt of which the provider has more than the body may be as long as its window.
func TestWhatTheProviderHasOfAPromptMayBeSpent(t *testing.T) {
	t.Parallel()
	b := newBench(t, conversation.OpenAIResponses, 0)
	alone := b.write([]byte(`{"model":"gpt-5.5","max_output_tokens":10,"input":"hi"}`)).Most()
	chained := b.write([]byte(`{"model":"gpt-5.5","max_output_tokens":10,"previous_response_id":"resp_1","input":"hi"}`)).Most()
	if chained.Prompt > 2*alone.Prompt || chained.MicroUSD < 900_000*5 {
		t.Errorf("alone %+v, chained %+v", alone, chained)
	}
}
