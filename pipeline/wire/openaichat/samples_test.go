package openaichat_test

import (
	"encoding/json"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/wire"
	"palimpsest/pipeline/wire/wiretest"
)

func samples() wiretest.Samples {
	return wiretest.Samples{
		Body:      `{ "model":"gpt-6-sol" , "seed":1.0,"x":1e400, "messages": %s, "x" : [ 1.0 ],"h\u00e9":null }`,
		Messages:  messages(),
		Appends:   appends(),
		Instructs: instructs(),
		Same:      same(),
		Distinct: []string{
			`{"role":"user","content":"a"}`,
			`{"role":"system","content":"a"}`,
			`{"role":"assistant","content":"a"}`,
			`{"role":"tool","tool_call_id":"c","content":"a"}`,
			`{"role":"user","content":"b"}`,
			`{"role":"assistant","content":"a","tool_calls":[{"id":"c","type":"function","function":{"name":"n","arguments":"{}"}}]}`,
			`{"role":"assistant","content":"a","tool_calls":[{"id":"c","type":"function","function":{"name":"n","arguments":"{\"id\":1}"}}]}`,
			`{"role":"assistant","content":"a","tool_calls":[{"id":"c","type":"function","function":{"name":"n","arguments":"{\"id\":1"}}]}`,
			`{"role":"assistant","content":"a","tool_calls":[{"id":"c","type":"function","function":{"name":"m","arguments":"{}"}}]}`,
			`{"role":"assistant","content":null,"refusal":"no"}`,
			`{"role":"assistant","content":null,"audio":{"id":"audio_1"}}`,
			`{"role":"assistant","content":null,"audio":{"id":"audio_2"}}`,
			`{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://a"}}]}`,
			`{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://b"}}]}`,
		},
		Changes:  changes(),
		New:      newMessages(),
		Requests: requests(),
		Faults:   faults(),
		Answers:  answers(),
		Problem:  `{"error":{"message":"unknown key <plm_…>: create one","type":"invalid_request_error","param":null,"code":"invalid_api_key"}}`,
	}
}

