package ledger

import "palimpsest/pipeline/conversation"

// Made is a call with its result.
type Made struct {
	Call

	Message   int // index of the message with the call
	Block     *conversation.Block
	Result    *conversation.Block // nil without a result
	Answered  int                 // index of the message with the result
	HasFailed bool
}

// Looks reports whether the call only looks around: it searches, or runs a command that has no effects
// and names no file to read.
func (m *Made) Looks() bool {
	if m.Command != "" {
		return !m.line.acts && len(m.Reads) == 0
	}
	return m.does == searches
}

// Rejection reports whether a person rejected the call, and returns what they said, word for word.
func (m *Made) Rejection() (said string, isRejected bool) {
	if m.Result == nil {
		return "", false
	}
	return Rejection(m.Result)
}

// Calls returns the calls of a whole turn, in order. first is the index of its first message. They
// share the messages' memory. Without calls the list is empty, not nil.
func Calls(first int, messages []conversation.Message) []Made {
	results, count := map[string]answer{}, 0
	for i := range messages {
		for j := range messages[i].Blocks {
			switch block := &messages[i].Blocks[j]; block.Kind {
			case conversation.ToolResult:
				results[block.ID] = answer{block, first + i}
			case conversation.ToolCall:
				count++
			default:
			}
		}
	}
	calls := make([]Made, 0, count)
	for i := range messages {
		if messages[i].Role != conversation.Assistant {
			continue
		}
		for j := range messages[i].Blocks {
			block := &messages[i].Blocks[j]
			if block.Kind != conversation.ToolCall {
				continue
			}
			result := results[block.ID]
			made := Made{Call: ParseCall(block), Message: first + i, Block: block, Result: result.block, Answered: result.message}
			made.HasFailed = made.Result != nil && made.Failed(made.Result)
			calls = append(calls, made)
		}
	}
	return calls
}

// answer is a result with the index of its message.
type answer struct {
	block   *conversation.Block
	message int
}
