package providerdouble_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"palimpsest/api/upstream/providerdouble"
)

// The parts that the bodies of these tests are made of.
const (
	userA   = `{"role":"user","content":"a"}`
	callsXY = `{"role":"assistant","content":[{"type":"tool_use","id":"toolu_X","name":"read","input":{}},{"type":"tool_use","id":"toolu_Y","name":"read","input":{}}]}`
	resultX = `{"type":"tool_result","tool_use_id":"toolu_X","content":"x"}`
	resultY = `{"type":"tool_result","tool_use_id":"toolu_Y","content":[{"type":"text","text":"y"}],"is_error":true}`
	mark    = `"cache_control":{"type":"ephemeral"}`
	mark1h  = `"cache_control":{"type":"ephemeral","ttl":"1h"}`
)

func userOf(blocks ...string) string {
	return `{"role":"user","content":[` + strings.Join(blocks, ",") + `]}`
}

func assistantOf(blocks ...string) string {
	return `{"role":"assistant","content":[` + strings.Join(blocks, ",") + `]}`
}

func text(text string) string { return fmt.Sprintf(`{"type":"text","text":%q}`, text) }

func markedText(text, mark string) string {
	return fmt.Sprintf(`{"type":"text","text":%q,%s}`, text, mark)
}

// bodyOf is a body for a model with some messages; extra are more members.
func bodyOf(model, extra string, messages ...string) []byte {
	if extra != "" {
		extra += ","
	}
	return fmt.Appendf(nil, `{"model":%q,"max_tokens":4096,%s"messages":[%s]}`, model, extra, strings.Join(messages, ","))
}

type ruleCase struct {
	name  string
	model string
	extra string // members
	list  []string
	want  string // the provider's message; empty where the body is legal
}

func checkRules(t *testing.T, format string, config providerdouble.Config, body func(ruleCase) []byte, cases []ruleCase) {
	t.Helper()
	double := providerdouble.NewHandler(config)
	for _, test := range cases {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			err := double.Validate(format, body(test))
			if test.want == "" && err != nil {
				t.Fatalf("refused a legal body: %v", err)
			}
			if test.want != "" && (err == nil || err.Error() != test.want) {
				t.Fatalf("answer is\n%v\nwant\n%s", err, test.want)
			}
			var rejection *providerdouble.Rejection
			if err != nil && (!errors.As(err, &rejection) || rejection.Status != http.StatusBadRequest || rejection.Type != "invalid_request_error") {
				t.Fatalf("rejection is %+v", rejection)
			}
		})
	}
}

func anthropicBody(test ruleCase) []byte {
	if test.model == "" {
		test.model = "claude-sonnet-4-5"
	}
	return bodyOf(test.model, test.extra, test.list...)
}

// A1 A2 A3 A4 A5
func TestCallsAndResultsArePaired(t *testing.T) {
	t.Parallel()
	const unanswered = " Each `tool_use` block must have a corresponding `tool_result` block in the next message."
	const unasked = " Each `tool_result` block must have a corresponding `tool_use` block in the previous message."
	checkRules(t, providerdouble.Anthropic, providerdouble.Config{}, anthropicBody, []ruleCase{
		{name: "both answered, text behind", list: []string{userA, callsXY, userOf(resultY, resultX, text("and"))}},
		{name: "one missing", list: []string{userA, callsXY, userOf(resultY)},
			want: "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_X." + unanswered},
		{name: "both missing", list: []string{userA, callsXY, userOf(text("b"))},
			want: "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_X, toolu_Y." + unanswered},
		{name: "pending at the end", list: []string{userA, callsXY},
			want: "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_X, toolu_Y." + unanswered},
		{name: "text before a result", list: []string{userA, callsXY, userOf(resultX, text("b"), resultY)},
			want: "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_Y." + unanswered},
		{name: "results in two messages", list: []string{userA, callsXY, userOf(resultX), userOf(resultY)},
			want: "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_Y." + unanswered},
		{name: "orphan", list: []string{userA, assistantOf(text("b")), userOf(text("c"), resultX)},
			want: "messages.2.content.1: unexpected `tool_use_id` found in `tool_result` blocks: toolu_X." + unasked},
		{name: "orphan first", list: []string{userOf(resultX)},
			want: "messages.0.content.0: unexpected `tool_use_id` found in `tool_result` blocks: toolu_X." + unasked},
		{name: "answered twice", list: []string{userA, callsXY, userOf(resultX, resultY, resultX)},
			want: "messages.2.content.2: each tool_use must have a single result. Found multiple `tool_result` blocks with id: toolu_X"},
		{name: "id used twice", list: []string{userA, callsXY, userOf(resultX, resultY), callsXY, userOf(resultX, resultY)},
			want: "messages.3.content.0: `tool_use` ids must be unique"},
		{name: "thread continues at a result", extra: `"thread":{"type":"continue","previous_message_id":"msg_1"}`, list: []string{userOf(resultX)}},
	})
}

