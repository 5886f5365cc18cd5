package semanticcache_test

import (
	"fmt"
	"strings"
	"testing"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/modules/semanticcache"
	"palimpsest/pipeline/wire/anthropic"
)

// read reads a body as a question of one workspace.
func read(format conversation.Format, body string, origin ...string) (semanticcache.Key, string) {
	return semanticcache.Read(semanticcache.Asked{Format: format, Rules: codecs()[format].Reuse(), Body: []byte(body), Origin: origin}, []byte("secret"))
}

// single returns a single question in a format with more members.
func single(format conversation.Format, text, more string) string {
	switch format {
	case conversation.Anthropic:
		return fmt.Sprintf(`{"model":"m","max_tokens":9,%s"messages":[{"role":"user","content":%q}]}`, more, text)
	case conversation.OpenAIChat:
		return fmt.Sprintf(`{"model":"m",%s"messages":[{"role":"user","content":%q}]}`, more, text)
	default:
		return fmt.Sprintf(`{"model":"m","store":false,%s"input":%q}`, more, text)
	}
}

func formats() []conversation.Format {
	return []conversation.Format{conversation.Anthropic, conversation.OpenAIChat, conversation.OpenAIResponses}
}

func TestEveryMemberThatChangesAnswersIsPartOfTheKey(t *testing.T) {
	t.Parallel()
	common := []string{`"temperature":0.5`, `"temperature":0.50`, `"top_p":0.9`, `"service_tier":"x"`, `"tool_choice":"none"`}
	members := map[conversation.Format][]string{
		conversation.Anthropic: {
			`"system":"a"`, `"system":[{"type":"text","text":"b"}]`, `"top_k":3`, `"stop_sequences":["a"]`, `"thinking":{"type":"enabled","budget_tokens":1}`,
			`"output_config":{"effort":"low"}`, `"output_format":{"type":"json_schema"}`, `"tools":[{"name":"a","input_schema":{}}]`, `"tools":[{"name":"b","input_schema":{}}]`, `"speed":"fast"`,
			`"tools":[{"name":"a","input_schema":{"properties":{"cache_control":{"type":"string"}}}}]`,
		},
		conversation.OpenAIChat: {
			`"max_tokens":3`, `"max_completion_tokens":3`, `"stop":"a"`, `"response_format":{"type":"json_object"}`, `"reasoning_effort":"low"`, `"verbosity":"low"`,
			`"seed":1`, `"logit_bias":{"1":1}`, `"presence_penalty":1`, `"frequency_penalty":1`, `"tools":[{"type":"function","function":{"name":"a"}}]`, `"parallel_tool_calls":false`,
		},
		conversation.OpenAIResponses: {
			`"instructions":"a"`, `"max_output_tokens":3`, `"text":{"format":{"type":"text"}}`, `"reasoning":{"effort":"low"}`, `"truncation":"auto"`,
			`"include":["x"]`, `"metadata":{"a":"b"}`, `"tools":[{"type":"custom","name":"a"}]`, `"parallel_tool_calls":true`,
		},
	}
	for _, format := range formats() {
		seen := map[semanticcache.Key]string{}
		for _, member := range append(append([]string{""}, common...), members[format]...) {
			more := member
			if more != "" {
				more += ","
			}
			key, reason := read(format, single(format, "What is a monad?", more))
			if reason != "" {
				t.Errorf("%s: %s: %s", format, member, reason)
				continue
			}
			if other, taken := seen[key]; taken {
				t.Errorf("%s: %q and %q share a key", format, member, other)
			}
			seen[key] = member
		}
	}
}

