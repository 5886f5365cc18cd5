package ipc_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"palimpsest/api/upstream/providerdouble"
	"palimpsest/pipeline"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/fulltest"
	"palimpsest/pipeline/pipelinetest"
	"palimpsest/pipeline/wire"
)

// stranger is a kind of block or message that stands in every turn of a session. In its
// texts %[1]d is the turn's number.
type stranger struct {
	name      string
	answer    string // blocks or items in front of the call
	content   string // of the tool's result, in place of its text
	beside    string // blocks behind the tool's result
	behind    string // messages or items behind the tool's result
	refused   bool   // no provider knows it: what goes out is not judged
	protected bool   // it may take the last rungs to get rid of it
}

// A16: whatever stands in every turn of a long session, in every format, pins no more
// than itself: the prompt gets below its target. An item reference is no stranger: it says
// that the provider keeps the history, which is then not edited at all.
func TestNoKindOfBlockOrMessagePinsMoreThanItself(t *testing.T) {
	t.Parallel()
	for format, kinds := range map[conversation.Format][]stranger{
		conversation.Anthropic: anthropicStrangers(), conversation.OpenAIChat: chatStrangers(), conversation.OpenAIResponses: responsesStrangers(),
	} {
		for i := range fulltest.Part(len(kinds)) {
			kind := kinds[i]
			t.Run(string(format)+"/"+kind.name, func(t *testing.T) {
				t.Parallel()
				goPastWindow(t, format, kind)
			})
		}
	}
}

// goPastWindow grows a session with a stranger in each turn far past its window.
func goPastWindow(t *testing.T, format conversation.Format, kind stranger) {
	t.Helper()
	const turns, limit = 70, 8_000
	lane := newLane(t, limit, small)
	lane.Codec = codecs()[format]
	double := providerdouble.NewHandler(providerdouble.Config{Window: 10_000_000, AllowUnknown: true})
	messages := []string{`{"role":"user","content":"Do the work."}`}
	for turn := range turns {
		messages = append(messages, strangeTurn(format, kind, turn)...)
		body := fmt.Appendf(nil, `{"model":"claude-opus-4-8","max_tokens":1000,%q:[%s]}`, lane.Codec.List(), strings.Join(messages, ","))
		double.Trust(body)
		if err := double.Validate(string(format), body); err != nil && !kind.refused {
			t.Fatalf("the session itself is refused: %v", err)
		}
		exchange, sealed := lane.Send(t, body)
		if err := double.Validate(string(format), sealed); err != nil && !kind.refused {
			t.Fatalf("turn %d is refused: %v\n%s", turn, err, sealed)
		}
		if err := pipelinetest.CheckProjection(exchange); err != nil {
			t.Fatal(err)
		}
		if after := exchange.Report.After; after > limit || exchange.Report.Compression == pipeline.Unreachable && !kind.protected {
			t.Fatalf("turn %d has %d of %d tokens: %+v", turn, after, limit, exchange.Report)
		}
		liftsAtMost(t, exchange, kind)
	}
	if lane.Epochs == 0 {
		t.Error("nothing was compacted")
	}
}

// liftsAtMost fails a test whose prompt took a rung that its kind should not need.
func liftsAtMost(t *testing.T, exchange *pipeline.Exchange, kind stranger) {
	t.Helper()
	lifted := slices.ContainsFunc(exchange.Report.Events, func(event pipeline.ReportEntry) bool { return event.Type == "protection_lifted" })
	if lifted && !kind.protected {
		t.Fatalf("a rule was lifted for it: %+v", exchange.Report.Events)
	}
}

