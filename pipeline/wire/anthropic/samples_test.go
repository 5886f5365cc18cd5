package anthropic_test

import (
	"encoding/json"
	"strings"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/wire"
	"palimpsest/pipeline/wire/wiretest"
)

func samples() wiretest.Samples {
	return wiretest.Samples{
		Body:      `{ "model":"claude-opus-5-5" , "max_tokens":1.0,"x":1e400, "messages": %s, "x" : [ 1.0 ],"h\u00e9":null }`,
		Messages:  append(messages(), rarer()...),
		Appends:   appends(),
		Instructs: instructs(),
		Same:      same(),
		Distinct: []string{
			`{"role":"user","content":"a"}`,
			`{"role":"assistant","content":"a"}`,
			`{"role":"user","content":"b"}`,
			`{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`,
			`{"role":"user","content":[{"type":"text","text":"a3:b"}]}`,
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"a"}]}`,
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"a","is_error":true}]}`,
			`{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"n","input":{"id":1}}]}`,
			`{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"n","input":{"id":2}}]}`,
			`{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"m","input":{"id":1}}]}`,
			`{"role":"user","content":[{"type":"image","source":{"type":"url","url":"https://a"}}]}`,
			`{"role":"user","content":[{"type":"image","source":{"type":"url","url":"https://b"}}]}`,
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"image","source":{"type":"url","url":"https://a"}}]}]}`,
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"image","source":{"type":"url","url":"https://b"}}]}]}`,
		},
		Changes:  changes(),
		New:      newMessages(),
		Requests: requests(),
		Faults:   faults(),
		Answers:  answers(),
		Problem:  `{"type":"error","error":{"type":"authentication_error","message":"unknown key <plm_…>: create one","details":{"error_code":"invalid_api_key"}},"request_id":"req_1"}`,
	}
}