func TestFormattingIsNoPartOfTheKey(t *testing.T) {
	t.Parallel()
	for _, pair := range []struct {
		format     conversation.Format
		one, other string
	}{
		{conversation.Anthropic, single(conversation.Anthropic, "a b", ""), `{ "messages" : [ {"content":[{"cache_control":{"type":"ephemeral"},"type":"text","text":"\u0061 b"}],"role":"user"} ], "stream":true, "metadata":{"user_id":"u"}, "max_tokens":9,"model":"m", "temperature":null}`},
		{conversation.OpenAIChat, single(conversation.OpenAIChat, "a b", ""), single(conversation.OpenAIChat, "a b", `"stream":true,"stream_options":{"include_usage":true},"user":"u","prompt_cache_key":"p","store":false,"n":1,"metadata":{},`)},
		{conversation.OpenAIResponses, single(conversation.OpenAIResponses, "a b", ""), `{"model":"m","store":false,"safety_identifier":"x","input":[{"role":"user","content":[{"type":"input_text","text":"a b"}]}]}`},
	} {
		one, reason := read(pair.format, pair.one)
		other, also := read(pair.format, pair.other)
		if reason != "" || also != "" || one != other {
			t.Errorf("%s: %x %s, %x %s", pair.format, one, reason, other, also)
		}
	}
}

func TestOriginAndSecretSetQuestionsApart(t *testing.T) {
	t.Parallel()
	body := single(conversation.Anthropic, "What is a monad?", "")
	seen := map[semanticcache.Key]bool{}
	for _, origin := range [][]string{{"a", "b"}, {"b", "a"}, {"ab", ""}, {"a", "b", ""}, {"a"}} {
		key, _ := read(conversation.Anthropic, body, origin...)
		if seen[key] {
			t.Errorf("%q shares a key", origin)
		}
		seen[key] = true
	}
	key, _ := semanticcache.Read(semanticcache.Asked{Format: conversation.Anthropic, Rules: anthropic.New().Reuse(), Body: []byte(body), Origin: []string{"a"}}, []byte("other"))
	if seen[key] {
		t.Error("another secret makes the same key")
	}
}

