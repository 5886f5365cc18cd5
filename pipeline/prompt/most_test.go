package prompt_test

import (
	"maps"
	"strings"
	"testing"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/tokens"
	"palimpsest/pipeline/wire"
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

// W52: a provider's own tool that the catalog doesn't list costs no less than any that it lists, and that is said; where the
// model is free, it costs nothing, and that is said too.
func TestToolsThatAreNotListedAreNotFree(t *testing.T) {
	t.Parallel()
	b := newBench(t, conversation.OpenAIResponses, 0)
	for name, test := range map[string]struct {
		model string
		uses  map[string]int
		want  map[string]int64
		fees  int64
	}{
		"listed":             {"gpt-5.5", map[string]int{"web_search": 2}, map[string]int64{}, 20_000},
		"not listed":         {"gpt-5.5", map[string]int{"x_search": 2, "web_search": 1}, map[string]int64{"x_search": 60_000}, 70_000},
		"a picture":          {"gpt-5.5", map[string]int{"image_generation": 1}, map[string]int64{"image_generation": 250_000}, 250_000},
		"of another maker":   {"grok-4", map[string]int{"web_search": 3}, map[string]int64{"web_search": 90_000}, 90_000},
		"of a free model":    {"glm-4.6:free", map[string]int{"web_search": 3}, map[string]int64{"web_search": 0}, 0},
		"of a model unknown": {"nobody-knows", map[string]int{"web_search": 3}, map[string]int64{"web_search": 0}, 0},
	} {
		sent := b.write([]byte(`{"model":"` + test.model + `","max_output_tokens":10,"input":"hi"}`)).Sent()
		answer := wire.Answer{Model: test.model, Usage: wire.Usage{Reported: true, Input: 10}}
		without := b.writer.Answered(sent, answer).Cost
		answer.Tools = test.uses
		if got := b.writer.Answered(sent, answer).Cost - without; got != test.fees {
			t.Errorf("%s: the tools cost %d, want %d", name, got, test.fees)
		}
		if got := b.writer.UnlistedTools(&sent, answer); !maps.Equal(got, test.want) {
			t.Errorf("%s: unlisted %v, want %v", name, got, test.want)
		}
	}
}

// W52: a web search that Chat's models make for every answer is charged for, even if the usage has no count.
func TestSearchForEveryAnswerIsCharged(t *testing.T) {
	t.Parallel()
	b := newBench(t, conversation.OpenAIChat, 0)
	for name, test := range map[string]struct {
		members string
		said    map[string]int
		fees    int64
	}{
		"not counted":             {`"model":"gpt-5-search-api","web_search_options":{}`, nil, 10_000},
		"without options":         {`"model":"gpt-5-search-api-2025-10-14"`, nil, 10_000},
		"counted":                 {`"model":"gpt-5-search-api","web_search_options":{}`, map[string]int{"web_search": 3}, 30_000},
		"counted as none":         {`"model":"gpt-5.5","web_search_options":{}`, map[string]int{"web_search": 0}, 0},
		"not asked for":           {`"model":"gpt-5.5","web_search_options":null`, nil, 0},
		"of a maker not listed":   {`"model":"grok-4","web_search_options":{}`, nil, 30_000},
		"of a free model":         {`"model":"glm-4.6:free","web_search_options":{}`, nil, 0},
		"by a plugin of a router": {`"model":"openai/gpt-5.5","plugins":[{"id":"web"}]`, nil, 10_000},
	} {
		sent := b.write([]byte(`{` + test.members + `,"messages":[{"role":"user","content":"hi"}]}`)).Sent()
		answer := wire.Answer{Usage: wire.Usage{Reported: true, Input: 10}, Tools: test.said}
		none := answer
		none.Tools = nil
		without := b.writer.Answered(sent, none).Cost
		if got := b.writer.Answered(sent, sent.Searched(answer)).Cost - without; got != test.fees {
			t.Errorf("%s: the search costs %d, want %d", name, got, test.fees)
		}
		if refused := sent.Searched(wire.Answer{ErrorType: "invalid_request_error"}); refused.Tools != nil {
			t.Errorf("%s: a refused request has used %v", name, refused.Tools)
		}
	}
}

// W52: the model that answered is named if it's another than the one that was asked for.
func TestAnotherModelThatAnsweredIsNamed(t *testing.T) {
	t.Parallel()
	b := newBench(t, conversation.OpenAIChat, 0)
	for _, test := range []struct{ asked, answered, want string }{
		{"gpt-5.5", "gpt-5.5-2026-04-23", ""}, {"openai/gpt-5.5", "GPT-5.5", ""}, {"claude-sonnet-4-5", "us.anthropic.claude-sonnet-4-5-20250929-v1:0", ""}, {"vendor/house-1", "house-1", ""},
		{"gpt-5.5", "", ""}, {"gpt-5.5", "gpt-5.4-mini-2026-03-17", "gpt-5.4-mini-2026-03-17"}, {"openrouter/auto", "anthropic/claude-sonnet-4.5", "anthropic/claude-sonnet-4.5"}, {"house-1", "house-2", "house-2"},
	} {
		sent := b.write([]byte(`{"model":"` + test.asked + `","messages":[{"role":"user","content":"hi"}]}`)).Sent()
		if got := b.writer.Served(&sent, wire.Answer{Model: test.answered}).Model; got != test.want {
			t.Errorf("%s, answered by %s: %q is named, want %q", test.asked, test.answered, got, test.want)
		}
	}
}

// A longest answer that is set in place of the catalog's is what is held.
func TestLongestAnswerThatIsSetIsHeld(t *testing.T) {
	t.Parallel()
	b := newBench(t, conversation.OpenAIResponses, 0)
	body := []byte(`{"model":"gpt-5.5","input":"hi"}`)
	if most := b.write(body).Most(); most.Answers != 128_000 {
		t.Errorf("by the catalog: %+v", most)
	}
	b.overrides = tokens.Overrides{Outputs: map[string]int{"gpt-5.5": 3000}}
	if most := b.write(body).Most(); most.Answers != 3000 {
		t.Errorf("as it is set: %+v", most)
	}
}