func messages() []wiretest.Message {
	return []wiretest.Message{
		{
			Name: "typed text as a string", Raw: `{"role":"user", "content":"h\u00e9llo \ud83d\ude00","n":1.0, "n":1e400}`,
			Role: conversation.User, Flags: conversation.HasTyped, Blocks: []string{`text "héllo 😀"`},
		},
		{
			Name: "a reminder alone", Raw: `{"role":"user","content":[{"type":"text","text":"<system-reminder>\nbe brief\n</system-reminder>\n"}]}`,
			Role: conversation.User, Blocks: []string{`text "<system-reminder>\nbe brief\n</system-reminder>\n"`},
		},
		{
			Name: "parallel calls with thinking", // A2
			Raw:  `{"role":"assistant","content":[ {"type":"thinking","thinking":"","signature":"c2ln"},{"type":"text","text":"I look."},{"type":"tool_use","id":"t1","name":"Read","input":{"n":1.0,"b":[ 1e400 ]},"toolset_name":"s"} ,{"type":"tool_use","id":"t2","name":"Read","input":{}}]}`,
			Role: conversation.Assistant, Flags: conversation.HasThinking | conversation.HasCall,
			Blocks: []string{`thinking`, `text "I look."`, `tool_call t1 Read "{\"n\":1.0,\"b\":[ 1e400 ]}"`, `tool_call t2 Read "{}"`},
		},
		{
			Name: "results, typed text and an image in one message", // A3
			Raw: `{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","is_error":true,"toolset_name":"s","cache_control":{"type":"ephemeral","ttl":"1h"},"content":[{"type":"text","text":"one"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"aGVsbG8="}},{"type":"text","text":"two","cache_control":{"type":"ephemeral"}}]},` +
				`{"tool_use_id":"t2","type":"tool_result","content":"<x>"},{"type":"text","text":"and now?"},{"type":"image","source":{"type":"url","url":"https://x"}}]}`,
			Role: conversation.User, Flags: conversation.HasResult | conversation.HasTyped | conversation.HasMedia,
			Blocks: []string{`tool_result t1 error "one\ntwo" [image/png 5]`, `tool_result t2 "<x>"`, `text "and now?"`, `media [image 0]`},
		},
		{
			Name: "a result without content", Raw: `{"role":"user","content":[{"type":"tool_result","tool_use_id":"t3"}]}`,
			Role: conversation.User, Flags: conversation.HasResult, Blocks: []string{`tool_result t3`},
		},
		{
			Name: "server tools stay opaque", // A8
			Raw:  `{"role":"assistant","content":[{"type":"redacted_thinking","data":"eA=="},{"type":"server_tool_use","id":"s1","name":"web_search","input":{}},{"type":"web_search_tool_result","tool_use_id":"s1","content":[{"encrypted_content":"x"}]},{"type":"future_block","n":12345678901234567890}]}`,
			Role: conversation.Assistant, Flags: conversation.HasThinking | conversation.HasOpaque,
			Blocks: []string{`thinking`, `opaque s1 server_tool_use`, `opaque s1 web_search_tool_result`, `opaque future_block`},
		},
		{
			Name: "a system message in the middle", // W32
			Raw:  `{"role":"system","content":[{"type":"text","text":"tools changed"},{"type":"tool_addition","tools":["x"]}],"output_config":{"effort":"high"}}`,
			Role: conversation.System, Flags: conversation.IsPinned | conversation.HasOpaque,
			Blocks: []string{`text "tools changed"`, `opaque tool_addition`},
		},
		{
			Name: "a plain system message in the middle", // W32
			Raw:  `{"role":"system","content":[{"type":"text","text":"be brief","cache_control":{"type":"ephemeral"}}]}`,
			Role: conversation.System, Blocks: []string{`text "be brief"`},
		},
		{
			Name: "a system message that is taken back later", // W32
			Raw:  `{"role":"system","content":"be brief","clear_at":"2026-12-01T00:00:00Z"}`,
			Role: conversation.System, Flags: conversation.IsPinned, Blocks: []string{`text "be brief"`},
		},
		{
			Name: "a call of a kind of the future",
			Raw:  `{"role":"assistant","content":[{"type":"hologram_use","id":"h1","shape":"x"}]}`,
			Role: conversation.Assistant, Flags: conversation.HasCall | conversation.HasOpaque, Blocks: []string{`tool_call h1 hologram_use`},
		},
		{
			Name: "the result of such a call",
			Raw:  `{"role":"user","content":[{"type":"hologram_result","tool_use_id":"h1","shape":"x"}]}`,
			Role: conversation.User, Flags: conversation.HasResult | conversation.HasOpaque, Blocks: []string{`tool_result h1 hologram_result`},
		},
		{
			Name: "a compaction block", // W37
			Raw:  `{"role":"assistant","content":[{"type":"compaction","content":"short","signature":"s"}]}`,
			Role: conversation.Assistant, Flags: conversation.IsPinned | conversation.IsBoundary | conversation.HasOpaque, Blocks: []string{`opaque compaction`},
		},
		{
			Name: "a document", Raw: `{"role":"user","content":[{"type":"document","source":{"type":"text","media_type":"text/plain","data":"hello"},"title":"t"}]}`,
			Role: conversation.User, Flags: conversation.HasMedia, Blocks: []string{`media [text/plain 5]`},
		},
		{
			Name: "a role of the future", Raw: `{"role":"narrator","content":"once"}`,
			Role: conversation.User, Flags: conversation.HasOpaque | conversation.IsPinned, Blocks: []string{`opaque`},
		},
		{
			Name: "no content", Raw: `{"role":"assistant","content":null}`,
			Role: conversation.Assistant, Flags: conversation.HasOpaque, Blocks: []string{`opaque`},
		},
	}
}

