package semanticcache_test

import (
	"testing"

	"palimpsest/pipeline"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/modules"
	"palimpsest/pipeline/modules/semanticcache"
	"palimpsest/pipeline/pipelinetest"
	"palimpsest/pipeline/tokens"
	"palimpsest/pipeline/wire"
	"palimpsest/pipeline/wire/anthropic"
	"palimpsest/pipeline/wire/openaichat"
	"palimpsest/pipeline/wire/openairesponses"
)

func codecs() map[conversation.Format]wire.Codec {
	return map[conversation.Format]wire.Codec{
		conversation.Anthropic: anthropic.New(), conversation.OpenAIChat: openaichat.New(), conversation.OpenAIResponses: openairesponses.New(),
	}
}

// E3: semantic-cache is a module like any other.
func TestConformance(t *testing.T) {
	t.Parallel()
	counter, err := tokens.NewCounter()
	if err != nil {
		t.Fatal(err)
	}
	var cases []pipelinetest.Case
	for format, codec := range codecs() {
		cases = append(cases, pipelinetest.Case{
			Name: string(format), Codec: codec, Body: []byte(single(format, "What is a monad?", "")),
			Options: pipelinetest.Options{Counter: counter, Config: modules.Catalog().Default(), Limit: 1000},
		})
	}
	pipelinetest.TestModule(t, semanticcache.New(), cases)
}

func TestOnlySingleQuestionsAreLookedAt(t *testing.T) {
	t.Parallel()
	counter, err := tokens.NewCounter()
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		format conversation.Format
		body   string
		want   pipeline.Cache
	}{
		{conversation.Anthropic, single(conversation.Anthropic, "a", ""), pipeline.CacheMiss},
		{conversation.OpenAIChat, `{"model":"m","messages":[{"role":"system","content":"s"},{"role":"user","content":"a"}]}`, pipeline.CacheMiss},
		{conversation.OpenAIResponses, single(conversation.OpenAIResponses, "a", ""), pipeline.CacheMiss},
		{conversation.OpenAIResponses, single(conversation.OpenAIResponses, "a", `"previous_response_id":"r",`), pipeline.CacheOff},
		{conversation.Anthropic, single(conversation.Anthropic, "a", `"thread":"t",`), pipeline.CacheOff},
		{conversation.Anthropic, `{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"user","content":"c"}]}`, pipeline.CacheOff},
		{conversation.Anthropic, `{"model":"m","max_tokens":1,"messages":[]}`, pipeline.CacheOff},
		{conversation.Anthropic, `{"model":"m","max_tokens":1,"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"x"}]}]}`, pipeline.CacheOff},
		{conversation.OpenAIChat, `{"model":"m","messages":[{"role":"user","content":"a"},{"role":"system","content":"s"}]}`, pipeline.CacheOff},
	} {
		exchange := pipelinetest.NewExchange(t, codecs()[test.format], []byte(test.body), pipelinetest.Options{Counter: counter, Config: modules.Catalog().Default()})
		if err := pipelinetest.Process(t.Context(), semanticcache.New(), exchange); err != nil || exchange.Report.Cache != test.want {
			t.Errorf("%s: %q, want %q (%v)", test.body, exchange.Report.Cache, test.want, err)
		}
	}
}
