package summary

import (
	"testing"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/wire"
)

// D7 in every format's own words.
func TestEveryFormatsRefusalsAndCutsAreKnown(t *testing.T) {
	t.Parallel()
	byFormat := map[conversation.Format]wire.Codec{}
	for _, codec := range codecs() {
		byFormat[codec.Format()] = codec
	}
	for name, test := range map[string]struct {
		format conversation.Format
		body   string
		want   string
	}{
		"messages: thinking only": {conversation.Anthropic, `{"type":"message","role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"}],"stop_reason":"end_turn"}`, ReasonReasoning},
		"messages: server tool":   {conversation.Anthropic, `{"type":"message","role":"assistant","content":[{"type":"tool_use","id":"a","name":"b","input":{}}],"stop_reason":"tool_use"}`, ReasonToolCall},
		"messages: window full":   {conversation.Anthropic, `{"type":"message","role":"assistant","content":[{"type":"text","text":"x"}],"stop_reason":"model_context_window_exceeded"}`, ReasonTruncated},
		"messages: error":         {conversation.Anthropic, `{"type":"error","error":{"type":"overloaded_error","message":"m"}}`, ReasonError},
		"chat: refusal":           {conversation.OpenAIChat, `{"choices":[{"message":{"role":"assistant","content":null,"refusal":"no"},"finish_reason":"stop"}]}`, ReasonRefusal},
		"chat: filter":            {conversation.OpenAIChat, `{"choices":[{"message":{"role":"assistant","content":"x"},"finish_reason":"content_filter"}]}`, ReasonRefusal},
		"chat: length":            {conversation.OpenAIChat, `{"choices":[{"message":{"role":"assistant","content":"x"},"finish_reason":"length"}]}`, ReasonTruncated},
		"chat: null":              {conversation.OpenAIChat, `{"choices":[{"message":{"role":"assistant","content":null},"finish_reason":"stop"}]}`, ReasonEmpty},
		"chat: call":              {conversation.OpenAIChat, `{"choices":[{"message":{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"b","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`, ReasonToolCall},
		"chat: no choice":         {conversation.OpenAIChat, `{"choices":[]}`, ReasonBroken},
		"responses: refusal":      {conversation.OpenAIResponses, `{"status":"completed","output":[{"type":"message","role":"assistant","content":[{"type":"refusal","refusal":"no"}]}]}`, ReasonRefusal},
		"responses: cut":          {conversation.OpenAIResponses, `{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"x"}]}]}`, ReasonTruncated},
		"responses: reasoning":    {conversation.OpenAIResponses, `{"status":"completed","output":[{"type":"reasoning","id":"r","summary":[]}]}`, ReasonReasoning},
		"responses: call":         {conversation.OpenAIResponses, `{"status":"completed","output":[{"type":"function_call","call_id":"c","name":"b","arguments":"{}"}]}`, ReasonToolCall},
		"responses: failed":       {conversation.OpenAIResponses, `{"status":"failed","error":{"code":"server_error","message":"m"},"output":[]}`, ReasonError},
		"no JSON at all":          {conversation.Anthropic, `<html>502</html>`, ReasonBroken},
		"a good answer":           {conversation.OpenAIResponses, `{"status":"completed","output":[{"type":"reasoning","id":"r","summary":[]},{"type":"message","role":"assistant","content":[{"type":"output_text","text":" x\u0000y "}]}]}`, ""},
	} {
		text, _, err := Reply{Status: 200, Body: []byte(test.body)}.read(byFormat[test.format])
		if test.want == "" {
			if err != nil || text != "xy" {
				t.Errorf("%s: %q, %v", name, text, err)
			}
			continue
		}
		if err == nil || err.Error() != "summary rejected: "+test.want || text != "" {
			t.Errorf("%s: %q, %v, want %s", name, text, err, test.want)
		}
	}
}
