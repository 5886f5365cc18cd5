package ipc

import (
	"palimpsest/pipeline/conversation"
)

// uses knows which turns use which names: what people and the assistant write and what
// tools are called with. What a tool returns is no use of a name until somebody
// takes it up. It depends on the originals alone.
type uses struct {
	entries []use
	byHash  map[uint64]int32
	filter  [1 << 10]uint64 // a bit for each hash: most names of results are never used
}

// use is what is known of one name.
type use struct {
	last  int // newest turn that uses it; -1: none
	turns int // turns that use it

	// What records, made from the newest to the oldest turn, tell each other.
	shown bool // a record has it already
	found int  // the turn that found it last
}

func newUses() *uses { return &uses{byHash: map[uint64]int32{}} }

// add notes the names of a text that a turn wrote.
func (u *uses) add(turn int, text string, escaped bool) {
	for found := (names{text: text, escaped: escaped}); found.scan(); {
		i, known := u.byHash[found.hash]
		if !known {
			i = int32(len(u.entries)) //nolint:gosec // a prompt has not as many names
			u.byHash[found.hash] = i
			bit := found.hash & (1<<16 - 1)
			u.filter[bit>>6] |= 1 << (bit & 63)
			u.entries = append(u.entries, use{last: -1, found: -1})
		}
		if entry := &u.entries[i]; entry.last != turn {
			entry.last = turn
			entry.turns++
		}
	}
}

// of returns what is known of the name with a hash; nil if no turn uses it.
func (u *uses) of(hash uint64) *use {
	if bit := hash & (1<<16 - 1); u.filter[bit>>6]&(1<<(bit&63)) == 0 {
		return nil
	}
	if i, known := u.byHash[hash]; known {
		return &u.entries[i]
	}
	return nil
}

// addTurn notes the names that a turn uses.
func (u *uses) addTurn(turn int, messages []conversation.Message) {
	for _, message := range messages {
		for i := range message.Blocks {
			switch block := &message.Blocks[i]; block.Kind {
			case conversation.Text:
				if message.Role == conversation.Assistant || conversation.IsTyped(block.Text) {
					u.add(turn, conversation.WithoutReminders(block.Text), false)
				}
			case conversation.ToolCall:
				u.add(turn, block.Text, true)
			case conversation.ToolResult, conversation.Thinking, conversation.Media, conversation.Opaque:
			}
		}
	}
}
