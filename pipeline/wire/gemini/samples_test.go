package gemini_test

import (
	"encoding/json"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/wire"
	"palimpsest/pipeline/wire/wiretest"
)

func samples() wiretest.Samples {
	return wiretest.Samples{
		Body:      `{ "model":"gemini-2.5-pro" , "topP":1.0,"x":1e400, "contents": %s, "x" : [ 1.0 ],"h\u00e9":null }`,
		Messages:  messages(),
		Appends:   appends(),
		Instructs: instructs(),
		Same:      same(),
		Distinct: []string{
			`{"role":"user","parts":[{"text":"a"}]}`,
			`{"role":"model","parts":[{"text":"a"}]}`,
			`{"role":"model","parts":[{"functionCall":{"name":"n","args":{}}}]}`,
			`{"role":"model","parts":[{"functionCall":{"name":"n","args":{"a":1}}}]}`,
			`{"role":"model","parts":[{"functionCall":{"name":"m","args":{}}}]}`,
			`{"role":"user","parts":[{"functionResponse":{"name":"n","response":{"output":"a"}}}]}`,
			`{"role":"user","parts":[{"functionResponse":{"name":"n","response":{"output":"b"}}}]}`,
			`{"role":"user","parts":[{"functionResponse":{"name":"n","response":{"error":"a"}}}]}`,
			`{"role":"user","parts":[{"inlineData":{"mimeType":"image/png","data":"aGVsbG8="}}]}`,
			`{"role":"user","parts":[{"inlineData":{"mimeType":"image/png","data":"aGVsbG9="}}]}`,
			`{"role":"model","parts":[{"executableCode":{"language":"PYTHON","code":"1"}}]}`,
			`{"role":"model","parts":[{"executableCode":{"language":"PYTHON","code":"2"}}]}`,
		},
		Changes:  changes(),
		New:      newMessages(),
		Requests: requests(),
		Faults:   faults(),
		Answers:  answers(),
		Problem:  `{"error":{"code":401,"message":"unknown key <plm_…>: create one","status":"UNAUTHENTICATED","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"invalid_api_key","domain":"palimpsest"}]}}`,
	}
}

func messages() []wiretest.Message {
	return []wiretest.Message{
		{
			Name: "typed text and media", Role: conversation.User, Flags: conversation.HasTyped | conversation.HasMedia,
			Raw:    `{"role":"user","parts":[{"text":"s\u00e9e"} , {"inlineData":{"mimeType":"image/png","data":"aGVsbG8="}},{"fileData":{"mimeType":"video/mp4","fileUri":"https://x/f"},"videoMetadata":{"startOffset":"1s"}}, {"inline_data":{"mime_type":"audio/wav","data":"aGVsbG8="}}]}`,
			Blocks: []string{`text "sée"`, `media [image/png 5]`, `media [video/mp4 0]`, `media [audio/wav 5]`},
		},
		{Name: "no role", Raw: `{"parts":[{"text":"a", "n":1e400}]}`, Role: conversation.User, Flags: conversation.HasTyped, Blocks: []string{`text "a"`}},
		{
			Name: "thinking, text and calls", Role: conversation.Assistant, Flags: conversation.HasThinking | conversation.HasCall | conversation.HasOpaque,
			Raw:    `{"role":"model","parts":[{"text":"hm","thought":true},{"text":"I look."},{"functionCall":{"name":"read","args":{"p":"a"},"id":"c1"},"thoughtSignature":"c2ln"},{"functionCall":{"name":"list"}}]}`,
			Blocks: []string{`thinking "hm"`, `text "I look."`, `tool_call c1 read "{\"p\":\"a\"}"`, `tool_call list#0 list`},
		},
		{
			Name: "a part with nothing but a signature", Role: conversation.Assistant, Flags: conversation.HasOpaque,
			Raw: `{"role":"model","parts":[{"text":"","thoughtSignature":"c2ln"},{"thoughtSignature":"c2ln"}]}`, Blocks: []string{`text`, `opaque`},
		},
		{
			Name: "responses of every kind", Role: conversation.User, Flags: conversation.HasResult | conversation.HasMedia,
			Raw: `{"role":"user","parts":[{"functionResponse":{"name":"read","id":"c1","response":{"output":"t\u00e9xt"}}},{"functionResponse":{"name":"read","response":{"error":"no such file"}}},` +
				`{"functionResponse":{"name":"list","response":{"n":1, "of":"x"}}},{"function_response":{"name":"shot","response":{"output":"see"},"parts":[{"inlineData":{"mimeType":"image/png","data":"aGVsbG8="}}]}}]}`,
			Blocks: []string{`tool_result c1 "téxt"`, `tool_result read#1 error "no such file"`, `tool_result list#0 "{\"n\":1,\"of\":\"x\"}"`, `tool_result shot#0 "see" [image/png 5]`},
		},
		{Name: "a response in a role of its own", Role: conversation.Tool, Flags: conversation.HasResult, Raw: `{"role":"function","parts":[{"functionResponse":{"name":"n","response":{"result":"x"}}}]}`, Blocks: []string{`tool_result n#0 "x"`}},
		{
			Name: "code that Google ran", Role: conversation.Assistant, Flags: conversation.HasOpaque,
			Raw:    `{"role":"model","parts":[{"executableCode":{"language":"PYTHON","code":"1"}},{"codeExecutionResult":{"outcome":"OUTCOME_OK","output":"1"}},{"text":"1"},{"toolCall":{"id":"s"}}]}`,
			Blocks: []string{`opaque executableCode`, `opaque codeExecutionResult`, `text "1"`, `opaque toolCall`},
		},
		{Name: "a role of the future", Role: conversation.User, Flags: conversation.IsPinned | conversation.HasOpaque, Raw: `{"role":"narrator","parts":[{"text":"x"}]}`, Blocks: []string{`opaque content`}},
		{Name: "no parts", Role: conversation.User, Raw: `{"role":"user"}`},
	}
}

