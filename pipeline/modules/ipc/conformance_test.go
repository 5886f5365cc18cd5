package ipc_test

import (
	"testing"

	"palimpsest/pipeline"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/modules"
	"palimpsest/pipeline/modules/ipc"
	"palimpsest/pipeline/pipelinetest"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/wire/sessiontest"
)

// E3: ipc is a module like any other.
func TestConformance(t *testing.T) {
	t.Parallel()

	counter := newCounter(t)
	var cases []pipelinetest.Case
	for _, format := range []conversation.Format{conversation.Anthropic, conversation.OpenAIChat, conversation.OpenAIResponses, conversation.Gemini, conversation.GeminiInteractions} {
		talk := sessiontest.Generate(7, sessiontest.Options{Format: format, Turns: 40, Parallel: true, Thinking: true, Images: true, TargetTokens: 60_000})
		body := talk.Body(talk.Steps() - 1)
		for name, limit := range map[string]int{"roomy": 1_000_000, "tight": 40_000, "overfull": 20_000} {
			options := pipelinetest.Options{Counter: counter, Config: modules.Catalog().Default(), Limit: limit}
			cases = append(cases, pipelinetest.Case{Name: string(format) + " " + name, Codec: codecs()[format], Body: body, Options: options})

			options.Projection = earlier(t, format, talk.Body(talk.Steps()/2), options)
			cases = append(cases, pipelinetest.Case{Name: string(format) + " again " + name, Codec: codecs()[format], Body: body, Options: options})
		}
	}
	pipelinetest.TestModule(t, ipc.New(counter.Message), cases)
}

// earlier returns the projection that an earlier request of the lane led to.
func earlier(t *testing.T, format conversation.Format, body []byte, options pipelinetest.Options) *session.Projection {
	t.Helper()
	exchange := pipelinetest.NewExchange(t, codecs()[format], body, options)
	pipeline.NewChain(ipc.New(options.Counter.Message)).Process(t.Context(), exchange)
	return exchange.Lane.Projection
}
