package geminiinteractions_test

import (
	"encoding/json"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/wire"
	"palimpsest/pipeline/wire/wiretest"
)

const (
	part   = conversation.IsPart
	opaque = conversation.HasOpaque
)

func samples() wiretest.Samples {
	return wiretest.Samples{
		Body:      `{ "model":"gemini-3-pro-preview" , "top_p":1.0,"x":1e400, "input": %s, "x" : [ 1.0 ],"h\u00e9":null }`,
		Messages:  messages(),
		Appends:   appends(),
		Instructs: instructs(),
		Same:      same(),
		Distinct: []string{
			`{"type":"user_input","content":[{"type":"text","text":"a"}]}`,
			`{"type":"model_output","content":[{"type":"text","text":"a"}]}`,
			`{"type":"function_call","id":"c","name":"n","arguments":{}}`,
			`{"type":"function_call","id":"c","name":"n","arguments":{"a":1}}`,
			`{"type":"function_call","id":"c","name":"m","arguments":{}}`,
			`{"type":"function_result","call_id":"c","result":"a"}`,
			`{"type":"function_result","call_id":"c","result":"b"}`,
			`{"type":"function_result","call_id":"c","result":"a","is_error":true}`,
			`{"type":"user_input","content":[{"type":"image","mime_type":"image/png","data":"aGVsbG8="}]}`,
			`{"type":"user_input","content":[{"type":"image","mime_type":"image/png","data":"aGVsbG9="}]}`,
			`{"type":"google_search_call","id":"s","arguments":{"queries":["a"]}}`,
			`{"type":"google_search_call","id":"s","arguments":{"queries":["b"]}}`,
		},
		Changes:  changes(),
		New:      newMessages(),
		Requests: requests(),
		Faults:   faults(),
		Answers:  answers(),
		Problem:  `{"error":{"code":"invalid_api_key","message":"unknown key <plm_…>: create one"}}`,
	}
}