// C5.
func same() []wiretest.Same {
	return []wiretest.Same{
		{Name: "both spellings", Raw: []string{
			`{"role":"model","parts":[{"functionCall":{"name":"n","args":{"a":1,"b":2}}}]}`,
			`{"parts":[{"function_call":{"id":"c","args":{ "b":2,"a":1},"name":"n"},"thought_signature":"c2ln"}],"role":"model"}`,
		}},
		{Name: "a response under other ids", Raw: []string{
			`{"role":"user","parts":[{"functionResponse":{"name":"n","response":{"output":"x"}}}]}`,
			`{"role":"user","parts":[{"functionResponse":{"id":"1","name":"n","response":{"output":"x"}}}]}`,
		}},
		{Name: "an answer with and without its thinking", Raw: []string{
			`{"role":"model","parts":[{"text":"hm","thought":true},{"text":"a"}]}`,
			`{"role":"model","parts":[{"text":"a","thoughtSignature":"c2ln"}]}`,
		}},
	}
}

func changes() []wiretest.Change {
	return []wiretest.Change{
		{Name: "a text", Raw: `{"role":"user", "parts":[{"n":1.0,"text" : "long"}],"n":1.0}`, Text: "short", Want: `{"role":"user", "parts":[{"n":1.0,"text" : "short"}],"n":1.0}`},
		{Name: "an output", Text: "cut <é>", Raw: `{"role":"user","parts":[{"functionResponse" : {"id":"c","name":"n", "response":{"output":"long"}}}]}`, Want: `{"role":"user","parts":[{"functionResponse" : {"id":"c","name":"n", "response":{"output":"cut <é>"}}}]}`},
		{Name: "an error stays one", Text: "cut", Raw: `{"role":"user","parts":[{"functionResponse":{"name":"n","response":{"error":"long"}}}]}`, Want: `{"role":"user","parts":[{"functionResponse":{"name":"n","response":{"error":"cut"}}}]}`},
		{Name: "a response of several members", Text: "cut", Raw: `{"role":"user","parts":[{"functionResponse":{"name":"n","response":{"a":1,"b":"x"}}}]}`, Want: `{"role":"user","parts":[{"functionResponse":{"name":"n","response":{"output":"cut"}}}]}`},
		{Name: "a response with a picture", Text: "cut", Raw: `{"role":"user","parts":[{"functionResponse":{"name":"n","response":{"output":"x"},"parts":[{"inlineData":{}}]}}]}`, Want: `{"role":"user","parts":[{"functionResponse":{"name":"n","response":{"output":"cut"}}}]}`}, // A13
		{Name: "a picture", Block: 1, Text: "[image, archived]", Raw: `{"role":"user","parts":[{"text":"h\u00e9"},{"inlineData":{"mimeType":"image/png","data":"x"}}]}`, Want: `{"role":"user","parts":[{"text":"h\u00e9"},{"text":"[image, archived]"}]}`},                         // A13
		{Name: "arguments", Text: `{"p":1}`, Raw: `{"role":"model","parts":[{"functionCall":{"name":"w","args":{"p":2}}}]}`, Want: `{"role":"model","parts":[{"functionCall":{"name":"w","args":{"p":1}}}]}`},
		{Name: "arguments that are no JSON", Text: `{"p":`, Raw: `{"role":"model","parts":[{"functionCall":{"name":"w","args":{}}}]}`}, // A12
		{Name: "arguments that are not an object", Text: `[1]`, Raw: `{"role":"model","parts":[{"functionCall":{"name":"w","args":{}}}]}`},
		{Name: "thinking", Text: "x", Raw: `{"role":"model","parts":[{"text":"hm","thought":true}]}`},                    // A7, W40
		{Name: "a signed text", Text: "x", Raw: `{"role":"model","parts":[{"text":"a","thoughtSignature":"c2ln"}]}`},     // A7, W40
		{Name: "code", Text: "x", Raw: `{"role":"model","parts":[{"executableCode":{"language":"PYTHON","code":"1"}}]}`}, // A8, W40
		{Name: "nothing left", Text: " ", Raw: `{"role":"user","parts":[{"text":"x"}]}`},                                 // A9
	}
}

