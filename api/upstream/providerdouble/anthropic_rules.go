package providerdouble

import (
	"fmt"
	"slices"
	"strings"
)

// check applies all rules for a whole request.
func (a *anthropicReader) check(r *anthropicRequest) *Rejection {
	for _, rule := range []func(*anthropicRequest) *Rejection{
		checkShape, checkTexts, checkVersion, checkCacheMarkers, checkSystemMessages, checkCompaction,
		checkCallIDs, checkCalls, checkServerTools, a.checkThinking, checkEnding, a.checkWindow,
	} {
		if rejection := rule(r); rejection != nil {
			return rejection
		}
	}
	return nil
}

// checkShape requires messages, a user's first, and all of them with content.
func checkShape(r *anthropicRequest) *Rejection {
	if len(r.messages) == 0 {
		return refuse("messages: at least one message is required")
	}
	first := r.messages[0]
	opensWithSummary := len(first.blocks) > 0 && first.blocks[0].kind == "compaction"
	if first.role != "user" && !opensWithSummary {
		return refuse(`messages: first message must use the "user" role`)
	}
	last := len(r.messages) - 1
	for i, m := range r.messages {
		if len(m.blocks) == 0 && m.role != "system" && (i != last || m.role != "assistant") {
			return refuse("messages.%d: all messages must have non-empty content except for the optional final assistant message", i)
		}
	}
	return nil
}

// checkTexts refuses text blocks without text.
func checkTexts(r *anthropicRequest) *Rejection {
	for _, b := range r.system {
		if rejection := checkText(b, "system"); rejection != nil {
			return rejection
		}
	}
	for _, m := range r.messages {
		for _, b := range m.blocks {
			if rejection := checkText(b, "messages"); rejection != nil {
				return rejection
			}
			for _, part := range b.inner {
				if rejection := checkText(part, "messages"); rejection != nil {
					return rejection
				}
			}
		}
	}
	return nil
}

func checkText(b *block, where string) *Rejection {
	if b.kind != "text" {
		return nil
	}
	if b.text == "" && b.cache != nil {
		return refuse("%s: cache_control cannot be set for empty text blocks", where)
	}
	if b.text == "" {
		return refuse("%s: text content blocks must be non-empty (empty text block)", where)
	}
	if strings.TrimSpace(b.text) == "" {
		return refuse("%s: text content blocks must contain non-whitespace text", where)
	}
	return nil
}

// checkVersion applies the removals of the API's version 2026-10-21.
func checkVersion(r *anthropicRequest) *Rejection {
	if r.header.Get("anthropic-version") != "2026-10-21" {
		return nil
	}
	for i, m := range r.messages {
		for j, b := range m.blocks {
			if m.role == "assistant" && b.kind == "document" {
				return refuse("messages.%d.content.%d: `document` blocks can only be in `user` messages", i, j)
			}
			if citations, ok := elements(b.members["citations"]); ok && m.role == "user" && b.kind == "text" && len(citations) > 0 {
				return refuse("messages.%d.content.%d.text.citations: citations are not permitted in user messages", i, j)
			}
		}
	}
	return nil
}

// marked is a block with a cache marker, in the order in which they are read.
type marked struct {
	path  string
	cache *cacheMarker
}

func (r *anthropicRequest) cacheMarkers() []marked {
	var all []marked
	add := func(path string, cache *cacheMarker) {
		if cache != nil {
			all = append(all, marked{path, cache})
		}
	}
	for i, t := range r.tools {
		add(at("tools", i), t.cache)
	}
	for i, b := range r.system {
		add(at("system", i), b.cache)
	}
	for i, m := range r.messages {
		for j, b := range m.blocks {
			path := fmt.Sprintf("messages.%d.content.%d", i, j)
			for k, part := range b.inner {
				add(at(path+".content", k), part.cache)
			}
			for k, marker := range b.nested {
				add(at(path+".content", k), marker)
			}
			add(path, b.cache)
		}
	}
	return all
}

// checkCacheMarkers counts the markers and checks the order of their times to live.
func checkCacheMarkers(r *anthropicRequest) *Rejection {
	all := r.cacheMarkers()
	count := len(all)
	if r.automatic != nil {
		count++
	}
	if count > 4 {
		return refuse("A maximum of 4 blocks with cache_control may be provided. Found %d.", count)
	}
	short := false
	for _, m := range all {
		if m.cache.hour && short {
			return refuse("%s.cache_control.ttl: a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block. Note that blocks are processed in the following order: `tools`, `system`, `messages`.", m.path)
		}
		short = short || !m.cache.hour
	}
	return nil
}