// W35, W36.
func rarer() []wiretest.Message {
	call := func(kind, id string) string { return `{"type":"` + kind + `","id":"` + id + `","name":"n","input":{}}` }
	result := func(kind, id string) string {
		return `{"type":"` + kind + `","tool_use_id":"` + id + `","content":[{"type":"text","text":"x"}]}`
	}
	const opaque = conversation.HasOpaque
	message := func(role string, blocks ...string) string {
		return `{"role":"` + role + `","content":[` + strings.Join(blocks, ",") + `]}`
	}
	return []wiretest.Message{
		{Name: "MCP calls with their results", Raw: message("assistant", call("mcp_tool_use", "m1"), result("mcp_tool_result", "m1")), Role: conversation.Assistant, Flags: opaque, Blocks: []string{`opaque m1 mcp_tool_use`, `opaque m1 mcp_tool_result`}},
		{Name: "a call that the provider is still to answer", Raw: message("assistant", call("server_tool_use", "s1"), result("web_fetch_tool_result", "s1"), call("server_tool_use", "s2")), Role: conversation.Assistant, Flags: opaque | conversation.HasPending, Blocks: []string{`opaque s1 server_tool_use`, `opaque s1 web_fetch_tool_result`, `opaque s2 server_tool_use`}},
		{Name: "the answer to a call of an earlier message", Raw: message("assistant", result("bash_code_execution_tool_result", "s2"), `{"type":"text","text":"ok"}`), Role: conversation.Assistant, Flags: opaque | conversation.HasSettled, Blocks: []string{`opaque s2 bash_code_execution_tool_result`, `text "ok"`}},
		{Name: "one answered, one asked", Raw: message("assistant", result("web_search_tool_result", "s2"), call("server_tool_use", "s3")), Role: conversation.Assistant, Flags: opaque | conversation.HasSettled | conversation.HasPending, Blocks: []string{`opaque s2 web_search_tool_result`, `opaque s3 server_tool_use`}},
		{Name: "tools that the provider found", Raw: message("assistant", call("server_tool_use", "s1"), `{"type":"tool_search_tool_result","tool_use_id":"s1","content":{}}`), Role: conversation.Assistant, Flags: opaque | conversation.LoadsTools, Blocks: []string{`opaque s1 server_tool_use`, `opaque s1 tool_search_tool_result`}},
		{Name: "tools that the client found", Raw: message("user", `{"type":"tool_result","tool_use_id":"t1","content":[{"type":"tool_reference","tool_name":"Later"}]}`), Role: conversation.User, Flags: conversation.HasResult | conversation.HasMedia | conversation.LoadsTools, Blocks: []string{`tool_result t1 [tool_reference 0]`}},
		{Name: "an MCP server's tools", Raw: message("assistant", `{"type":"mcp_tool_listing","mcp_server_name":"s","tools":[]}`), Role: conversation.Assistant, Flags: opaque | conversation.LoadsTools, Blocks: []string{`opaque mcp_tool_listing`}},
		{Name: "a change of models", Raw: message("assistant", `{"type":"text","text":"a"}`, `{"type":"fallback","from":{},"to":{}}`, `{"type":"text","text":"b"}`), Role: conversation.Assistant, Flags: opaque, Blocks: []string{`text "a"`, `opaque fallback`, `text "b"`}},
		{
			Name: "files of the user", Role: conversation.User, Flags: conversation.HasTyped | conversation.HasMedia | opaque,
			Raw:    message("user", `{"type":"container_upload","file_id":"f"}`, `{"type":"image","source":{"type":"file","file_id":"f"}}`, `{"type":"search_result","source":"https://x","title":"t","content":[{"type":"text","text":"x"}]}`, `{"type":"text","text":"see"}`),
			Blocks: []string{`opaque container_upload`, `media [image 0]`, `media [search_result 0]`, `text "see"`},
		},
		{Name: "a result with the state of a browser", Raw: message("user", `{"type":"tool_result","tool_use_id":"t1","toolset_name":"browser","content":[{"type":"text","text":"a"},{"type":"browser_state","tabs":[]}]}`), Role: conversation.User, Flags: conversation.HasResult | conversation.HasMedia, Blocks: []string{`tool_result t1 "a" [browser_state 0]`}},
		{Name: "an answer with citations", Raw: message("assistant", `{"type":"text","text":"a","citations":[{"type":"char_location","document_index":0}]}`), Role: conversation.Assistant, Blocks: []string{`text "a"`}},
	}
}

