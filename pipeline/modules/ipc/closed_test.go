package ipc

import (
	"testing"

	"palimpsest/pipeline/conversation"
)

func TestTurnIsClosedIfEachCallHasItsOneResult(t *testing.T) {
	t.Parallel()
	for blocks, want := range map[string]bool{
		"": true, "text": true, "c1 r1": true, "c1 c2 r2 r1": true, "r1 c1": true, "c1 text | text r1": true,
		"c1": false, "r1": false, "c1 r2": false, "c1 text c1 r1 text r1": false, "c1 c2 r1 text r1": false, "c1 text c1 r1 r2": false, "c1 r1 | r1": false, "c1 r1 | c2": false,
	} {
		messages := []conversation.Message{{}}
		for i := range len(blocks) {
			last := &messages[len(messages)-1]
			switch blocks[i] {
			case '|':
				messages = append(messages, conversation.Message{})
			case 'c':
				last.Blocks = append(last.Blocks, conversation.Block{Kind: conversation.ToolCall, ID: blocks[i+1 : i+2]})
			case 'r':
				last.Blocks = append(last.Blocks, conversation.Block{Kind: conversation.ToolResult, ID: blocks[i+1 : i+2]})
			case 'x':
				last.Blocks = append(last.Blocks, conversation.Block{Kind: conversation.Text})
			}
		}
		if got := isClosed(messages); got != want {
			t.Errorf("%q: closed %t", blocks, got)
		}
	}
}
