package providerdouble

import (
	"slices"
	"strings"
)

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