// C5.
func same() []wiretest.Same {
	return []wiretest.Same{
		{Name: "a string and a block", Raw: []string{
			`{"role":"user","content":"hé"}`,
			`{"content":[{"text":"h\u00e9","type":"text"}],"role":"user"}`,
			`{"role":"user","content":[{"type":"text","text":"hé","cache_control":{"type":"ephemeral"}}]}`,
			`{"role":"user","content":[{"type":"text","text":"<system-reminder>x</system-reminder>"},{"type":"text","text":"hé\n"}]}`,
			`{"role":"user","content":"hé\n<system-reminder>\nthe date\n</system-reminder>"}`,
		}},
		{Name: "calls under other ids, with and without thinking", Raw: []string{
			`{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"tool_use","id":"t1","name":"n","input":{"b":1,"a":"\u00e9"}}]}`,
			`{"role":"assistant","content":[{"type":"tool_use","id":"t2","name":"n","input":{"a":"é", "b":1},"cache_control":{"type":"ephemeral"}}]}`,
		}},
		{Name: "results under other ids", Raw: []string{
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"x"}]}`,
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t2","is_error":false,"content":[{"type":"text","text":"x","cache_control":{"type":"ephemeral"}}]}]}`,
		}},
		{Name: "opaque blocks under other ids", Raw: []string{
			`{"role":"assistant","content":[{"type":"server_tool_use","id":"s1","name":"web_search","input":{"q":1}}]}`,
			`{"role":"assistant","content":[{"input":{"q":1},"type":"server_tool_use","id":"s2","name":"web_search","cache_control":null}]}`,
		}},
	}
}

func changes() []wiretest.Change {
	return []wiretest.Change{
		{
			Name: "a string", Raw: `{ "role":"user" ,"content" : "long", "x":1.0}`, Text: "é<\n",
			Want: `{ "role":"user" ,"content" : "é<\n", "x":1.0}`,
		},
		{
			Name: "a result keeps its id, error mark and toolset and loses its marker", Block: 1, Text: "cut",
			Raw:  `{"role":"user","content":[{"type":"tool_result","tool_use_id":"t0","content":"\u00e9"}, {"is_error":true,"cache_control":{"type":"ephemeral"},"content":[{"type":"text","text":"long","cache_control":{"type":"ephemeral"}},{"type":"image","source":{}}],"type":"tool_result","tool_use_id":"t1","toolset_name":"s"}]}`,
			Want: `{"role":"user","content":[{"type":"tool_result","tool_use_id":"t0","content":"\u00e9"},{"is_error":true,"content":"cut","type":"tool_result","tool_use_id":"t1","toolset_name":"s"}]}`,
		},
		{
			Name: "a result without content gets one", Text: "cut",
			Raw:  `{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1"}]}`,
			Want: `{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"cut"}]}`,
		},
		{
			Name: "a result without text has no content", Text: " \n", // A9
			Raw:  `{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"x"}]}`,
			Want: `{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1"}]}`,
		},
		{
			Name: "an image becomes a text", Text: "[image/png, archived]", // A13
			Raw:  `{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"aGVsbG8="}},{"type":"text","text":"see"}]}`,
			Want: `{"role":"user","content":[{"type":"text","text":"[image/png, archived]"},{"type":"text","text":"see"}]}`,
		},
		{
			Name: "a text without text goes", Text: "", // A9
			Raw:  `{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`,
			Want: `{"role":"user","content":[{"type":"text","text":"b"}]}`,
		},
		{
			Name: "a call's arguments", Text: `{"path":"a"}`,
			Raw:  `{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"Write","input":{"path":"a","text":"long"},"cache_control":{"type":"ephemeral"}}]}`,
			Want: `{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"Write","input":{"path":"a"}}]}`,
		},
		{Name: "arguments that are no object", Text: `{"path":"a`, Raw: `{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"Write","input":{}}]}`}, // A12
		{Name: "thinking", Text: "short", Raw: `{"role":"assistant","content":[{"type":"thinking","thinking":"long","signature":"s"}]}`},                           // A7
		{Name: "opaque", Text: "short", Raw: `{"role":"assistant","content":[{"type":"server_tool_use","id":"s"}]}`},                                               // A8
		{Name: "a whole opaque message", Text: "short", Raw: `{"role":"assistant","content":null}`},
		{Name: "nothing left", Text: " ", Raw: `{"role":"user","content":"x"}`}, // A9
		{Name: "nothing left of blocks", Text: "", Raw: `{"role":"user","content":[{"type":"text","text":"x"}]}`},
	}
}