func messages() []wiretest.Message {
	return []wiretest.Message{
		{Name: "an input that is a string", Raw: `"h\u00e9 you"`, Role: conversation.User, Flags: conversation.HasTyped, Blocks: []string{`text "hé you"`}},
		{
			Name: "typed text and media", Role: conversation.User, Flags: conversation.HasTyped | conversation.HasMedia,
			Raw:    `{"type":"user_input","content":[{"type":"text","text":"s\u00e9e"} , {"type":"image","mime_type":"image/png","data":"aGVsbG8="},{"type":"video","uri":"https://x/f"}]}`,
			Blocks: []string{`text "sée"`, `media [image/png 5]`, `media [video 0]`},
		},
		{Name: "a content without a step", Raw: `{"type":"text","text":"a", "n":1e400}`, Role: conversation.User, Flags: conversation.HasTyped, Blocks: []string{`text "a"`}},
		{Name: "a thought", Raw: `{"type":"thought","signature":"c2ln","summary":[{"type":"text","text":"h"},{"type":"text","text":"m"}]}`, Role: conversation.Assistant, Flags: part | opaque | conversation.HasThinking, Blocks: []string{`thinking "h\nm"`}},
		{Name: "a thought without a summary", Raw: `{"type":"thought","signature":"c2ln"}`, Role: conversation.Assistant, Flags: part | opaque | conversation.HasThinking, Blocks: []string{`thinking`}},
		{Name: "an answer", Raw: `{"type":"model_output","content":[{"type":"text","text":"h\u00e9","annotations":[]}]}`, Role: conversation.Assistant, Flags: part, Blocks: []string{`text "hé"`}},
		{Name: "a call", Raw: `{"type":"function_call","id":"c1","name":"read","arguments":{"p":"a"}}`, Role: conversation.Assistant, Flags: part | conversation.HasCall, Blocks: []string{`tool_call c1 read "{\"p\":\"a\"}"`}},
		{Name: "a result", Raw: `{"type":"function_result","call_id":"c1","name":"read","result":"t\u00e9xt"}`, Role: conversation.Tool, Flags: conversation.HasResult, Blocks: []string{`tool_result c1 "téxt"`}},
		{Name: "a failure", Raw: `{"type":"function_result","call_id":"c1","is_error":true,"result":"no such file"}`, Role: conversation.Tool, Flags: conversation.HasResult, Blocks: []string{`tool_result c1 error "no such file"`}},
		{
			Name: "a result of contents", Role: conversation.Tool, Flags: conversation.HasResult | conversation.HasMedia,
			Raw:    `{"type":"function_result","call_id":"c1","result":[{"type":"text","text":"a"},{"type":"image","mime_type":"image/png","data":"aGVsbG8="},{"type":"text","text":"b"}]}`,
			Blocks: []string{`tool_result c1 "a\nb" [image/png 5]`},
		},
		{Name: "a result of contents in an object", Raw: `{"type":"function_result","call_id":"c1","result":{"content":[{"type":"text","text":"a"}]}}`, Role: conversation.Tool, Flags: conversation.HasResult, Blocks: []string{`tool_result c1 "a"`}},
		{Name: "a result of another form", Raw: `{"type":"function_result","call_id":"c1","result":{"n":1, "of":"x"}}`, Role: conversation.Tool, Flags: conversation.HasResult, Blocks: []string{`tool_result c1 "{\"n\":1,\"of\":\"x\"}"`}},
		{Name: "a search of Google", Raw: `{"type":"google_search_call","id":"s1","arguments":{"queries":["a"]},"signature":"c2ln"}`, Role: conversation.Assistant, Flags: part | opaque, Blocks: []string{`opaque s1 google_search_call`}},
		{Name: "what Google found", Raw: `{"type":"google_search_result","call_id":"s1","result":[]}`, Role: conversation.Assistant, Flags: part | opaque, Blocks: []string{`opaque s1 google_search_result`}},
		{Name: "a content of the future", Raw: `{"type":"model_output","content":[{"type":"hologram"}]}`, Role: conversation.Assistant, Flags: part | opaque, Blocks: []string{`opaque hologram`}},
		{Name: "a step without a type", Raw: `{"role":"user","content":"x"}`, Role: conversation.User, Flags: conversation.IsPinned | opaque, Blocks: []string{`opaque step`}},
		{Name: "no contents", Raw: `{"type":"user_input"}`, Role: conversation.User},
	}
}

// C5.
func same() []wiretest.Same {
	return []wiretest.Same{
		{Name: "a text in three forms", Raw: []string{`"a"`, `{"type":"user_input","content":[{"type":"text","text":"a"}]}`, `{"content":"a","type":"user_input"}`}},
		{Name: "a call under other ids", Raw: []string{
			`{"type":"function_call","id":"c","name":"n","arguments":{"a":1,"b":2}}`,
			`{"type":"function_call","arguments":{ "b":2,"a":1},"name":"n","id":"d"}`,
		}},
		{Name: "a result in two forms", Raw: []string{`{"type":"function_result","call_id":"c","result":"x"}`, `{"type":"function_result","call_id":"d","name":"n","result":[{"type":"text","text":"x"}]}`}},
	}
}

