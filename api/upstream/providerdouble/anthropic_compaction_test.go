package providerdouble_test

import (
	"strings"
	"testing"

	"palimpsest/api/upstream/providerdouble"
)

// What context_management and compaction may be.
func TestContextManagementIsChecked(t *testing.T) {
	t.Parallel()
	edits := func(edits string) string { return `"context_management":{"edits":[` + edits + `]}` }
	summary := `{"role":"assistant","content":[{"type":"text","text":"b"},{"type":"compaction","content":"what was said"},{"type":"text","text":"c"}]}`
	list := []string{userA}
	checkRules(t, providerdouble.Anthropic, providerdouble.Config{}, anthropicBody, []ruleCase{
		{name: "a compaction", extra: edits(`{"type":"compact_20260112","trigger":{"type":"input_tokens","value":50000},"pause_after_compaction":true,"instructions":"briefly"}`), list: list},
		{name: "beside another edit", extra: edits(`{"type":"clear_thinking_20251015"},{"type":"compact_20260112"}`), list: list},
		{name: "an edit of the future", extra: edits(`{"type":"compact_20990101"}`), list: list,
			want: "context_management.edits.0: Input tag 'compact_20990101' found using 'type' does not match any of the expected tags: 'clear_thinking_20251015', 'clear_tool_uses_20250919', 'compact_20260112'"},
		{name: "a trigger that is too low", extra: edits(`{"type":"compact_20260112","trigger":{"type":"input_tokens","value":49999}}`), list: list,
			want: "context_management.edits.0.trigger.value: Input should be greater than or equal to 50000"},
		{name: "a trigger of another kind", extra: edits(`{"type":"compact_20260112","trigger":{"type":"tool_uses","value":50000}}`), list: list,
			want: "context_management.edits.0.trigger.type: Input should be 'input_tokens'"},
		{name: "twice", extra: edits(`{"type":"compact_20260112"},{"type":"compact_20260112"}`), list: list,
			want: "context_management.edits.1: `compact_20260112` may be given once"},
		{name: "an unknown member", extra: edits(`{"type":"compact_20260112","keep":3}`), list: list, want: "context_management.edits.0.keep: Extra inputs are not permitted"},
		{name: "together with a demand", extra: edits(`{"type":"compact_20260112"}`) + `,"compaction":{"type":"summarize"}`, list: list,
			want: "compaction: cannot be combined with `context_management`"},
		{name: "a demand", extra: `"compaction":{"type":"summarize"}`, list: list},
		{name: "a demand of another kind", extra: `"compaction":{"type":"shorten"}`, list: list, want: "compaction.type: Input should be 'summarize'"},
		{name: "a summary amid the history", extra: edits(`{"type":"compact_20260112"}`), list: []string{userA, summary, userA}},
		{name: "a summary amid the history, without the edit", list: []string{userA, summary, userA},
			want: "messages.1.content.1: `compaction` block must be the first block of the conversation (compaction_block_misplaced)"},
	})
	checkRules(t, providerdouble.OpenAIResponses, providerdouble.Config{}, responsesBody, []ruleCase{
		{name: "a threshold", extra: `"context_management":[{"type":"compaction","compact_threshold":1000}]`, list: []string{`{"role":"user","content":"a"}`}},
		{name: "no list", extra: `"context_management":{"type":"compaction"}`, list: []string{`{"role":"user","content":"a"}`}, want: "Invalid type for 'context_management': expected an array, but got an object instead."},
		{name: "another kind", extra: `"context_management":[{"type":"clear"}]`, list: []string{`{"role":"user","content":"a"}`}, want: "Invalid value: 'clear'. Supported values are: 'compaction'."},
		{name: "an unknown member", extra: `"context_management":[{"type":"compaction","keep":1}]`, list: []string{`{"role":"user","content":"a"}`}, want: "Unknown parameter: 'context_management[0].keep'."},
	})
}

// What stands before the newest summary does not count.
func TestTheHistoryBeforeASummaryIsNotRead(t *testing.T) {
	t.Parallel()
	double := providerdouble.NewHandler(providerdouble.Config{Window: 2_000})
	long := userOf(text(strings.Repeat("word ", 4_000)))
	summary := assistantOf(`{"type":"compaction","content":"what was said"}`, text("c"))
	body := func(extra string) []byte { return bodyOf("claude-sonnet-4-5", extra, long, summary, userA) }
	if err := double.Validate(providerdouble.Anthropic, body(`"context_management":{"edits":[{"type":"compact_20260112"}]}`)); err != nil {
		t.Errorf("with the edit: %v", err)
	}
	if err := double.Validate(providerdouble.Anthropic, bodyOf("claude-sonnet-4-5", "", long, userA)); err == nil {
		t.Error("a long history fits")
	}
}