func newMessages() []wiretest.New {
	text := func(texts ...string) []conversation.Block {
		var blocks []conversation.Block
		for _, text := range texts {
			blocks = append(blocks, conversation.Block{Kind: conversation.Text, Text: text})
		}
		return blocks
	}
	return []wiretest.New{
		{Name: "text", Message: conversation.Message{Role: conversation.User, Blocks: text("a \"b\"", " ", "c")}, Want: `{"role":"user","content":[{"type":"text","text":"a \"b\""},{"type":"text","text":"c"}]}`},
		{Name: "a block that was sent", Message: conversation.Message{Role: conversation.Assistant, Blocks: append(text("a"), conversation.Block{Kind: conversation.Opaque, Raw: json.RawMessage(`{"type":"x"}`)})}, Want: `{"role":"assistant","content":[{"type":"text","text":"a"},{"type":"x"}]}`},
		{Name: "a sent message with one block more", Message: conversation.Message{Role: conversation.User, Raw: json.RawMessage(`{"role":"user","content":"q"}`), Changed: true, Blocks: text("q", "more")}, Want: `{"role":"user","content":[{"type":"text","text":"q"},{"type":"text","text":"more"}]}`},
		{Name: "thinking left out", Message: withoutFirst(`{"role":"assistant","content":[{"type":"thinking","thinking":"x","signature":"s"},{"type":"text","text":"h\u00e9"}]}`), Want: `{"role":"assistant","content":[{"type":"text","text":"h\u00e9"}]}`},
		{Name: "nothing", Message: conversation.Message{Role: conversation.User, Blocks: text(" ")}, Want: ""},
		{Name: "a result of nothing", Message: conversation.Message{Role: conversation.User, Blocks: []conversation.Block{{Kind: conversation.ToolResult, ID: "t", Text: "x"}}}, Want: ""},
	}
}

// withoutFirst returns a message of which the first block was left out.
func withoutFirst(raw string) conversation.Message {
	message, err := codec().Parse(json.RawMessage(raw))
	if err != nil {
		panic(err)
	}
	message.Blocks, message.Changed = message.Blocks[1:], true
	return message
}