func changes() []wiretest.Change {
	return []wiretest.Change{
		{Name: "a text", Raw: `{"type":"user_input", "content":[{"n":1.0,"type":"text","text" : "long"}],"n":1.0}`, Text: "short", Want: `{"type":"user_input", "content":[{"n":1.0,"type":"text","text" : "short"}],"n":1.0}`},
		{Name: "a content without a step", Raw: `{"type":"text","text":"long"}`, Text: "short", Want: `{"type":"text","text":"short"}`},
		{Name: "an input that is a string", Raw: `"long"`, Text: "short", Want: `{"type":"user_input","content":[{"type":"text","text":"short"}]}`},
		{Name: "a text with annotations", Raw: `{"type":"model_output","content":[{"type":"text","text":"long","annotations":[{}]}]}`, Text: "short", Want: `{"type":"model_output","content":[{"type":"text","text":"short"}]}`},
		{Name: "a result", Text: "cut <é>", Raw: `{"type":"function_result","call_id":"c" , "name":"n","result":"long"}`, Want: `{"type":"function_result","call_id":"c" , "name":"n","result":"cut <é>"}`},
		{Name: "an error stays one", Text: "cut", Raw: `{"type":"function_result","call_id":"c","is_error":true,"result":"long"}`, Want: `{"type":"function_result","call_id":"c","is_error":true,"result":"cut"}`},
		{Name: "a result with a picture", Text: "cut", Raw: `{"type":"function_result","call_id":"c","result":[{"type":"text","text":"x"},{"type":"image","data":"x"}]}`, Want: `{"type":"function_result","call_id":"c","result":"cut"}`},                                                     // A13
		{Name: "a picture", Block: 1, Text: "[image, archived]", Raw: `{"type":"user_input","content":[{"type":"text","text":"h\u00e9"},{"type":"image","data":"x"}]}`, Want: `{"type":"user_input","content":[{"type":"text","text":"h\u00e9"},{"type":"text","text":"[image, archived]"}]}`}, // A13
		{Name: "arguments", Text: `{"p":1}`, Raw: `{"type":"function_call","id":"c","name":"w","arguments":{"p":2}}`, Want: `{"type":"function_call","id":"c","name":"w","arguments":{"p":1}}`},
		{Name: "arguments that are no JSON", Text: `{"p":`, Raw: `{"type":"function_call","id":"c","name":"w","arguments":{}}`}, // A12
		{Name: "arguments that are not an object", Text: `[1]`, Raw: `{"type":"function_call","id":"c","name":"w","arguments":{}}`},
		{Name: "thinking", Text: "x", Raw: `{"type":"thought","summary":[{"type":"text","text":"hm"}]}`},       // A7, W40
		{Name: "a search", Text: "x", Raw: `{"type":"google_search_call","id":"s","arguments":{}}`},            // A8, W40
		{Name: "nothing left", Text: " ", Raw: `{"type":"user_input","content":[{"type":"text","text":"x"}]}`}, // A9
		{Name: "nothing left of a content", Text: " ", Raw: `{"type":"text","text":"x"}`},                      // A9
	}
}

func newMessages() []wiretest.New {
	text := func(text string) conversation.Block { return conversation.Block{Kind: conversation.Text, Text: text} }
	return []wiretest.New{
		{Name: "text", Message: conversation.Message{Role: conversation.User, Blocks: []conversation.Block{text("a"), text(""), text("b\"")}}, Want: `{"type":"user_input","content":[{"type":"text","text":"a"},{"type":"text","text":"b\""}]}`},
		{Name: "an answer", Message: conversation.Message{Role: conversation.Assistant, Blocks: []conversation.Block{text("a")}}, Want: `{"type":"model_output","content":[{"type":"text","text":"a"}]}`},
		{Name: "a content that was sent", Message: conversation.Message{Role: conversation.User, Blocks: []conversation.Block{text("a"), {Kind: conversation.Media, Raw: json.RawMessage(`{"type":"image"}`)}}}, Want: `{"type":"user_input","content":[{"type":"text","text":"a"},{"type":"image"}]}`},
		{Name: "sent contents with one more", Message: extended(`{"content":[{"type":"text","text":"q\u00e9"}],"type":"model_output"}`, text("more")), Want: `{"content":[{"type":"text","text":"q\u00e9"},{"type":"text","text":"more"}],"type":"model_output"}`},
		{Name: "nothing", Message: conversation.Message{Role: conversation.User}},
		{Name: "one of our own calls", Message: conversation.Message{Role: conversation.Assistant, Blocks: []conversation.Block{{Kind: conversation.ToolCall, Text: "{}"}}}},
	}
}