// checkSystemMessages checks the places of system messages inside the conversation.
func checkSystemMessages(r *anthropicRequest) *Rejection {
	last := len(r.messages) - 1
	for i, m := range r.messages {
		if m.role != "system" {
			continue
		}
		if !r.model.MidSystem {
			return refuse("messages.%d: role 'system' is not supported on this model", i)
		}
		previous := r.messages[i-1]
		if previous.role != "user" && !endsWithServerResult(previous) {
			return refuse("messages.%d: role 'system' must immediately follow a 'user' message or an 'assistant' message that ends with a server tool result", i)
		}
		if i != last && r.messages[i+1].role != "assistant" {
			return refuse("messages.%d: role 'system' must be the last message or be followed by an 'assistant' message", i)
		}
	}
	return nil
}

func endsWithServerResult(m *message) bool {
	if m.role != "assistant" || len(m.blocks) == 0 {
		return false
	}
	last := m.blocks[len(m.blocks)-1].kind
	return strings.HasSuffix(last, "_tool_result")
}

// checkCompaction requires that a compaction block is at the head of the conversation.
func checkCompaction(r *anthropicRequest) *Rejection {
	for i, m := range r.messages {
		for j, b := range m.blocks {
			if b.kind == "compaction" && (i > 0 || j > 0) && b.members.has("content") {
				return refuse("messages.%d.content.%d: `compaction` block must be the first block of the conversation (compaction_block_misplaced)", i, j)
			}
		}
	}
	return nil
}

// checkEnding refuses a prefilled answer if the model doesn't support one.
func checkEnding(r *anthropicRequest) *Rejection {
	last := r.messages[len(r.messages)-1]
	if last.role != "assistant" || len(last.blocks) == 0 {
		return nil
	}
	final := last.blocks[len(last.blocks)-1]
	if strings.HasSuffix(final.kind, "_tool_result") || final.kind == "server_tool_use" || final.kind == "compaction" {
		return nil
	}
	if r.model.NoPrefill {
		return refuse("This model does not support assistant message prefill. The conversation must end with a user message.")
	}
	if r.active() {
		return refuse("messages.%d: `prefill` is not supported when thinking is enabled", len(r.messages)-1)
	}
	if final.kind == "text" && strings.TrimRight(final.text, " \t\r\n") != final.text {
		return refuse("messages: final assistant content cannot end with trailing whitespace")
	}
	return nil
}

// checkWindow compares the prompt with the context window.
func (a *anthropicReader) checkWindow(r *anthropicRequest) *Rejection {
	r.tokens = a.config.reported(r.promptTokens())
	if r.counting {
		return nil
	}
	if r.tokens > r.model.Window {
		return promptTooLong(r.tokens, r.model.Window)
	}
	if r.model.StrictWindow && r.tokens+r.maxTokens > r.model.Window {
		return refuse("input length and `max_tokens` exceed context limit: %d + %d > %d, decrease input length or `max_tokens` and try again",
			r.tokens, r.maxTokens, r.model.Window)
	}
	return nil
}

func promptTooLong(tokens, window int) *Rejection {
	return refuse("prompt is too long: %d tokens > %d maximum", tokens, window)
}

// loopStart returns the index of the first message of the running tool loop: the one behind the newest user
// message without results of calls. It is len(messages) if the conversation does not end in tool results.
func (r *anthropicRequest) loopStart() int {
	r.loopOnce.Do(func() { r.loop = findLoop(r.messages) })
	return r.loop
}

func findLoop(messages []*message) int {
	last := len(messages) - 1
	for last >= 0 && messages[last].role == "system" {
		last--
	}
	if last < 0 || !messages[last].has("tool_result") {
		return len(messages)
	}
	newest := 0
	for i, m := range messages[:last+1] {
		if m.role == "user" && !m.has("tool_result") {
			newest = i
		}
	}
	for newest+1 < last && messages[newest+1].role == "system" {
		newest++
	}
	return newest + 1
}

// promptTokens sums the prompt in o200k tokens, without the parts that the provider drops.
func (r *anthropicRequest) promptTokens() int {
	return sumTokens(r.positions())
}

func sumTokens(positions []position) int {
	sum := 0
	for _, p := range positions {
		sum += p.tokens
	}
	return sum
}

// isForgotten reports whether the provider automatically leaves a thinking block out of the prompt, as older
// models do with those of earlier turns.
func (r *anthropicRequest) isForgotten(i int, b *block) bool {
	if !b.isThinking() {
		return false
	}
	return r.skip[b] || r.model.Thinking == ThinkingFirst && i < r.loopStart()
}

func missing(ids, from []string) []string {
	var absent []string
	for _, id := range ids {
		if !slices.Contains(from, id) {
			absent = append(absent, id)
		}
	}
	return absent
}

// checkCallIDs refuses duplicate ids of calls.
func checkCallIDs(r *anthropicRequest) *Rejection {
	seen := map[string]bool{}
	for i, m := range r.messages {
		for j, b := range m.blocks {
			if b.kind != "tool_use" {
				continue
			}
			if seen[b.id] {
				return refuse("messages.%d.content.%d: `tool_use` ids must be unique", i, j)
			}
			seen[b.id] = true
		}
	}
	return nil
}

