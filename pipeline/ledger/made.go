package ledger

import "palimpsest/pipeline/conversation"

// Made is a call with its result.
type Made struct {
	Call

	Message   int // index of the message with the call
	Block     *conversation.Block
	Result    *conversation.Block // nil without a result
	HasFailed bool
}

// Calls returns the calls of a whole turn, in order. first is the index of its first message. They
// share the messages' memory. Without calls the list is empty, not nil.
func Calls(first int, messages []conversation.Message) []Made {
	results, count := map[string]*conversation.Block{}, 0
	for i := range messages {
		for j := range messages[i].Blocks {
			switch block := &messages[i].Blocks[j]; block.Kind {
			case conversation.ToolResult:
				results[block.ID] = block
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
			made := Made{Call: ParseCall(block), Message: first + i, Block: block, Result: results[block.ID]}
			made.HasFailed = made.Result != nil && made.Failed(made.Result)
			calls = append(calls, made)
		}
	}
	return calls
}
