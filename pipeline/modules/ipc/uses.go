package ipc

import (
	"palimpsest/pipeline/conversation"
)

// uses knows which turns use which names: what people and the assistant write and what
// tools are called with. What a tool returns is no use of a name until somebody
// takes it up. It depends on the originals alone.
type uses struct {
	entries []use
	table   []int32         // by hash, open: index in entries + 1; its length is a power of two
	shapes  [1 << 10]uint64 // a bit for each shape of a name
}

// use is what is known of one name.
type use struct {
	hash   uint64
	last   int // newest turn that uses it
	before int // the one before; -1: none
	turns  int // turns that use it

	// What the records of a band, made from the newest turn to the oldest, tell each other.
	shown int // end of the last band of which one has it
	found int // the turn that found it last
}

func newUses() *uses { return &uses{table: make([]int32, 1<<12)} }

// add notes the names of a text that a turn wrote.
func (u *uses) add(turn int, text string, escaped bool) {
	for found := (names{text: text, escaped: escaped}); found.scan(); {
		at := u.slot(found.hash)
		if u.table[at] == 0 {
			u.entries = append(u.entries, use{hash: found.hash, last: -1, before: -1, found: -1})
			u.table[at] = int32(len(u.entries)) //nolint:gosec // a prompt has not as many names
			shape := shapeOf(text[found.from:found.to])
			u.shapes[shape>>6] |= 1 << (shape & 63)
		}
		if entry := &u.entries[u.table[at]-1]; entry.last != turn {
			entry.before, entry.last = entry.last, turn
			entry.turns++
		}
		if 2*len(u.entries) > len(u.table) {
			u.grow()
		}
	}
}

// slot returns where in the table a hash is or belongs.
func (u *uses) slot(hash uint64) int {
	mask := len(u.table) - 1
	at := int(hash) & mask //nolint:gosec // the low bits are what is wanted
	for u.table[at] != 0 && u.entries[u.table[at]-1].hash != hash {
		at = (at + 1) & mask
	}
	return at
}

// grow doubles the table.
func (u *uses) grow() {
	u.table = make([]int32, 2*len(u.table))
	for i := range u.entries {
		u.table[u.slot(u.entries[i].hash)] = int32(i + 1)
	}
}

// has reports whether any name of a shape is used.
func (u *uses) has(shape uint16) bool { return u.shapes[shape>>6]&(1<<(shape&63)) != 0 }

// of returns what is known of the name with a hash; nil if no turn uses it.
func (u *uses) of(hash uint64) *use {
	if i := u.table[u.slot(hash)]; i > 0 {
		return &u.entries[i-1]
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