func newMessages() []wiretest.New {
	text := func(text string) conversation.Block { return conversation.Block{Kind: conversation.Text, Text: text} }
	return []wiretest.New{
		{Name: "text", Message: conversation.Message{Role: conversation.User, Blocks: []conversation.Block{text("a"), text(""), text("b\"")}}, Want: `{"role":"user","parts":[{"text":"a"},{"text":"b\""}]}`},
		{Name: "an answer", Message: conversation.Message{Role: conversation.Assistant, Blocks: []conversation.Block{text("a")}}, Want: `{"role":"model","parts":[{"text":"a"}]}`},
		{Name: "a part that was sent", Message: conversation.Message{Role: conversation.User, Blocks: []conversation.Block{text("a"), {Kind: conversation.Media, Raw: json.RawMessage(`{"fileData":{}}`)}}}, Want: `{"role":"user","parts":[{"text":"a"},{"fileData":{}}]}`},
		{Name: "sent parts with one more", Message: extended(`{"parts":[{"text":"q\u00e9"}],"role":"model"}`, text("more")), Want: `{"parts":[{"text":"q\u00e9"},{"text":"more"}],"role":"model"}`},
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

// appends are contents with texts behind them.
func appends() []wiretest.AppendSample {
	return []wiretest.AppendSample{
		{Name: "parts", Raw: `{"parts":[ {"text":"h\u00e9"}] , "role":"user"}`, Want: `{"parts":[ {"text":"h\u00e9"},{"text":"one"},{"text":"two"}] , "role":"user"}`},
		{Name: "no parts", Raw: `{"role":"user"}`},
	}
}

// instructs are bodies with texts behind their system instruction.
func instructs() []wiretest.InstructSample {
	return []wiretest.InstructSample{
		{Name: "an instruction", Body: `{"systemInstruction":{"parts":[{"text":"Be \u00e9."}]},"contents":[ ]}`, Want: `{"systemInstruction":{"parts":[{"text":"Be \u00e9."},{"text":"one"},{"text":"two"}]},"contents":[ ]}`},
		{Name: "the other spelling", Body: `{"system_instruction":{"parts":[]},"contents":[]}`, Want: `{"system_instruction":{"parts":[{"text":"one"},{"text":"two"}]},"contents":[]}`},
		{Name: "none", Body: `{"contents":[{"role":"user","parts":[{"text":"a"}]}]}`, Want: `{"contents":[{"role":"user","parts":[{"text":"a"}]}],"systemInstruction":{"parts":[{"text":"one"},{"text":"two"}]}}`},
	}
}

func requests() []wiretest.Request {
	return []wiretest.Request{
		{Name: "little", Body: `{"contents":[]}`, Want: wire.Request{}},
		{
			Name: "much", Body: `{"model":"m","stream":true,"generationConfig":{"maxOutputTokens":100,"responseSchema":{"type":"OBJECT"}},"tools":[{}],"systemInstruction":{"parts":[]},"contents":[]}`,
			Want: wire.Request{Model: "m", Stream: true, MaxOutput: 100, Fixed: wiretest.Raws(`{"parts":[]}`, `[{}]`, `{"type":"OBJECT"}`)},
		},
		{Name: "the other spelling", Body: `{"system_instruction":{},"generation_config":{"max_output_tokens":7},"contents":[]}`, Want: wire.Request{MaxOutput: 7, Fixed: wiretest.Raws(`{}`)}},
		{Name: "cached content", Body: `{"cachedContent":"cachedContents/x","contents":[]}`, Want: wire.Request{ReadOnly: "cachedContent"}},
		{Name: "cached content in the other spelling", Body: `{"cached_content":"cachedContents/x","contents":[]}`, Want: wire.Request{ReadOnly: "cachedContent"}},
		{Name: "neither", Body: `{"cachedContent":null,"contents":[]}`, Want: wire.Request{}},
	}
}

func faults() []wiretest.Fault {
	return []wiretest.Fault{
		{Name: "no contents", Body: `{"messages":[]}`, Error: "contents: missing"},
		{Name: "contents are an object", Body: `{"contents":{}}`, Error: "contents: expected an array"},
		{Name: "contents are a string", Body: `{"contents":"a"}`, Error: "contents: expected an array"},
		{Name: "model", Body: `{"model":"a","model":"b","contents":[]}`, Error: "model: is there twice"},
		{Name: "generationConfig", Body: `{"generationConfig":[],"contents":[]}`, Error: "generationConfig: expected an object"},
		{Name: "cachedContent", Body: `{"cachedContent":{},"contents":[]}`, Error: "cachedContent: expected a string"},
	}
}