// checkCalls pairs each call with a result in the next message, and each result
// with a call in the message before it.
func checkCalls(r *anthropicRequest) *Rejection {
	for i, m := range r.messages {
		var rejection *Rejection
		switch m.role {
		case "assistant":
			rejection = checkAnswered(r, i)
		case "user":
			rejection = checkAsked(r, i)
		}
		if rejection != nil {
			return rejection
		}
	}
	return nil
}

// checkAnswered requires that the message behind i opens with all results of its calls.
func checkAnswered(r *anthropicRequest, i int) *Rejection {
	calls := idsOf(r.messages[i].blocks, "tool_use")
	if len(calls) == 0 {
		return nil
	}
	var results []string
	if i+1 < len(r.messages) && r.messages[i+1].role == "user" {
		results = idsOf(leadingResults(r.messages[i+1]), "tool_result")
	}
	if open := missing(calls, results); len(open) > 0 {
		return refuse("messages.%d: `tool_use` ids were found without `tool_result` blocks immediately after: %s. Each `tool_use` block must have a corresponding `tool_result` block in the next message.",
			i, strings.Join(open, ", "))
	}
	if pendingServerCall(r.messages[i]) != nil && len(leadingResults(r.messages[i+1])) != len(r.messages[i+1].blocks) {
		return refuse("messages.%d: only `tool_result` blocks may follow an assistant message with an unresolved server tool call", i+1)
	}
	return nil
}

// checkAsked requires that the message before i has the call of each of its results.
func checkAsked(r *anthropicRequest, i int) *Rejection {
	var calls []string
	if i > 0 && r.messages[i-1].role == "assistant" {
		calls = idsOf(r.messages[i-1].blocks, "tool_use")
	}
	// A body that is judged alone lacks its thread, so the server holds the call of its first result.
	if i == 0 && r.members.has("thread") && r.thread == nil {
		return nil
	}
	var seen []string
	for j, b := range r.messages[i].blocks {
		if b.kind != "tool_result" {
			continue
		}
		if !slices.Contains(calls, b.id) {
			return refuse("messages.%d.content.%d: unexpected `tool_use_id` found in `tool_result` blocks: %s. Each `tool_result` block must have a corresponding `tool_use` block in the previous message.", i, j, b.id)
		}
		if slices.Contains(seen, b.id) {
			return refuse("messages.%d.content.%d: each tool_use must have a single result. Found multiple `tool_result` blocks with id: %s", i, j, b.id)
		}
		seen = append(seen, b.id)
	}
	return nil
}

func idsOf(blocks []*block, kind string) []string {
	var ids []string
	for _, b := range blocks {
		if b.kind == kind {
			ids = append(ids, b.id)
		}
	}
	return ids
}

func leadingResults(m *message) []*block {
	for i, b := range m.blocks {
		if b.kind != "tool_result" {
			return m.blocks[:i]
		}
	}
	return m.blocks
}

// checkServerTools pairs the provider's own calls with their results, inside one answer. A paused answer may
// span several assistant messages.
func checkServerTools(r *anthropicRequest) *Rejection {
	var open []*block
	for i, m := range r.messages {
		if m.role != "assistant" {
			if m.role == "user" && len(open) > 0 && !m.has("tool_result") {
				return refuse("messages.%d: `%s` tool use with id `%s` was found without a corresponding `%s_tool_result` block", i-1, serverTool(open[0]), open[0].id, serverTool(open[0]))
			}
			continue
		}
		if i > 0 && r.messages[i-1].role == "user" && !r.messages[i-1].has("tool_result") {
			open = nil
		}
		for j, b := range m.blocks {
			switch {
			case b.kind == "server_tool_use" || b.kind == "mcp_tool_use":
				open = append(open, b)
			case strings.HasSuffix(b.kind, "_tool_result"):
				call := slices.IndexFunc(open, func(call *block) bool { return call.id == b.id })
				if call < 0 {
					return refuse("messages.%d.content.%d: unexpected `tool_use_id` found in `%s` blocks: %s. Each `%s` block must have a corresponding `%s` block before it.", i, j, b.kind, b.id, b.kind, callOf(b.kind))
				}
				open = slices.Delete(open, call, call+1)
			}
		}
	}
	return nil
}

func callOf(result string) string {
	if result == "mcp_tool_result" {
		return "mcp_tool_use"
	}
	return "server_tool_use"
}

func serverTool(call *block) string {
	if name, ok := call.members.text("name"); ok && call.kind == "server_tool_use" {
		return name
	}
	return "mcp"
}

// pendingServerCall returns a call of a message without a result in its answer.
func pendingServerCall(m *message) *block {
	for _, b := range m.blocks {
		if b.kind != "server_tool_use" && b.kind != "mcp_tool_use" {
			continue
		}
		answered := slices.ContainsFunc(m.blocks, func(result *block) bool {
			return strings.HasSuffix(result.kind, "_tool_result") && result.id == b.id
		})
		if !answered {
			return b
		}
	}
	return nil
}