func messages() []wiretest.Message {
	return []wiretest.Message{
		{Name: "system", Raw: `{"role":"system","content":"be h\u00e9","n":1e400, "n":1.0}`, Role: conversation.System, Flags: conversation.IsPinned, Blocks: []string{`text "be hé"`}},
		{Name: "a plain system message", Raw: `{"role":"developer","content":[{"type":"text","text":"be brief"}]}`, Role: conversation.System, Blocks: []string{`text "be brief"`}},
		{Name: "a system message with more than text", Raw: `{"role":"system","content":[{"type":"file","file":{"file_id":"f"}}]}`, Role: conversation.System, Flags: conversation.IsPinned | conversation.HasMedia, Blocks: []string{`media [file 0]`}},
		{Name: "developer", Raw: `{"content":[{"type":"text","text":"be brief"}],"role":"developer"}`, Role: conversation.System, Blocks: []string{`text "be brief"`}},
		{
			Name: "typed text and an image", Role: conversation.User, Flags: conversation.HasTyped | conversation.HasMedia,
			Raw:    `{"role":"user","name":"ann","content":[{"type":"text","text":"see"} , {"type":"image_url","image_url":{"url":"data:image/png;base64,aGVsbG8=","detail":"low"}},{"type":"input_audio","input_audio":{"data":"aGVsbG8=","format":"wav"}},{"type":"file","file":{"file_id":"f"}}]}`,
			Blocks: []string{`text "see"`, `media [image/png 5]`, `media [audio/wav 5]`, `media [file 0]`},
		},
		{Name: "an injected text", Raw: `{"role":"user","content":"<environment_context>\n<cwd>/x</cwd>\n</environment_context>"}`, Role: conversation.User, Blocks: []string{`text "<environment_context>\n<cwd>/x</cwd>\n</environment_context>"`}},
		{
			Name: "parallel calls", Role: conversation.Assistant, Flags: conversation.HasCall, // A2
			Raw:    `{"role":"assistant","content":null,"refusal":null,"tool_calls":[ {"id":"c1","type":"function","function":{"name":"read","arguments":"{\"n\":1.0, \"p\":\"\\u00e9\"}"}} ,{"id":"c2","type":"custom","custom":{"name":"patch","input":"*** é"}}]}`,
			Blocks: []string{`tool_call c1 read "{\"n\":1.0, \"p\":\"\\u00e9\"}"`, `tool_call c2 patch "*** é"`},
		},
		{
			Name: "text, reasoning and a call", Role: conversation.Assistant, Flags: conversation.HasCall | conversation.HasThinking,
			Raw:    `{"role":"assistant","reasoning_content":"hm","content":"I look.","tool_calls":[{"id":"c1","type":"function","function":{"name":"read","arguments":"{}"}}]}`,
			Blocks: []string{`thinking "hm"`, `text "I look."`, `tool_call c1 read "{}"`},
		},
		{
			Name: "sealed reasoning, refusal and sound", Role: conversation.Assistant, Flags: conversation.HasThinking | conversation.HasOpaque, // A8, W39
			Raw:    `{"role":"assistant","content":[{"type":"refusal","refusal":"no"}],"refusal":"no","audio":{"id":"audio_1"},"reasoning_details":[{"data":"x"}]}`,
			Blocks: []string{`thinking`, `opaque refusal`, `opaque refusal`, `opaque audio`},
		},
		{Name: "a result", Raw: `{"role":"tool","tool_call_id":"c1","content":"<x>"}`, Role: conversation.Tool, Flags: conversation.HasResult, Blocks: []string{`tool_result c1 "<x>"`}},
		{
			Name: "a result of parts", Raw: `{"role":"tool","tool_call_id":"c2","content":[{"type":"text","text":"one"},{"type":"text","text":"two"},{"type":"image_url","image_url":{"url":"https://x"}}]}`,
			Role: conversation.Tool, Flags: conversation.HasResult | conversation.HasMedia, Blocks: []string{`tool_result c2 "one\ntwo" [image_url 0]`},
		},
		{
			Name: "a call of the old kind", Raw: `{"role":"assistant","content":"","function_call":{"name":"f","arguments":"{}"}}`,
			Role: conversation.Assistant, Flags: conversation.HasCall, Blocks: []string{`tool_call f "{}"`},
		},
		{Name: "its result", Raw: `{"role":"function","name":"f","content":"x"}`, Role: conversation.Tool, Flags: conversation.HasResult, Blocks: []string{`tool_result "x"`}},
		{Name: "a role of the future", Raw: `{"role":"narrator","content":"once"}`, Role: conversation.User, Flags: conversation.HasOpaque | conversation.IsPinned, Blocks: []string{`opaque`}},
		{Name: "nothing", Raw: `{"role":"assistant","content":null}`, Role: conversation.Assistant},
	}
}

// C5.
func same() []wiretest.Same {
	return []wiretest.Same{
		{Name: "a string and a part", Raw: []string{
			`{"role":"user","content":"hé"}`,
			`{"content":[{"text":"h\u00e9","type":"text"}],"role":"user"}`,
			`{"role":"user","content":"hé <system-reminder>x</system-reminder>"}`,
		}},
		{Name: "nothing said in three ways", Raw: []string{
			`{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"n","arguments":"{}"}}]}`,
			`{"role":"assistant","content":"","refusal":null,"tool_calls":[{"id":"2","type":"function","function":{"arguments":" { } ","name":"n"}}]}`,
			`{"role":"assistant","reasoning_content":"hm","tool_calls":[{"id":"3","index":0,"type":"function","function":{"name":"n","arguments":"{}"}}]}`,
		}},
		{Name: "results under other ids", Raw: []string{
			`{"role":"tool","tool_call_id":"1","content":"x"}`,
			`{"role":"tool","tool_call_id":"2","content":[{"type":"text","text":"x"}]}`,
		}},
	}
}