func TestServerToolsArePairedInsideAnAnswer(t *testing.T) {
	t.Parallel()
	call := `{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"q"}}`
	result := `{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[]}`
	clientCall := `{"type":"tool_use","id":"toolu_X","name":"read","input":{}}`
	checkRules(t, providerdouble.Anthropic, providerdouble.Config{}, anthropicBody, []ruleCase{
		{name: "pair", list: []string{userA, assistantOf(call, result, text("b")), userA}},
		{name: "paused at the end", list: []string{userA, assistantOf(call)}},
		{name: "paused, then gone on", list: []string{userA, assistantOf(call), assistantOf(result, text("b")), userA}},
		{name: "beside a client's call", list: []string{userA, assistantOf(call, clientCall), userOf(resultX), assistantOf(result), userA}},
		{name: "beside a client's call, with text", list: []string{userA, assistantOf(call, clientCall), userOf(resultX, text("b"))},
			want: "messages.2: only `tool_result` blocks may follow an assistant message with an unresolved server tool call"},
		{name: "result alone", list: []string{userA, assistantOf(result), userA},
			want: "messages.1.content.0: unexpected `tool_use_id` found in `web_search_tool_result` blocks: srvtoolu_1. Each `web_search_tool_result` block must have a corresponding `server_tool_use` block before it."},
		{name: "call alone", list: []string{userA, assistantOf(call, text("b")), userA},
			want: "messages.1: `web_search` tool use with id `srvtoolu_1` was found without a corresponding `web_search_tool_result` block"},
		{name: "mcp result alone", list: []string{userA, assistantOf(`{"type":"mcp_tool_result","tool_use_id":"mcptoolu_1","content":[]}`), userA},
			want: "messages.1.content.0: unexpected `tool_use_id` found in `mcp_tool_result` blocks: mcptoolu_1. Each `mcp_tool_result` block must have a corresponding `mcp_tool_use` block before it."},
	})
}