// strangeTurn returns the messages of a turn.
func strangeTurn(format conversation.Format, kind stranger, turn int) []string {
	fill := func(text string) string {
		if text == "" || !strings.Contains(text, "%[1]d") {
			return text
		}
		return fmt.Sprintf(text, turn)
	}
	text := quoted(fmt.Sprintf("%d: %s", turn, words(300)))
	result, said := fill(kind.content), ""
	if result == "" {
		result = text
	} else {
		said = text
	}
	join := func(texts ...string) string {
		return strings.Join(slices.DeleteFunc(texts, func(text string) bool { return text == "" }), ",")
	}
	var list []string
	switch format {
	case conversation.Anthropic:
		call := fmt.Sprintf(`{"type":"tool_use","id":"toolu_%d","name":"Bash","input":{"command":"go test ./%d"}}`, turn, turn)
		if said != "" {
			said = `{"type":"text","text":` + said + `}`
		}
		answer := fmt.Sprintf(`{"type":"tool_result","tool_use_id":"toolu_%d","content":%s}`, turn, result)
		list = []string{
			`{"role":"assistant","content":[` + join(said, fill(kind.answer), call) + `]}`,
			`{"role":"user","content":[` + join(answer, fill(kind.beside)) + `]}`,
		}
	case conversation.OpenAIChat:
		if said != "" {
			said = `"content":` + said + `,`
		}
		list = []string{
			fmt.Sprintf(`{"role":"assistant",%s"tool_calls":[{"id":"call_%d","type":"function","function":{"name":"run","arguments":"{}"}}]}`, said+fill(kind.answer), turn),
			fmt.Sprintf(`{"role":"tool","tool_call_id":"call_%d","content":%s}`, turn, result),
		}
	default:
		list = []string{join(fill(kind.answer),
			fmt.Sprintf(`{"type":"function_call","call_id":"call_%d","name":"run","arguments":"{}"}`, turn),
			fmt.Sprintf(`{"type":"function_call_output","call_id":"call_%d","output":%s}`, turn, result))}
	}
	if behind := fill(kind.behind); behind != "" {
		list = append(list, behind)
	}
	return list
}

func system(content string) string { return `{"role":"system","content":` + content + `}` }

func served(kind, result string) string {
	return `{"type":"server_tool_use","id":"srvtoolu_%[1]d","name":"` + kind + `","input":{}},{"type":"` + kind + `_tool_result","tool_use_id":"srvtoolu_%[1]d","content":` + result + `}`
}

func anthropicStrangers() []stranger {
	reference := `{"type":"tool_reference","tool_name":"Later%[1]d"}`
	return []stranger{
		{name: "tokens left", behind: system(quoted("<system-reminder>\n<total_tokens>%[1]d tokens left</total_tokens>\n</system-reminder>"))},
		{name: "to-do list", behind: system(quoted("<system-reminder>\nYour to-do list has changed:\n- item %[1]d\n</system-reminder>"))},
		{name: "free text that is never the same", behind: system(quoted("From step %[1]d on answer in %[1]d words."))},
		{name: "text with a cache marker", behind: system(`[{"type":"text","text":"Plan mode is on."}]`)},
		{name: "tool_addition", behind: system(`[{"type":"tool_addition","tools":[` + reference + `]}]`)},
		{name: "tool_removal", behind: system(`[{"type":"tool_removal","tools":[{"type":"tool_reference","tool_name":"Old"}]}]`)},
		{name: "clear_at", behind: `{"role":"system","content":"Be brief.","clear_at":"2026-12-01T00:00:00Z"}`},
		{name: "output_config", behind: `{"role":"system","content":"Think.","output_config":{"effort":"high"}}`},
		{name: "an invented block for the system", behind: system(`[{"type":"hologram","shape":"x"}]`)},
		{name: "an invented role", behind: `{"role":"narrator","content":"once %[1]d"}`, refused: true},
		{name: "reminder beside a result", beside: `{"type":"text","text":"<system-reminder>\nbe brief\n</system-reminder>"}`},
		{name: "typed text beside a result", beside: `{"type":"text","text":"Go on with %[1]d."}`},
		{name: "image beside a result", beside: `{"type":"image","source":{"type":"url","url":"https://example.com/%[1]d.png"}}`},
		{name: "search result beside a result", beside: `{"type":"search_result","source":"https://example.com","title":"t","content":[{"type":"text","text":"found %[1]d"}]}`},
		{name: "container upload", beside: `{"type":"container_upload","file_id":"file_%[1]d"}`},
		{name: "an invented block beside a result", beside: `{"type":"hologram","shape":"x%[1]d"}`},
		{name: "tools found by the client", content: "[" + reference + "]", protected: true},
		{name: "the same tool found again", content: `[{"type":"tool_reference","tool_name":"Later"}]`},
		{name: "image in a result", content: `[{"type":"text","text":"before"},{"type":"image","source":{"type":"url","url":"https://example.com/%[1]d.png"}}]`},
		{name: "document in a result", content: `[{"type":"document","source":{"type":"text","media_type":"text/plain","data":"hello %[1]d"}}]`},
		{name: "an invented part in a result", content: `[{"type":"hologram","shape":"x%[1]d"}]`},
		{name: "text", answer: `{"type":"text","text":"Step %[1]d."}`},
		{name: "web search", answer: served("web_search", `[{"type":"web_search_result","url":"https://example.com","title":"t","encrypted_content":"eA==","page_age":null}]`)},
		{name: "web fetch", answer: served("web_fetch", `{"type":"web_fetch_tool_error","error_code":"unavailable"}`)},
		{name: "code execution", answer: served("bash_code_execution", `{"type":"bash_code_execution_result","stdout":"x","stderr":"","return_code":0,"content":[]}`)},
		{name: "advisor", answer: served("advisor", `{"type":"advisor_result","text":"x"}`)},
		{name: "tools found by the provider", protected: true, answer: `{"type":"server_tool_use","id":"srvtoolu_%[1]d","name":"tool_search_tool_regex","input":{"pattern":"x"}},` +
			`{"type":"tool_search_tool_result","tool_use_id":"srvtoolu_%[1]d","content":{"type":"tool_search_tool_search_result","tool_references":[` + reference + `]}}`},
		{name: "MCP call", answer: `{"type":"mcp_tool_use","id":"mcptoolu_%[1]d","name":"echo","server_name":"local","input":{}},` +
			`{"type":"mcp_tool_result","tool_use_id":"mcptoolu_%[1]d","is_error":false,"content":[{"type":"text","text":"x"}]}`},
		{name: "MCP tools", answer: `{"type":"mcp_tool_listing","mcp_server_name":"s","tools":[]}`},
		{name: "fallback", answer: `{"type":"fallback","from":{"model":"a"},"to":{"model":"b"}}`},
		{name: "an invented block in an answer", answer: `{"type":"hologram","shape":"x%[1]d"}`},
		{name: "an invented call", answer: `{"type":"hologram_use","id":"h%[1]d","shape":"x"}`, beside: `{"type":"hologram_result","tool_use_id":"h%[1]d","shape":"x"}`},
	}
}