func changes() []wiretest.Change {
	return []wiretest.Change{
		{Name: "a result", Text: "cut <é>", Raw: `{ "role":"tool" ,"content" : "long", "tool_call_id":"c1", "n":1.0}`, Want: `{ "role":"tool" ,"content" : "cut <é>", "tool_call_id":"c1", "n":1.0}`},
		{Name: "a result of parts", Text: "cut", Raw: `{"role":"tool","content":[{"type":"text","text":"long"}],"tool_call_id":"c1"}`, Want: `{"role":"tool","content":"cut","tool_call_id":"c1"}`},
		{Name: "an empty result", Text: "", Raw: `{"role":"tool","content":"x","tool_call_id":"c1"}`, Want: `{"role":"tool","content":"","tool_call_id":"c1"}`},
		{Name: "a string", Text: "short", Raw: `{"role":"user","content":"long","name":"ann"}`, Want: `{"role":"user","content":"short","name":"ann"}`},
		{
			Name: "one part", Block: 1, Text: "[image, archived]", // A13
			Raw:  `{"role":"user","content":[ {"type":"text","text":"h\u00e9"} ,{"type":"image_url","image_url":{"url":"https://x"}}]}`,
			Want: `{"role":"user","content":[ {"type":"text","text":"h\u00e9"} ,{"type":"text","text":"[image, archived]"}]}`,
		},
		{
			Name: "a call's arguments leave the text and the other call alone", Block: 1, Text: `{"p":"é"}`,
			Raw:  `{"role":"assistant","content":"h\u00e9","tool_calls":[{"id":"c1","type":"function","function":{"name":"w","arguments":"{\"p\":1,\"q\":2}"}}, {"id":"c2","type":"function","function":{"name":"w","arguments":"{ }"}}]}`,
			Want: `{"role":"assistant","content":"h\u00e9","tool_calls":[{"id":"c1","type":"function","function":{"name":"w","arguments":"{\"p\":\"é\"}"}}, {"id":"c2","type":"function","function":{"name":"w","arguments":"{ }"}}]}`,
		},
		{Name: "a custom tool's input", Text: "free", Raw: `{"role":"assistant","tool_calls":[{"id":"c","type":"custom","custom":{"name":"n","input":"long"}}]}`, Want: `{"role":"assistant","tool_calls":[{"id":"c","type":"custom","custom":{"name":"n","input":"free"}}]}`},
		{Name: "an old call's arguments", Text: "[]", Raw: `{"role":"assistant","function_call":{"name":"f","arguments":"{}"}}`, Want: `{"role":"assistant","function_call":{"name":"f","arguments":"[]"}}`},
		{Name: "no text beside a call", Text: " ", Raw: `{"role":"assistant","content":"x","tool_calls":[{"id":"c","type":"function","function":{"name":"n","arguments":"{}"}}]}`, Want: `{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"n","arguments":"{}"}}]}`},
		{Name: "arguments that are no JSON", Text: `{"p":"`, Raw: `{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"n","arguments":"{}"}}]}`}, // A12
		{Name: "nothing left", Text: "", Raw: `{"role":"user","content":"x"}`},                                   // A9
		{Name: "nothing left of parts", Text: "", Raw: `{"role":"user","content":[{"type":"text","text":"x"}]}`}, // A9
		{Name: "reasoning", Text: "short", Raw: `{"role":"assistant","reasoning_content":"long","content":"x"}`}, // A7
		{Name: "opaque", Text: "short", Raw: `{"role":"assistant","audio":{"id":"a"}}`},                          // A8
	}
}