func TestRequestsThatAreNotSingleQuestionsAreLeftAlone(t *testing.T) {
	t.Parallel()
	image := func(source string) string {
		return `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":[{"type":"text","text":"What is this?"},{"type":"image","source":` + source + `}]}]}`
	}
	for _, test := range []struct {
		format       conversation.Format
		body, reason string
	}{
		{conversation.Anthropic, `{"model":"m","messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]}`, semanticcache.ReasonHistory},
		{conversation.Anthropic, `{"model":"m","messages":[{"role":"user","content":"a"},{"role":"user","content":"b"}]}`, semanticcache.ReasonHistory},
		{conversation.Anthropic, `{"model":"m","messages":[]}`, semanticcache.ReasonHistory},
		{conversation.Anthropic, `{"model":"m","messages":[{"role":"system","content":"a"},{"role":"user","content":"b"}]}`, semanticcache.ReasonHistory},
		{conversation.Anthropic, `{"model":"m","messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"x","content":"y"}]}]}`, semanticcache.ReasonForeign},
		{conversation.Anthropic, single(conversation.Anthropic, "a", `"container":"c",`), semanticcache.ReasonForeign},
		{conversation.Anthropic, single(conversation.Anthropic, "a", `"mcp_servers":[],`), semanticcache.ReasonForeign},
		{conversation.Anthropic, single(conversation.Anthropic, "a", `"new_member":1,`), semanticcache.ReasonForeign},
		{conversation.Anthropic, single(conversation.Anthropic, "a", `"tools":[{"type":"web_search_20250305","name":"web_search"}],`), semanticcache.ReasonTools},
		{conversation.Anthropic, single(conversation.Anthropic, "a", `"system":"x","system":"y",`), semanticcache.ReasonAmbiguous},
		{conversation.Anthropic, single(conversation.Anthropic, "a", `"system":"\ud800",`), semanticcache.ReasonAmbiguous},
		{conversation.Anthropic, single(conversation.Anthropic, "What is new today?", ""), semanticcache.ReasonVolatile},
		{conversation.Anthropic, single(conversation.Anthropic, "今日の天気は?", ""), semanticcache.ReasonVolatile},
		{conversation.Anthropic, single(conversation.Anthropic, "Make me a password", ""), semanticcache.ReasonVolatile},
		{conversation.Anthropic, single(conversation.Anthropic, strings.Repeat("x", semanticcache.MaxBody), ""), semanticcache.ReasonLong},
		{conversation.Anthropic, image(`{"type":"url","url":"https://example.com/a.png"}`), semanticcache.ReasonForeign},
		{conversation.Anthropic, image(`{"type":"file","file_id":"f"}`), semanticcache.ReasonForeign},
		{conversation.OpenAIChat, single(conversation.OpenAIChat, "a", `"store":true,`), semanticcache.ReasonStored},
		{conversation.OpenAIChat, single(conversation.OpenAIChat, "a", `"n":2,`), semanticcache.ReasonForeign},
		{conversation.OpenAIChat, single(conversation.OpenAIChat, "a", `"modalities":["text","audio"],`), semanticcache.ReasonForeign},
		{conversation.OpenAIChat, single(conversation.OpenAIChat, "a", `"web_search_options":{},`), semanticcache.ReasonForeign},
		{conversation.OpenAIChat, `{"model":"m","messages":[{"role":"user","name":"ann","content":"a"}]}`, semanticcache.ReasonHistory},
		{conversation.OpenAIChat, `{"model":"m","messages":[{"role":"tool","tool_call_id":"x","content":"a"}]}`, semanticcache.ReasonHistory},
		{conversation.OpenAIChat, `{"model":"m","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://x/y"}}]}]}`, semanticcache.ReasonForeign},
		{conversation.OpenAIResponses, `{"model":"m","input":"a"}`, semanticcache.ReasonStored},
		{conversation.OpenAIResponses, `{"model":"m","store":null,"input":"a"}`, semanticcache.ReasonStored},
		{conversation.OpenAIResponses, single(conversation.OpenAIResponses, "a", `"background":true,`), semanticcache.ReasonStored},
		{conversation.OpenAIResponses, single(conversation.OpenAIResponses, "a", `"previous_response_id":"r",`), semanticcache.ReasonForeign},
		{conversation.OpenAIResponses, single(conversation.OpenAIResponses, "a", `"conversation":"c",`), semanticcache.ReasonForeign},
		{conversation.OpenAIResponses, single(conversation.OpenAIResponses, "a", `"prompt":{"id":"p"},`), semanticcache.ReasonForeign},
		{conversation.OpenAIResponses, single(conversation.OpenAIResponses, "a", `"tools":[{"type":"web_search"}],`), semanticcache.ReasonTools},
		{conversation.OpenAIResponses, `{"model":"m","store":false,"input":[{"type":"item_reference","id":"i"}]}`, semanticcache.ReasonHistory},
		{conversation.OpenAIResponses, `{"model":"m","store":false,"input":[{"type":"function_call_output","call_id":"i","output":"x"}]}`, semanticcache.ReasonHistory},
		{conversation.OpenAIResponses, `[]`, semanticcache.ReasonAmbiguous},
	} {
		if key, reason := read(test.format, test.body); key != (semanticcache.Key{}) || reason != test.reason {
			t.Errorf("%s %.120s: %x, %q, want %q", test.format, test.body, key, reason, test.reason)
		}
	}
}

func FuzzReadNeverPanics(f *testing.F) {
	for _, format := range formats() {
		f.Add(string(format), single(format, "What is a monad?", `"system":"a",`))
	}
	f.Add("anthropic", `{"messages":[{"role":"user","content":[{"type":"image","source":null},{"type":null}]}],"tools":[null]}`)
	f.Fuzz(func(t *testing.T, format, body string) {
		key, reason := read(conversation.Format(format), body)
		if (key == semanticcache.Key{}) != (reason != "") {
			t.Errorf("%x and %q", key, reason)
		}
	})
}

// Only the very same text is the same question: no other wording, however near.
func TestAnotherWordingIsAnotherQuestion(t *testing.T) {
	t.Parallel()
	seen := map[semanticcache.Key]string{}
	for _, text := range []string{"What is a monad?", "What is a monad", "what is a monad?", "Please, what is a monad?", "What is not a monad?", "What is a monad 2?"} {
		key, reason := read(conversation.Anthropic, single(conversation.Anthropic, text, ""))
		if other, taken := seen[key]; taken || reason != "" {
			t.Errorf("%q shares a key with %q, or is left alone: %q", text, other, reason)
		}
		seen[key] = text
	}
}
