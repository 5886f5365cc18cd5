package openairesponses_test

import (
	"encoding/json"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/wire"
	"palimpsest/pipeline/wire/wiretest"
)

const (
	part   = conversation.IsPart
	pinned = conversation.IsPinned
	opaque = conversation.HasOpaque
)

func samples() wiretest.Samples {
	return wiretest.Samples{
		Body:      `{ "model":"gpt-6-sol" , "top_p":1.0,"x":1e400, "input": %s, "x" : [ 1.0 ],"h\u00e9":null }`,
		Messages:  append(messages(), items()...),
		Appends:   appends(),
		Instructs: instructs(),
		Same:      same(),
		Distinct: []string{
			`{"role":"user","content":"a"}`,
			`{"role":"assistant","content":"a"}`,
			`{"role":"developer","content":"a"}`,
			`{"type":"function_call","call_id":"c","name":"n","arguments":"{}"}`,
			`{"type":"function_call","call_id":"c","name":"n","arguments":"{\"a\":1}"}`,
			`{"type":"function_call","call_id":"c","name":"m","arguments":"{}"}`,
			`{"type":"function_call_output","call_id":"c","output":"a"}`,
			`{"type":"function_call_output","call_id":"c","output":"b"}`,
			`{"type":"shell_call_output","call_id":"c","output":[{"stdout":"a","stderr":"","outcome":{"type":"exit","exit_code":1}}]}`,
			`{"type":"compaction","encrypted_content":"a"}`,
			`{"type":"compaction","encrypted_content":"b"}`,
			`{"type":"web_search_call","id":"ws","action":{"query":"a"}}`,
			`{"type":"web_search_call","id":"ws","action":{"query":"b"}}`,
			`{"type":"item_reference","id":"msg_1"}`,
			`{"type":"item_reference","id":"msg_2"}`,
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
		{Name: "an input that is a string", Raw: `"h\u00e9 you"`, Role: conversation.User, Flags: conversation.HasTyped, Blocks: []string{`text "hé you"`}},
		{Name: "developer", Raw: `{"role":"developer","content":"be h\u00e9", "n":1e400, "n":1.0}`, Role: conversation.System, Flags: pinned, Blocks: []string{`text "be hé"`}},
		{Name: "a plain developer message", Raw: `{"type":"message","role":"developer","id":"msg_1","status":"completed","content":[{"type":"input_text","text":"be brief"}]}`, Role: conversation.System, Blocks: []string{`text "be brief"`}},
		{Name: "a call of a kind of the future", Raw: `{"type":"hologram_call","call_id":"c","shape":"x"}`, Role: conversation.Assistant, Flags: part | opaque | conversation.HasCall, Blocks: []string{`tool_call c hologram_call`}},
		{Name: "the output of such a call", Raw: `{"type":"hologram_call_output","call_id":"c","shape":"x"}`, Role: conversation.Tool, Flags: opaque | conversation.HasResult, Blocks: []string{`tool_result c hologram_call_output`}},
		{
			Name: "typed text and media", Role: conversation.User, Flags: conversation.HasTyped | conversation.HasMedia,
			Raw:    `{"type":"message","role":"user","id":"msg_1","content":[{"type":"input_text","text":"see"} , {"type":"input_image","image_url":"data:image/png;base64,aGVsbG8="},{"type":"input_file","file_id":"f"},{"type":"input_audio","input_audio":{"data":"aGVsbG8=","format":"wav"}}]}`,
			Blocks: []string{`text "see"`, `media [image/png 5]`, `media [input_file 0]`, `media [audio/wav 5]`},
		},
		{
			Name: "an injected context", Role: conversation.User,
			Raw:    `{"role":"user","content":[{"type":"input_text","text":"<environment_context>\n  <cwd>/x</cwd>\n</environment_context>"}]}`,
			Blocks: []string{`text "<environment_context>\n  <cwd>/x</cwd>\n</environment_context>"`},
		},
		{
			Name: "an answer", Role: conversation.Assistant, Flags: part,
			Raw:    `{"type":"message","role":"assistant","id":"msg_2","status":"completed","content":[{"type":"output_text","text":"h\u00e9","annotations":[],"logprobs":[]}]}`,
			Blocks: []string{`text "hé"`},
		},
		{Name: "a refusal", Raw: `{"role":"assistant","content":[{"type":"refusal","refusal":"no"}]}`, Role: conversation.Assistant, Flags: part | opaque, Blocks: []string{`opaque refusal`}},
		{Name: "a role of the future", Raw: `{"role":"narrator","content":"once"}`, Role: conversation.User, Flags: opaque | pinned, Blocks: []string{`opaque message`}},
	}
}

// W40.
func items() []wiretest.Message {
	call, result := conversation.HasCall|part, conversation.HasResult
	return []wiretest.Message{
		{Name: "reasoning", Raw: `{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"hm"}],"content":null}`, Role: conversation.Assistant, Flags: conversation.HasThinking | part, Blocks: []string{`thinking "hm"`}},
		{Name: "sealed reasoning", Raw: `{"type":"reasoning","id":"rs_2","summary":[],"encrypted_content":"x\u00e9"}`, Role: conversation.Assistant, Flags: conversation.HasThinking | part | opaque, Blocks: []string{`thinking`}},
		{Name: "function_call", Raw: `{"type":"function_call","id":"fc_1","call_id":"c1","name":"read","arguments":"{\"n\":1.0}","status":"completed"}`, Role: conversation.Assistant, Flags: call, Blocks: []string{`tool_call c1 read "{\"n\":1.0}"`}},
		{Name: "function_call_output", Raw: `{"type":"function_call_output","id":"fco_1","call_id":"c1","output":"<x>"}`, Role: conversation.Tool, Flags: result, Blocks: []string{`tool_result c1 "<x>"`}},
		{Name: "an output of parts", Raw: `{"type":"function_call_output","call_id":"c1","output":[{"type":"input_text","text":"one"},{"type":"input_text","text":"two"},{"type":"input_image","image_url":"data:image/gif;base64,aGVsbG8="}]}`, Role: conversation.Tool, Flags: result | conversation.HasMedia, Blocks: []string{`tool_result c1 "one\ntwo" [image/gif 5]`}},
		{Name: "custom_tool_call", Raw: `{"type":"custom_tool_call","call_id":"c2","name":"apply_patch","input":"*** é"}`, Role: conversation.Assistant, Flags: call, Blocks: []string{`tool_call c2 apply_patch "*** é"`}},
		{Name: "custom_tool_call_output", Raw: `{"type":"custom_tool_call_output","call_id":"c2","output":"ok"}`, Role: conversation.Tool, Flags: result, Blocks: []string{`tool_result c2 "ok"`}},
		{Name: "local_shell_call", Raw: `{"type":"local_shell_call","id":"ls","call_id":"c3","action":{"type":"exec","command":["ls"]},"status":"completed"}`, Role: conversation.Assistant, Flags: call, Blocks: []string{`tool_call c3 local_shell "{\"type\":\"exec\",\"command\":[\"ls\"]}"`}},
		{Name: "local_shell_call_output", Raw: `{"type":"local_shell_call_output","id":"c3","output":"a b"}`, Role: conversation.Tool, Flags: result, Blocks: []string{`tool_result c3 "a b"`}},
		{Name: "shell_call", Raw: `{"type":"shell_call","call_id":"c4","action":{"commands":["ls"]}}`, Role: conversation.Assistant, Flags: call, Blocks: []string{`tool_call c4 shell "{\"commands\":[\"ls\"]}"`}},
		{Name: "shell_call_output", Raw: `{"type":"shell_call_output","call_id":"c4","output":[{"stdout":"a\n","stderr":"bad","outcome":{"type":"exit","exit_code":1}},{"stdout":"b","stderr":"","outcome":{"type":"exit","exit_code":0}}],"max_output_length":9}`, Role: conversation.Tool, Flags: result, Blocks: []string{`tool_result c4 error "a\nbad\nb"`}},
		{Name: "apply_patch_call", Raw: `{"type":"apply_patch_call","call_id":"c5","operation":{"type":"delete_file","path":"a"},"status":"completed"}`, Role: conversation.Assistant, Flags: call, Blocks: []string{`tool_call c5 apply_patch "{\"type\":\"delete_file\",\"path\":\"a\"}"`}},
		{Name: "apply_patch_call_output", Raw: `{"type":"apply_patch_call_output","call_id":"c5","status":"failed","output":"no"}`, Role: conversation.Tool, Flags: result, Blocks: []string{`tool_result c5 error "no"`}},
		{Name: "computer_call", Raw: `{"type":"computer_call","id":"cu","call_id":"c6","action":{"type":"screenshot"},"pending_safety_checks":[]}`, Role: conversation.Assistant, Flags: call, Blocks: []string{`tool_call c6 computer "{\"type\":\"screenshot\"}"`}},
		{Name: "computer_call_output", Raw: `{"type":"computer_call_output","call_id":"c6","output":{"type":"computer_screenshot","image_url":"data:image/png;base64,aGVsbG8="}}`, Role: conversation.Tool, Flags: result | conversation.HasMedia | opaque, Blocks: []string{`tool_result c6 [image/png 5]`}},
		{Name: "web search", Raw: `{"type":"web_search_call","id":"ws","status":"completed","action":{"type":"search"}}`, Role: conversation.Assistant, Flags: part | opaque, Blocks: []string{`opaque web_search_call`}},
		{Name: "an approval", Raw: `{"type":"mcp_approval_response","approval_request_id":"a","approve":true}`, Role: conversation.Tool, Flags: opaque, Blocks: []string{`opaque mcp_approval_response`}},
		{Name: "tools that the client found", Raw: `{"type":"tool_search_output","call_id":"c","execution":"client","tools":[]}`, Role: conversation.Tool, Flags: opaque | conversation.LoadsTools, Blocks: []string{`opaque c tool_search_output`}},
		{Name: "tools that the server found", Raw: `{"type":"tool_search_output","call_id":"c","execution":"server","tools":[]}`, Role: conversation.Assistant, Flags: part | opaque | conversation.LoadsTools, Blocks: []string{`opaque c tool_search_output`}},
		{Name: "compaction", Raw: `{"type":"compaction","id":"cmp","encrypted_content":"x"}`, Role: conversation.Assistant, Flags: pinned | conversation.IsBoundary | opaque, Blocks: []string{`opaque compaction`}},
		{Name: "compaction_trigger", Raw: `{"type":"compaction_trigger"}`, Role: conversation.User, Flags: pinned | opaque, Blocks: []string{`opaque compaction_trigger`}},
		{Name: "item_reference", Raw: `{"type":"item_reference","id":"msg_1"}`, Role: conversation.Assistant, Flags: part | opaque, Blocks: []string{`opaque item_reference`}},
		{Name: "item_reference to a call", Raw: `{"type":"item_reference","id":"ws_1"}`, Role: conversation.Assistant, Flags: pinned | opaque, Blocks: []string{`opaque item_reference`}},
		{Name: "item_reference without its type", Raw: `{"id":"msg_1"}`, Role: conversation.Assistant, Flags: part | opaque, Blocks: []string{`opaque item_reference`}},
		{Name: "program", Raw: `{"type":"program","id":"prog_1","call_id":"p1","code":"await read()","fingerprint":"f"}`, Role: conversation.Assistant, Flags: part | opaque | conversation.HasPending, Blocks: []string{`opaque p1 program`}},
		{Name: "program_output", Raw: `{"type":"program_output","id":"po_1","call_id":"p1","result":"x","status":"completed"}`, Role: conversation.Assistant, Flags: part | opaque | conversation.HasSettled, Blocks: []string{`opaque p1 program_output`}},
		{Name: "file search", Raw: `{"type":"file_search_call","id":"fs","status":"completed","queries":["a"],"results":null}`, Role: conversation.Assistant, Flags: part | opaque, Blocks: []string{`opaque file_search_call`}},
		{Name: "code interpreter", Raw: `{"type":"code_interpreter_call","id":"ci","container_id":"cntr","code":"1","outputs":[],"status":"completed"}`, Role: conversation.Assistant, Flags: part | opaque, Blocks: []string{`opaque code_interpreter_call`}},
		{Name: "a picture that was made", Raw: `{"type":"image_generation_call","id":"ig","result":"aGVsbG8=","status":"completed"}`, Role: conversation.Assistant, Flags: part | opaque, Blocks: []string{`opaque image_generation_call`}},
		{Name: "an MCP server's tools", Raw: `{"type":"mcp_list_tools","id":"mcpl","server_label":"s","tools":[]}`, Role: conversation.Assistant, Flags: part | opaque, Blocks: []string{`opaque mcp_list_tools`}},
		{Name: "an MCP call with its output", Raw: `{"type":"mcp_call","id":"mcp_1","server_label":"s","name":"n","arguments":"{}","output":"x"}`, Role: conversation.Assistant, Flags: part | opaque, Blocks: []string{`opaque mcp_call`}},
		{Name: "a question for approval", Raw: `{"type":"mcp_approval_request","id":"mcpr","server_label":"s","name":"n","arguments":"{}"}`, Role: conversation.Assistant, Flags: part | opaque, Blocks: []string{`opaque mcp_approval_request`}},
		{Name: "additional_tools", Raw: `{"type":"additional_tools","role":"developer","tools":[]}`, Role: conversation.System, Flags: pinned | opaque, Blocks: []string{`opaque additional_tools`}},
		{
			Name: "what another agent came to", Role: conversation.Assistant, Flags: part, Blocks: []string{`text "Message Type: FINAL_ANSWER\nTask name: /root\nSender: /root/look\nPayload:\nIt is there."`},
			Raw: `{"type":"agent_message","id":"amsg_1","author":"/root/look","recipient":"/root","content":[{"type":"input_text","text":"Message Type: FINAL_ANSWER\nTask name: /root\nSender: /root/look\nPayload:\nIt is there."}]}`,
		},
		{
			Name: "an agent's task", Role: conversation.Assistant, Flags: part | pinned | opaque, Blocks: []string{`text "Message Type: NEW_TASK\nTask name: /root/look\nSender: /root\nPayload:\n"`, `opaque encrypted_content`},
			Raw: `{"type":"agent_message","id":"amsg_2","author":"/root","recipient":"/root/look","content":[{"type":"input_text","text":"Message Type: NEW_TASK\nTask name: /root/look\nSender: /root\nPayload:\n"},{"type":"encrypted_content","encrypted_content":"x"}]}`,
		},
		{Name: "configuration_update", Raw: `{"type":"configuration_update"}`, Role: conversation.System, Flags: pinned | opaque, Blocks: []string{`opaque configuration_update`}},
		{Name: "an item of the future", Raw: `{"type":"future_item","n":12345678901234567890}`, Role: conversation.Assistant, Flags: part | opaque, Blocks: []string{`opaque future_item`}},
	}
}

// C5.
func same() []wiretest.Same {
	return []wiretest.Same{
		{Name: "a string, a part and the input itself", Raw: []string{
			`"hé"`,
			`{"role":"user","content":"h\u00e9"}`,
			`{"type":"message","id":"msg","status":"completed","role":"user","content":[{"type":"input_text","text":"hé"}]}`,
		}},
		{Name: "an answer with and without what the server adds", Raw: []string{
			`{"role":"assistant","content":"a"}`,
			`{"type":"message","id":"msg","status":"completed","role":"assistant","content":[{"type":"output_text","text":"a","annotations":[],"logprobs":[]}]}`,
		}},
		{Name: "a call under other ids", Raw: []string{
			`{"type":"function_call","id":"fc_1","call_id":"1","name":"n","arguments":"{\"a\":1,\"b\":2}","status":"completed"}`,
			`{"type":"function_call","call_id":"2","name":"n","arguments":"{ \"b\":2, \"a\":1 }"}`,
		}},
		{Name: "a result under other ids", Raw: []string{
			`{"type":"function_call_output","id":"fco","call_id":"1","output":"x"}`,
			`{"type":"function_call_output","call_id":"2","output":[{"type":"input_text","text":"x"}]}`,
		}},
		{Name: "a search under other ids", Raw: []string{
			`{"type":"web_search_call","id":"ws_1","status":"completed","action":{"query":"é"}}`,
			`{"type":"web_search_call","action":{"query":"\u00e9"}}`,
		}},
	}
}

func changes() []wiretest.Change {
	return []wiretest.Change{
		{Name: "the input itself", Raw: `"long"`, Text: "short", Want: `{"role":"user","content":"short"}`},
		{Name: "a string", Raw: `{"role":"user", "content":"long","n":1.0}`, Text: "short", Want: `{"role":"user", "content":"short","n":1.0}`},
		{Name: "an output", Text: "cut <é>", Raw: `{ "type":"function_call_output" ,"output" : "long", "call_id":"c1", "id":"fco"}`, Want: `{ "type":"function_call_output" ,"output" : "cut <é>", "call_id":"c1", "id":"fco"}`},
		{Name: "an output of parts", Text: "cut", Raw: `{"type":"custom_tool_call_output","call_id":"c1","output":[{"type":"input_image","image_url":"x"}]}`, Want: `{"type":"custom_tool_call_output","call_id":"c1","output":"cut"}`}, // A13
		{
			Name: "what a shell wrote keeps how it ended", Text: "cut",
			Raw:  `{"type":"shell_call_output","call_id":"c","output":[{"stdout":"a","stderr":"b","outcome":{"type":"exit","exit_code":0}},{"stdout":"c","stderr":"","outcome":{"type":"timeout"}}]}`,
			Want: `{"type":"shell_call_output","call_id":"c","output":[{"stdout":"cut","stderr":"","outcome":{"type":"timeout"}}]}`,
		},
		{Name: "an answer's text", Text: "short", Raw: `{"role":"assistant","content":[{"type":"output_text","text":"long","annotations":[{"start_index":3}],"logprobs":[1]}]}`, Want: `{"role":"assistant","content":[{"type":"output_text","text":"short","annotations":[]}]}`},
		{Name: "an image", Block: 1, Text: "[image, archived]", Raw: `{"role":"user","content":[{"type":"input_text","text":"h\u00e9"},{"type":"input_image","image_url":"x"}]}`, Want: `{"role":"user","content":[{"type":"input_text","text":"h\u00e9"},{"type":"input_text","text":"[image, archived]"}]}`}, // A13
		{Name: "arguments", Text: `{"p":1}`, Raw: `{"type":"function_call","call_id":"c","name":"w","arguments":"{\"p\":2}"}`, Want: `{"type":"function_call","call_id":"c","name":"w","arguments":"{\"p\":1}"}`},
		{Name: "a custom tool's input", Text: "free", Raw: `{"type":"custom_tool_call","call_id":"c","name":"w","input":"long"}`, Want: `{"type":"custom_tool_call","call_id":"c","name":"w","input":"free"}`},
		{Name: "an action", Text: `{"commands":[]}`, Raw: `{"type":"shell_call","call_id":"c","action":{"commands":["x"]}}`, Want: `{"type":"shell_call","call_id":"c","action":{"commands":[]}}`},
		{Name: "arguments that are no JSON", Text: `{"p":`, Raw: `{"type":"function_call","call_id":"c","name":"w","arguments":"{}"}`}, // A12
		{Name: "an action that is not an object", Text: `[1]`, Raw: `{"type":"shell_call","call_id":"c","action":{}}`},
		{Name: "a screenshot", Text: "x", Raw: `{"type":"computer_call_output","call_id":"c","output":{"type":"computer_screenshot","file_id":"f"}}`},
		{Name: "reasoning", Text: "x", Raw: `{"type":"reasoning","summary":[],"encrypted_content":"y"}`},         // A7, W40
		{Name: "a compaction", Text: "x", Raw: `{"type":"compaction","encrypted_content":"y"}`},                  // A8, W40
		{Name: "a refusal", Text: "x", Raw: `{"role":"assistant","content":[{"type":"refusal","refusal":"n"}]}`}, // A8
		{Name: "nothing left", Text: " ", Raw: `{"role":"user","content":"x"}`},                                  // A9
		{Name: "nothing left of parts", Text: "", Raw: `{"role":"user","content":[{"type":"input_text","text":"x"}]}`},
	}
}

func newMessages() []wiretest.New {
	text := func(text string) conversation.Block { return conversation.Block{Kind: conversation.Text, Text: text} }
	return []wiretest.New{
		{Name: "text", Message: conversation.Message{Role: conversation.User, Blocks: []conversation.Block{text("a"), text(""), text("b\"")}}, Want: `{"role":"user","content":"a\n\nb\""}`},
		{Name: "an answer", Message: conversation.Message{Role: conversation.Assistant, Blocks: []conversation.Block{text("a")}}, Want: `{"role":"assistant","content":"a"}`},
		{Name: "a part that was sent", Message: conversation.Message{Role: conversation.User, Blocks: []conversation.Block{text("a"), {Kind: conversation.Media, Raw: json.RawMessage(`{"type":"input_file"}`)}}}, Want: `{"role":"user","content":[{"type":"input_text","text":"a"},{"type":"input_file"}]}`},
		{Name: "a sent string with one block more", Message: extended(`{"role":"user","content":"q"}`, text("more")), Want: `{"role":"user","content":[{"type":"input_text","text":"q"},{"type":"input_text","text":"more"}]}`},
		{Name: "sent parts with one block more", Message: extended(`{"role":"assistant","content":[{"type":"output_text","text":"q\u00e9"}]}`, text("more")), Want: `{"role":"assistant","content":[{"type":"output_text","text":"q\u00e9"},{"type":"output_text","text":"more"}]}`},
		{Name: "the input itself with one block more", Message: extended(`"q"`, text("more")), Want: `{"role":"user","content":"q\n\nmore"}`},
		{Name: "an item with a block more", Message: extended(`{"type":"function_call_output","call_id":"c","output":"x"}`, text("more")), Want: ""},
		{Name: "nothing", Message: conversation.Message{Role: conversation.User}, Want: ""},
		{Name: "one of our own calls", Message: conversation.Message{Role: conversation.Assistant, Blocks: []conversation.Block{{Kind: conversation.ToolCall, Text: "{}"}}}, Want: ""},
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

func requests() []wiretest.Request {
	return []wiretest.Request{
		{Name: "little", Body: `{"input":"hi"}`, Want: wire.Request{}},
		{
			Name: "much", Body: `{"model":"m","stream":true,"max_output_tokens":100,"prompt_cache_key":"k","tools":[{}],"instructions":"be brief","input":[]}`,
			Want: wire.Request{Model: "m", Stream: true, MaxOutput: 100, SessionID: "k", SessionSource: "prompt_cache_key", Fixed: wiretest.Raws(`"be brief"`, `[{}]`)},
		},
		{Name: "a chain", Body: `{"previous_response_id":"resp_1","input":[]}`, Want: wire.Request{ReadOnly: "previous_response_id", Previous: "resp_1", SessionID: "resp_1", SessionSource: "previous_response_id"}}, // W41
		{Name: "a reference", Body: `{"input":[{"role":"user","content":"a"},{"type":"item_reference","id":"rs_1"},{"type":"item_reference","id":"msg_1"}]}`, Want: wire.Request{Refers: true}},
		{Name: "a reference to a call", Body: `{"input":[{"role":"user","content":"a"},{"type":"item_reference","id":"fc_1"}]}`, Want: wire.Request{Refers: true, ReadOnly: "item_reference"}}, // W41
		{Name: "only talk of a reference", Body: `{"input":[{"role":"user","content":"what is an item_reference?"}]}`, Want: wire.Request{}},
		{Name: "a stored answer alone does not freeze", Body: `{"store":true,"input":[{"role":"user","content":"a"}]}`, Want: wire.Request{}},                                           // W41
		{Name: "a conversation", Body: `{"conversation":{"id":"conv_1"},"input":[]}`, Want: wire.Request{ReadOnly: "conversation", SessionID: "conv_1", SessionSource: "conversation"}}, // W41
		{Name: "neither", Body: `{"conversation":null,"previous_response_id":null,"input":[]}`, Want: wire.Request{}},
	}
}

func faults() []wiretest.Fault {
	return []wiretest.Fault{
		{Name: "no input", Body: `{"messages":[]}`, Error: "input: missing"},
		{Name: "input is an object", Body: `{"input":{}}`, Error: "input: expected a string or an array"},
		{Name: "model", Body: `{"model":{},"input":[]}`, Error: "model: expected a string"},
		{Name: "stream", Body: `{"stream":"true","input":[]}`, Error: "stream: expected true or false"},
		{Name: "max_output_tokens", Body: `{"max_output_tokens":[],"input":[]}`, Error: "max_output_tokens: expected a whole number"},
		{Name: "tools", Body: `{"tools":{},"input":[]}`, Error: "tools: expected an array"},
		{Name: "instructions", Body: `{"instructions":7,"input":[]}`, Error: "instructions: expected a string"},
	}
}