func newMessages() []wiretest.New {
	text := func(text string) conversation.Block { return conversation.Block{Kind: conversation.Text, Text: text} }
	return []wiretest.New{
		{Name: "text", Message: conversation.Message{Role: conversation.User, Blocks: []conversation.Block{text("a"), text(""), text("b\"")}}, Want: `{"role":"user","content":"a\n\nb\""}`},
		{Name: "a part that was sent", Message: conversation.Message{Role: conversation.User, Blocks: []conversation.Block{text("a"), {Kind: conversation.Media, Raw: json.RawMessage(`{"type":"file"}`)}}}, Want: `{"role":"user","content":[{"type":"text","text":"a"},{"type":"file"}]}`},
		{Name: "a sent string with one block more", Message: extended(`{"role":"user","content":"q\u00e9","name":"ann"}`, text("more")), Want: `{"role":"user","content":[{"type":"text","text":"qé"},{"type":"text","text":"more"}],"name":"ann"}`},
		{Name: "sent parts with one block more", Message: extended(`{"role":"user","content":[{"type":"text","text":"q\u00e9"}]}`, text("more")), Want: `{"role":"user","content":[{"type":"text","text":"q\u00e9"},{"type":"text","text":"more"}]}`},
		{Name: "a call with a text more", Message: extended(`{"role":"assistant","content":null,"tool_calls":[{"id":"c","function":{"name":"n","arguments":"{}"}}]}`, text("more")), Want: `{"role":"assistant","content":[{"type":"text","text":"more"}],"tool_calls":[{"id":"c","function":{"name":"n","arguments":"{}"}}]}`},
		{Name: "reasoning left out", Message: withoutFirst(`{"role":"assistant","reasoning_content":"hm","content":"h\u00e9"}`), Want: `{"role":"assistant","content":"h\u00e9"}`},
		{Name: "a part left out", Message: withoutFirst(`{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`), Want: `{"role":"user","content":[{"type":"text","text":"b"}]}`},
		{Name: "everything left out", Message: withoutFirst(`{"role":"user","content":"a"}`), Want: ""},
		{Name: "a result with a text more", Message: extended(`{"role":"tool","tool_call_id":"c","content":"x"}`, text("more")), Want: ""},
		{Name: "nothing", Message: conversation.Message{Role: conversation.User}, Want: ""},
		{Name: "one of our own calls", Message: conversation.Message{Role: conversation.Assistant, Blocks: []conversation.Block{{Kind: conversation.ToolCall, Text: "{}"}}}, Want: ""},
	}
}

func parsed(raw string) conversation.Message {
	message, err := codec().Parse(json.RawMessage(raw))
	if err != nil {
		panic(err)
	}
	message.Changed = true
	return message
}

// extended returns a message with one block more.
func extended(raw string, block conversation.Block) conversation.Message {
	message := parsed(raw)
	message.Blocks = append(message.Blocks, block)
	return message
}

// withoutFirst returns a message of which the first block was left out.
func withoutFirst(raw string) conversation.Message {
	message := parsed(raw)
	message.Blocks = message.Blocks[1:]
	return message
}

func requests() []wiretest.Request {
	return []wiretest.Request{
		{Name: "little", Body: `{"messages":[]}`, Want: wire.Request{}},
		{
			Name: "much", Body: `{"model":"m","stream":true,"max_completion_tokens":100,"max_tokens":7,"prompt_cache_key":"k","tools":[{}],"response_format":{"type":"json_object"},"messages":[]}`,
			Want: wire.Request{Model: "m", Stream: true, MaxOutput: 100, SessionID: "k", SessionSource: "prompt_cache_key", Fixed: wiretest.Raws(`[{}]`, `{"type":"json_object"}`)},
		},
		{Name: "the old limit", Body: `{"max_tokens":7,"max_completion_tokens":null,"messages":[]}`, Want: wire.Request{MaxOutput: 7}},
		{Name: "store does not freeze", Body: `{"store":true,"metadata":{"session_id":"s"},"messages":[]}`, Want: wire.Request{SessionID: "s", SessionSource: "metadata.session_id"}},
	}
}

func faults() []wiretest.Fault {
	return []wiretest.Fault{
		{Name: "no messages", Body: `{"input":[]}`, Error: "messages: missing"},
		{Name: "messages are a string", Body: `{"messages":"hi"}`, Error: "messages: expected an array"},
		{Name: "model", Body: `{"model":["m"],"messages":[]}`, Error: "model: expected a string"},
		{Name: "stream", Body: `{"stream":1,"messages":[]}`, Error: "stream: expected true or false"},
		{Name: "max_tokens", Body: `{"max_tokens":1.5,"messages":[]}`, Error: "max_tokens: expected a whole number"},
		{Name: "max_completion_tokens", Body: `{"max_completion_tokens":1e400,"messages":[]}`, Error: "max_completion_tokens: expected a whole number"},
		{Name: "tools", Body: `{"tools":"x","messages":[]}`, Error: "tools: expected an array"},
		{Name: "response_format", Body: `{"response_format":"json","messages":[]}`, Error: "response_format: expected an object"},
	}
}
