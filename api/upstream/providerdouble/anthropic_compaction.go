package providerdouble

import (
	"fmt"
	"slices"
)

const (
	compactEdit = "compact_20260112"
	compactBeta = "compact-2026-01-12"
	demandBeta  = "compact-2026-09-04"

	// Thresholds of the API's own compaction, in input tokens.
	defaultCompactTrigger, lowestCompactTrigger = 150_000, 50_000
)

// compaction holds a request's settings for the API's own compaction.
type compaction struct {
	isAsked bool // context_management has a compact_20260112
	trigger int  // input tokens that trigger it
	pauses  bool // and then answers with the summary alone

	isDemanded bool // the member compaction asks for a summary only
}

// parseManagement reads context_management. With compact_20260112, the history before the newest summary is
// ignored.
func (r *anthropicRequest) parseManagement() *Rejection {
	if !r.members.has("context_management") {
		return r.parseDemand()
	}
	if r.members.has("compaction") {
		return refuse("compaction: cannot be combined with `context_management`")
	}
	m, ok := objectMembers(r.members["context_management"])
	if !ok {
		return refuse("context_management: Input should be a valid dictionary")
	}
	if name := m.extra("edits"); name != "" {
		return refuse("context_management.%s: Extra inputs are not permitted", name)
	}
	edits, ok := elements(m["edits"])
	if !ok && m.has("edits") {
		return refuse("context_management.edits: Input should be a valid list")
	}
	for i, raw := range edits {
		edit, ok := objectMembers(raw)
		if !ok {
			return refuse("context_management.edits.%d: Input should be a valid dictionary", i)
		}
		kind, _ := edit.text("type")
		if kind == compactEdit {
			if rejection := r.parseCompactEdit(edit, at("context_management.edits", i)); rejection != nil {
				return rejection
			}
		} else if !slices.Contains([]string{"clear_tool_uses_20250919", "clear_thinking_20251015"}, kind) {
			return refuse("context_management.edits.%d: Input tag '%s' found using 'type' does not match any of the expected tags: 'clear_thinking_20251015', 'clear_tool_uses_20250919', '%s'", i, kind, compactEdit)
		}
	}
	if r.compaction.isAsked {
		r.forgetCompacted()
	}
	return nil
}

func (r *anthropicRequest) parseCompactEdit(edit members, path string) *Rejection {
	if r.header != nil && !hasBeta(r.header, compactBeta) {
		return refuse("%s: `%s` needs the beta `%s` in the header anthropic-beta", path, compactEdit, compactBeta)
	}
	if name := edit.extra("type", "trigger", "pause_after_compaction", "instructions"); name != "" {
		return refuse("%s.%s: Extra inputs are not permitted", path, name)
	}
	if r.compaction.isAsked {
		return refuse("%s: `%s` may be given once", path, compactEdit)
	}
	r.compaction = compaction{isAsked: true, trigger: defaultCompactTrigger, pauses: edit.flag("pause_after_compaction")}
	if !edit.has("trigger") {
		return nil
	}
	trigger, _ := objectMembers(edit["trigger"])
	if kind, _ := trigger.text("type"); kind != "input_tokens" {
		return refuse("%s.trigger.type: Input should be 'input_tokens'", path)
	}
	value, ok := trigger.number("value")
	if !ok || value < lowestCompactTrigger {
		return refuse("%s.trigger.value: Input should be greater than or equal to %d", path, lowestCompactTrigger)
	}
	r.compaction.trigger = value
	return nil
}

// parseDemand reads the member compaction.
func (r *anthropicRequest) parseDemand() *Rejection {
	if !r.members.has("compaction") {
		return nil
	}
	m, _ := objectMembers(r.members["compaction"])
	if kind, _ := m.text("type"); kind != "summarize" {
		return refuse("compaction.type: Input should be 'summarize'")
	}
	if r.header != nil && !hasBeta(r.header, demandBeta) {
		return refuse("compaction: Extra inputs are not permitted")
	}
	r.compaction.isDemanded = true
	return nil
}

// forgetCompacted leaves out the history before the newest summary. It doesn't change the messages, since
// other requests share them.
func (r *anthropicRequest) forgetCompacted() {
	for i, m := range slices.Backward(r.messages) {
		for j, b := range slices.Backward(m.blocks) {
			if b.kind == "compaction" && b.members.has("content") {
				r.messages = append([]*message{{role: m.role, blocks: m.blocks[j:]}}, r.messages[i+1:]...)
				return
			}
		}
	}
}

// compacts reports whether the API compacts the history before it answers.
func (r *anthropicRequest) compacts() bool {
	return r.compaction.isDemanded || r.compaction.isAsked && r.tokens >= r.compaction.trigger
}

// compacted puts the summary of a history that the API compacts at the head of an answer, and reports each
// step's usage, because the sum at the top does not count the compaction.
func (r *anthropicRequest) compacted(d *Double, answer *anthropicMessage) {
	summary := fmt.Sprintf("<summary>What %d messages came to.</summary>", len(r.messages))
	written := d.config.reported(d.config.Count(summary))
	whole := answer.Usage
	step := anthropicIteration{Type: "compaction", InputTokens: whole.InputTokens, CacheCreationInputTokens: whole.CacheCreationInputTokens,
		CacheReadInputTokens: whole.CacheReadInputTokens, OutputTokens: written}
	answer.Usage = Usage{Input: written, Output: whole.OutputTokens}.anthropic()
	answer.Usage.Iterations = []anthropicIteration{step}
	block := anthropicBlock{Type: "compaction", Content: &summary}
	if r.compaction.isDemanded { // its usage is the answer's own
		signature := d.Sign(summary)
		block.Signature = &signature
		answer.Content, answer.Usage = []anthropicBlock{block}, whole
		answer.Usage.OutputTokens = written
		return
	}
	if r.compaction.pauses {
		reason := "compaction"
		answer.Content, answer.StopReason, answer.Usage.InputTokens, answer.Usage.OutputTokens = []anthropicBlock{block}, &reason, 0, 0
		return
	}
	answer.Content = append([]anthropicBlock{block}, answer.Content...)
	answer.Usage.Iterations = append(answer.Usage.Iterations, anthropicIteration{Type: "message", InputTokens: written, OutputTokens: whole.OutputTokens})
}