func chatStrangers() []stranger {
	return []stranger{
		{name: "developer text", behind: `{"role":"developer","content":"The mode is on."}`},
		{name: "system text that is never the same", behind: `{"role":"system","content":"Step %[1]d: answer in %[1]d words."}`},
		{name: "system message with a name", behind: `{"role":"system","name":"s","content":"Be brief."}`},
		{name: "user text", behind: `{"role":"user","content":"Go on with %[1]d."}`},
		{name: "environment", behind: `{"role":"user","content":"<environment_context>%[1]d</environment_context>"}`},
		{name: "image", behind: `{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://example.com/%[1]d.png"}}]}`},
		{name: "file", behind: `{"role":"user","content":[{"type":"file","file":{"file_id":"file-%[1]d"}}]}`},
		{name: "an invented part", behind: `{"role":"user","content":[{"type":"hologram","shape":"x%[1]d"}]}`},
		{name: "an invented role", behind: `{"role":"narrator","content":"once %[1]d"}`, refused: true},
		{name: "an invented member", answer: `"hologram":"x%[1]d","content":null,`},
		{name: "refusal", answer: `"refusal":"I will not.","content":null,`},
		{name: "reasoning", answer: `"reasoning_content":"I think %[1]d","content":null,`},
		{name: "sealed reasoning", answer: `"reasoning_details":[{"type":"reasoning.encrypted","data":"eA=="}],"content":null,`},
		{name: "text", answer: `"content":"Step %[1]d.",`},
		{name: "parts in a result", content: `[{"type":"text","text":"x%[1]d"}]`},
		{name: "an invented part in a result", content: `[{"type":"hologram","shape":"x%[1]d"}]`},
	}
}