func TestMessagesHaveAShape(t *testing.T) {
	t.Parallel()
	checkRules(t, providerdouble.Anthropic, providerdouble.Config{}, anthropicBody, []ruleCase{
		{name: "none", list: nil, want: "messages: at least one message is required"},
		{name: "assistant first", list: []string{assistantOf(text("a"))}, want: `messages: first message must use the "user" role`},
		{name: "unknown role", list: []string{`{"role":"tool","content":"a"}`}, want: `messages: Unexpected role "tool". Allowed roles are "user" or "assistant".`},
		{name: "no role", list: []string{`{"content":"a"}`}, want: "messages.0.role: Field required"},
		{name: "no content", list: []string{`{"role":"user"}`}, want: "messages.0.content: Field required"},
		{name: "number as content", list: []string{`{"role":"user","content":1}`}, want: "messages.0.content: Input should be a valid string or list"},
		{name: "empty content", list: []string{userA, assistantOf(), userA},
			want: "messages.1: all messages must have non-empty content except for the optional final assistant message"},
		{name: "empty string", list: []string{userA, `{"role":"assistant","content":""}`, userA},
			want: "messages.1: all messages must have non-empty content except for the optional final assistant message"},
		{name: "empty text block", list: []string{userOf(text(""))}, want: "messages: text content blocks must be non-empty (empty text block)"},
		{name: "empty text in a result", list: []string{userA, callsXY, userOf(resultX, `{"type":"tool_result","tool_use_id":"toolu_Y","content":[{"type":"text","text":""}]}`)},
			want: "messages: text content blocks must be non-empty (empty text block)"},
		{name: "empty result", list: []string{userA, callsXY, userOf(resultX, `{"type":"tool_result","tool_use_id":"toolu_Y","content":""}`)}},
		{name: "only spaces", list: []string{userOf(text(" \n"))}, want: "messages: text content blocks must contain non-whitespace text"},
		{name: "empty system", extra: `"system":[{"type":"text","text":""}]`, list: []string{userA}, want: "system: text content blocks must be non-empty (empty text block)"},
		{name: "unknown block", list: []string{userOf(`{"type":"hologram"}`)},
			want: "messages.0.content.0: Input tag 'hologram' found using 'type' does not match any of the expected tags"},
		{name: "unknown member", list: []string{userOf(`{"type":"text","text":"a","id":"b1"}`)}, want: "messages.0.content.0.text.id: Extra inputs are not permitted"},
		{name: "unknown top member", extra: `"palimpsest":1`, list: []string{userA}, want: "palimpsest: Extra inputs are not permitted"},
		{name: "input as text", list: []string{userA, assistantOf(`{"type":"tool_use","id":"toolu_X","name":"read","input":"{}"}`), userOf(resultX)},
			want: "messages.1.content.0.tool_use.input: Input should be a valid dictionary"},
		{name: "bad id", list: []string{userA, assistantOf(`{"type":"tool_use","id":"a b","name":"read","input":{}}`), userA},
			want: "messages.1.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'"},
		{name: "result in an answer", list: []string{userA, assistantOf(resultX), userA}, want: "messages.1.content.0: `tool_result` blocks can only be in `user` messages"},
		{name: "call by the user", list: []string{userOf(`{"type":"tool_use","id":"toolu_X","name":"read","input":{}}`)},
			want: "messages.0.content.0: `tool_use` blocks can only be in `assistant` messages"},
		{name: "tool twice", extra: `"tools":[{"name":"a","input_schema":{}},{"name":"a","input_schema":{}}]`, list: []string{userA}, want: "tools: Tool names must be unique."},
		{name: "tool without schema", extra: `"tools":[{"name":"a"}]`, list: []string{userA}, want: "tools.0.custom.input_schema: Field required"},
		{name: "max_tokens", model: "claude-opus-4-1", extra: `"max_tokens":64000`, list: []string{userA},
			want: "max_tokens: 64000 > 32000, which is the maximum allowed number of output tokens for claude-opus-4-1"},
		{name: "summary not first", list: []string{userA, assistantOf(`{"type":"compaction","content":"s"}`), userA},
			want: "messages.1.content.0: `compaction` block must be the first block of the conversation (compaction_block_misplaced)"},
		{name: "summary first", list: []string{assistantOf(`{"type":"compaction","content":"s"}`), userA}},
	})
}

// W33 A10
func TestCacheMarkersAreFewAndOrdered(t *testing.T) {
	t.Parallel()
	system := `"system":[` + markedText("s", mark) + `]`
	four := []string{markedText("1", mark), markedText("2", mark), markedText("3", mark), text("4")}
	checkRules(t, providerdouble.Anthropic, providerdouble.Config{}, anthropicBody, []ruleCase{
		{name: "four", extra: system, list: []string{userOf(four...)}},
		{name: "five", extra: system, list: []string{userOf(four...), assistantOf(text("a")), userOf(markedText("5", mark))},
			want: "A maximum of 4 blocks with cache_control may be provided. Found 5."},
		{name: "five with tools", extra: system + `,"tools":[{"name":"a","input_schema":{},` + mark + `}]`, list: []string{userOf(four...)},
			want: "A maximum of 4 blocks with cache_control may be provided. Found 5."},
		{name: "five with the automatic one", extra: system + `,` + mark, list: []string{userOf(four...)},
			want: "A maximum of 4 blocks with cache_control may be provided. Found 5."},
		{name: "five with one in a result", extra: system, list: []string{userOf(four...), callsXY, userOf(resultX, `{"type":"tool_result","tool_use_id":"toolu_Y","content":[`+markedText("y", mark)+`]}`)},
			want: "A maximum of 4 blocks with cache_control may be provided. Found 5."},
		{name: "hour before minutes", list: []string{userOf(markedText("1", mark1h), markedText("2", mark))}},
		{name: "hour behind minutes", extra: system, list: []string{userOf(text("0"), markedText("1", mark1h))},
			want: "messages.0.content.1.cache_control.ttl: a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block. Note that blocks are processed in the following order: `tools`, `system`, `messages`."},
		{name: "on thinking", list: []string{userA, assistantOf(`{"type":"thinking","thinking":"t","signature":"s",` + mark + `}`), userA},
			want: "messages.1.content.0.thinking.cache_control: Extra inputs are not permitted"},
		{name: "on empty text", list: []string{userOf(markedText("", mark))}, want: "messages: cache_control cannot be set for empty text blocks"},
		{name: "odd time to live", list: []string{userOf(markedText("1", `"cache_control":{"type":"ephemeral","ttl":"2h"}`))},
			want: "messages.0.content.0.text.cache_control.ephemeral.ttl: Input should be '5m' or '1h'"},
	})
}