func requests() []wiretest.Request {
	return []wiretest.Request{
		{Name: "little", Body: `{"messages":[]}`, Want: wire.Request{}},
		{
			Name: "much", Body: `{"model":"m","stream":true,"max_tokens":32000,"cache_control":{"type":"ephemeral"},"metadata":{"user_id":"user_1_account__session_s-1"},` +
				`"tools":[{"name":"a","input_schema":{"cache_control":1}},{"name":"b","cache_control":{"type":"ephemeral","ttl":"1h"}}],"system":[{"type":"text","text":"x","cache_control":{"type":"ephemeral","ttl":"1h"}}],"messages":[]}`,
			Want: wire.Request{
				Model: "m", Stream: true, MaxOutput: 32000, Markers: 3, MarkerTTL: "5m", SessionID: "s-1", SessionSource: "metadata.user_id", EndUser: "user_1_account_",
				Fixed: wiretest.Raws(`[{"type":"text","text":"x","cache_control":{"type":"ephemeral","ttl":"1h"}}]`,
					`[{"name":"a","input_schema":{"cache_control":1}},{"name":"b","cache_control":{"type":"ephemeral","ttl":"1h"}}]`),
			},
		},
		{Name: "system as a string", Body: `{"system":"s","messages":[],"stream":null}`, Want: wire.Request{Fixed: wiretest.Raws(`"s"`)}},
		{Name: "a thread begins", Body: `{"thread":{"type":"create"},"messages":[]}`, Want: wire.Request{Thread: wire.Thread{Holds: "thread"}}},                                                    // W37
		{Name: "a thread goes on", Body: `{"thread":{"type":"continue","previous_message_id":"msg_1"},"messages":[]}`, Want: wire.Request{ReadOnly: "thread", Thread: wire.Thread{Resumes: true}}}, // W37
		{Name: "another kind of thread", Body: `{"thread":{"type":"branch"},"messages":[]}`, Want: wire.Request{ReadOnly: "thread"}},
		{Name: "a thread that is a string", Body: `{"thread":"continue","messages":[]}`, Want: wire.Request{ReadOnly: "thread"}},
		{Name: "no thread", Body: `{"thread":null,"messages":[]}`, Want: wire.Request{}},
		{Name: "compaction", Body: `{"compaction":{"type":"summarize"},"messages":[]}`, Want: wire.Request{ReadOnly: "compaction"}},
		{Name: "fallback", Body: `{"fallback_credit_token":"x","messages":[]}`, Want: wire.Request{Repeats: true}},
		{Name: "no fallback", Body: `{"fallback_credit_token":null,"resumption":{"type":"enabled"},"messages":[]}`, Want: wire.Request{}},
		{Name: "resumption", Body: `{"resumption":{"type":"enabled","token":"t"},"messages":[]}`, Want: wire.Request{Repeats: true}},
		{Name: "strict binding", Body: `{"thinking":{"type":"adaptive","block_binding":{"prefix_mismatch_behavior":"error"}},"messages":[]}`, Want: wire.Request{ReadOnly: "thinking.block_binding"}},                                                // W31
		{Name: "a compaction block first", Body: `{"messages":[{"role":"user","content":[{"type":"compaction","content":"x"},{"type":"text","text":"a"}]}]}`, Want: wire.Request{ReadOnly: "compaction_block"}},                                      // W37
		{Name: "a compaction block of the assistant's", Body: `{"messages":[{"role":"assistant","content":[{"type":"compaction","content":"x","signature":"s"}]},{"role":"user","content":"a"}]}`, Want: wire.Request{ReadOnly: "compaction_block"}}, // W37
		{Name: "a compaction block later on", Body: `{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"compaction","content":"x"}]}]}`, Want: wire.Request{}},
		{Name: "what the server edits itself", Body: `{"context_management":{"edits":[{"type":"compact_20260112"}]},"container":"c","mcp_servers":[],"compaction":null,"messages":[]}`, Want: wire.Request{}},
		{Name: "lenient binding", Body: `{"thinking":{"type":"adaptive","block_binding":{"prefix_mismatch_behavior":"drop_block"}},"messages":[]}`, Want: wire.Request{}},
	}
}

func faults() []wiretest.Fault {
	return []wiretest.Fault{
		{Name: "no messages", Body: `{"model":"m"}`, Error: "messages: missing"},
		{Name: "messages are a string", Body: `{"messages":"hi"}`, Error: "messages: expected an array"},
		{Name: "messages are an object", Body: `{"messages":{}}`, Error: "messages: expected an array"},
		{Name: "model", Body: `{"model":7,"messages":[]}`, Error: "model: expected a string"},
		{Name: "stream", Body: `{"stream":"yes","messages":[]}`, Error: "stream: expected true or false"},
		{Name: "max_tokens", Body: `{"max_tokens":"7","messages":[]}`, Error: "max_tokens: expected a whole number"},
		{Name: "system", Body: `{"system":{},"messages":[]}`, Error: "system: expected a string or an array"},
		{Name: "tools", Body: `{"tools":{},"messages":[]}`, Error: "tools: expected an array"},
		{Name: "thinking", Body: `{"thinking":"on","messages":[]}`, Error: "thinking: expected an object"},
		{Name: "no JSON", Body: `{"messages":[}`, Error: "not valid JSON at byte 13"},
	}
}