func responsesStrangers() []stranger {
	item := func(kind, members string) string { return `{"type":"` + kind + `",` + members + `}` }
	return []stranger{
		{name: "developer text", behind: `{"role":"developer","content":"The mode is on."}`},
		{name: "developer text that is never the same", behind: `{"role":"developer","content":"Step %[1]d: answer in %[1]d words."}`},
		{name: "user text", behind: `{"role":"user","content":"Go on with %[1]d."}`},
		{name: "an invented role", behind: `{"role":"narrator","content":"once %[1]d"}`, refused: true},
		{name: "an invented part", behind: `{"role":"user","content":[{"type":"hologram","shape":"x%[1]d"}]}`},
		{name: "reasoning", answer: item("reasoning", `"summary":[],"encrypted_content":"eA=="`)},
		{name: "compaction", behind: item("compaction", `"encrypted_content":"eA%[1]d"`), protected: true},
		{name: "web search", answer: item("web_search_call", `"id":"ws_%[1]d","status":"completed","action":{"type":"search","query":"x"}`)},
		{name: "file search", answer: item("file_search_call", `"id":"fs_%[1]d","status":"completed","queries":["x"],"results":null`)},
		{name: "code interpreter", answer: item("code_interpreter_call", `"id":"ci_%[1]d","container_id":"c","code":"1","outputs":[],"status":"completed"`)},
		{name: "image generation", answer: item("image_generation_call", `"id":"ig_%[1]d","result":"eA==","status":"completed"`)},
		{name: "MCP tools", answer: item("mcp_list_tools", `"id":"mcpl_%[1]d","server_label":"local","tools":[]`)},
		{name: "MCP call", answer: item("mcp_call", `"id":"mcp_%[1]d","server_label":"local","name":"echo","arguments":"{}","output":"x"`)},
		{name: "MCP approval", answer: item("mcp_approval_request", `"id":"mcpr_%[1]d","server_label":"local","name":"echo","arguments":"{}"`) + "," + item("mcp_approval_response", `"approval_request_id":"mcpr_%[1]d","approve":true`)},
		{name: "tools found by the provider", answer: item("tool_search_call", `"id":"ts_%[1]d","call_id":null,"execution":"server","arguments":{},"status":"completed"`) + "," +
			item("tool_search_output", `"id":"tso_%[1]d","call_id":null,"execution":"server","status":"completed","tools":[{"type":"function","name":"later%[1]d","parameters":{}}]`), protected: true},
		{name: "tools found by the client", answer: item("tool_search_call", `"id":"ts_%[1]d","call_id":"s%[1]d","execution":"client","arguments":{},"status":"completed"`) + "," +
			item("tool_search_output", `"call_id":"s%[1]d","execution":"client","status":"completed","tools":[{"type":"function","name":"later","parameters":{}}]`)},
		{name: "more tools", behind: item("additional_tools", `"role":"developer","tools":[{"type":"function","name":"later","parameters":{"type":"object","properties":{}}}]`)},
		{name: "what another agent came to", behind: item("agent_message", `"author":"/root/a","recipient":"/root","content":[{"type":"input_text","text":"It is %[1]d."}]`)},
		{name: "a task of another agent's", behind: item("agent_message", `"author":"/root","recipient":"/root/a","content":[{"type":"input_text","text":"Do %[1]d:"},{"type":"encrypted_content","encrypted_content":"eA=="}]`), protected: true},
		{name: "another configuration", behind: item("configuration_update", `"reasoning":{"effort":"high"}`)},
		{name: "shell call", answer: item("shell_call", `"call_id":"sh%[1]d","action":{"commands":["ls"]},"status":"completed"`) + "," + item("shell_call_output", `"call_id":"sh%[1]d","output":[{"stdout":"x","stderr":"","outcome":{"type":"exit","exit_code":0}}]`)},
		{name: "an invented item", answer: item("hologram", `"shape":"x%[1]d"`)},
		{name: "an invented call", answer: item("hologram_task", `"call_id":"h%[1]d","shape":"x"`) + "," + item("hologram_task_output", `"call_id":"h%[1]d","output":"x"`)},
	}
}

// A16: a session in which no other call is made than one that the program does not know.
func TestSessionOfUnknownCallsIsCompacted(t *testing.T) {
	t.Parallel()
	messages := []string{`{"role":"user","content":"Do the work."}`}
	for turn := range 60 {
		messages = append(messages,
			fmt.Sprintf(`{"type":"hologram_call","call_id":"h%d","shape":"x"}`, turn),
			fmt.Sprintf(`{"type":"hologram_call_output","call_id":"h%d","shape":%s}`, turn, wire.Quote(words(300))))
	}

	sealed := sendTo(t, conversation.OpenAIResponses, 6_000, messages...)

	lacks(t, sealed, `"h1"`)
	holds(t, sealed, `"h59"`)
}