// W32
func TestSystemMessagesHaveAPlace(t *testing.T) {
	t.Parallel()
	system := `{"role":"system","content":"s"}`
	const model = "claude-opus-5-5"
	checkRules(t, providerdouble.Anthropic, providerdouble.Config{}, anthropicBody, []ruleCase{
		{name: "last", model: model, list: []string{userA, system}},
		{name: "before an answer", model: model, list: []string{userA, system, assistantOf(text("b")), userA}},
		{name: "effort alone", model: model, list: []string{userA, `{"role":"system","content":[],"output_config":{"effort":"low"}}`}},
		{name: "older model", model: "claude-opus-4-7", list: []string{userA, system}, want: "messages.1: role 'system' is not supported on this model"},
		{name: "first", model: model, list: []string{system, userA}, want: `messages: first message must use the "user" role`},
		{name: "behind an answer", model: model, list: []string{userA, assistantOf(text("b")), system},
			want: "messages.2: role 'system' must immediately follow a 'user' message or an 'assistant' message that ends with a server tool result"},
		{name: "before a user", model: model, list: []string{userA, system, userA},
			want: "messages.1: role 'system' must be the last message or be followed by an 'assistant' message"},
	})
}

func TestTheEndingFitsTheModel(t *testing.T) {
	t.Parallel()
	const prefill = "This model does not support assistant message prefill. The conversation must end with a user message."
	thinks := `"thinking":{"type":"enabled","budget_tokens":2048}`
	checkRules(t, providerdouble.Anthropic, providerdouble.Config{}, anthropicBody, []ruleCase{
		{name: "older model", list: []string{userA, assistantOf(text("b"))}},
		{name: "4.6", model: "claude-sonnet-4-6", list: []string{userA, assistantOf(text("b"))}, want: prefill},
		{name: "5.5", model: "claude-opus-5-5", list: []string{userA, assistantOf(text("b"))}, want: prefill},
		{name: "trailing space", list: []string{userA, assistantOf(text("b "))}, want: "messages: final assistant content cannot end with trailing whitespace"},
		{name: "while thinking", extra: thinks, list: []string{userA, assistantOf(text("b"))}, want: "messages.1: `prefill` is not supported when thinking is enabled"},
	})
}

func TestTheWindowIsMeasured(t *testing.T) {
	t.Parallel()
	words := func(n int) []string { return []string{userOf(text(strings.Repeat("four", n)))} }
	config := providerdouble.Config{Window: 10_000, TokensPerO200k: 1.5}
	checkRules(t, providerdouble.Anthropic, config, anthropicBody, []ruleCase{
		{name: "fits", list: words(6_600)},
		{name: "too long", list: words(6_998), want: "prompt is too long: 10502 tokens > 10000 maximum"},
		{name: "older model needs room for the answer", model: "claude-sonnet-4-20250514", list: words(5_000),
			want: "input length and `max_tokens` exceed context limit: 7505 + 4096 > 10000, decrease input length or `max_tokens` and try again"},
	})
}