// extended returns a message with one block more.
func extended(raw string, block conversation.Block) conversation.Message {
	message, err := codec().Parse(json.RawMessage(raw))
	if err != nil {
		panic(err)
	}
	message.Blocks, message.Changed = append(message.Blocks, block), true
	return message
}

// appends are steps with texts behind them.
func appends() []wiretest.AppendSample {
	return []wiretest.AppendSample{
		{Name: "contents", Raw: `{"content":[ {"type":"text","text":"h\u00e9"}] , "type":"user_input"}`, Want: `{"content":[ {"type":"text","text":"h\u00e9"},{"type":"text","text":"one"},{"type":"text","text":"two"}] , "type":"user_input"}`},
		{Name: "a string", Raw: `{"type":"user_input","content":"a"}`, Want: `{"type":"user_input","content":[{"type":"text","text":"a"},{"type":"text","text":"one"},{"type":"text","text":"two"}]}`},
		{Name: "a content without a step", Raw: `{"type":"text","text":"a"}`},
		{Name: "no contents", Raw: `{"type":"user_input"}`},
	}
}

// instructs are bodies with texts behind their system instruction.
func instructs() []wiretest.InstructSample {
	return []wiretest.InstructSample{
		{Name: "an instruction", Body: `{"system_instruction":"Be \u00e9.","input":[ ]}`, Want: `{"system_instruction":"Be é.\n\none\n\ntwo","input":[ ]}`},
		{Name: "none", Body: `{"input":[{"type":"user_input","content":[]}]}`, Want: `{"input":[{"type":"user_input","content":[]}],"system_instruction":"one\n\ntwo"}`},
	}
}

func requests() []wiretest.Request {
	return []wiretest.Request{
		{Name: "little", Body: `{"input":[]}`, Want: wire.Request{}},
		{
			Name: "much", Body: `{"model":"m","stream":true,"generation_config":{"max_output_tokens":100},"response_format":{"type":"text"},"tools":[{}],"system_instruction":"s","input":[{"type":"user_input"}]}`,
			Want: wire.Request{Model: "m", Stream: true, MaxOutput: 100, Fixed: wiretest.Raws(`"s"`, `[{}]`, `{"type":"text"}`)},
		},
		{Name: "a history at Google", Body: `{"model":"m","previous_interaction_id":"v1_x","input":[{"type":"function_result"}]}`, Want: wire.Request{Model: "m", ReadOnly: "previous_interaction_id", Previous: "v1_x", SessionID: "v1_x", SessionSource: "previous_interaction_id"}},
		{Name: "an agent", Body: `{"agent":"deep-research","input":[{"type":"user_input"}]}`, Want: wire.Request{Model: "deep-research", ReadOnly: "agent"}},
		{Name: "a string", Body: `{"model":"m","input":"a"}`, Want: wire.Request{Model: "m", ReadOnly: "input"}},
		{Name: "contents", Body: `{"model":"m","input":[{"type":"text","text":"a"},{"type":"image"}]}`, Want: wire.Request{Model: "m", ReadOnly: "input"}},
		{Name: "a content", Body: `{"model":"m","input":{"type":"text","text":"a"}}`, Want: wire.Request{Model: "m", ReadOnly: "input"}},
	}
}

func faults() []wiretest.Fault {
	return []wiretest.Fault{
		{Name: "no input", Body: `{"contents":[]}`, Error: "input: missing"},
		{Name: "the input is a number", Body: `{"input":1}`, Error: "input: expected an array"},
		{Name: "model", Body: `{"model":"a","model":"b","input":[]}`, Error: "model: is there twice"},
		{Name: "model and agent", Body: `{"model":"a","agent":"b","input":[]}`, Error: "agent: is there beside a model; send one of them"},
		{Name: "generation_config", Body: `{"generation_config":[],"input":[]}`, Error: "generation_config: expected an object"},
	}
}
