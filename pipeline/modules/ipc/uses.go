package ipc

import (
	"palimpsest/pipeline/conversation"
)

// uses records which turns use which names: in messages of people and the assistant, and in
// arguments of calls. A tool's result does not use a name until someone takes it up. It depends on
// the originals alone.
type uses struct {
	entries []use
	table   []int32         // by hash, open: index in entries + 1; its length is a power of two
	shapes  [1 << 10]uint64 // a bit for each shape of a name
}

// use is the uses of one name.
type use struct {
	hash   uint64
	last   int // newest turn that uses it
	before int // the one before, or -1
	turns  int // turns that use it

	// Shared between the records of a band, which are made from the newest turn to the oldest.
	shown int // end of the last band with a record that has it
	found int // the turn that found it last
}

func newUses() *uses { return &uses{table: make([]int32, 1<<12)} }

// hashedName is the hash and the shape of a used name.
type hashedName struct {
	hash  uint64
	shape uint16
}

// add notes the names that a turn uses.
func (u *uses) add(turn int, used []hashedName) {
	for _, name := range used {
		at := u.slot(name.hash)
		if u.table[at] == 0 {
			u.entries = append(u.entries, use{hash: name.hash, last: -1, before: -1, found: -1})
			u.table[at] = int32(len(u.entries)) //nolint:gosec // a prompt has not as many names
			u.shapes[name.shape>>6] |= 1 << (name.shape & 63)
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

// slot returns the position of a hash in the table, or the free one for it.
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

// of returns the uses of the name with a hash; nil if no turn uses it.
func (u *uses) of(hash uint64) *use {
	if i := u.table[u.slot(hash)]; i > 0 {
		return &u.entries[i-1]
	}
	return nil
}

// namesUsed returns the names that messages use.
func namesUsed(messages []conversation.Message) []hashedName {
	var used []hashedName
	for _, message := range messages {
		for i := range message.Blocks {
			switch block := &message.Blocks[i]; block.Kind {
			case conversation.Text:
				if message.Role == conversation.Assistant || conversation.IsTyped(block.Text) {
					used = appendNames(used, conversation.WithoutReminders(block.Text), false)
				}
			case conversation.ToolCall:
				used = appendNames(used, block.Text, true)
			case conversation.ToolResult, conversation.Thinking, conversation.Media, conversation.Opaque:
			}
		}
	}
	return used
}

// appendNames appends the names in a text.
func appendNames(used []hashedName, text string, escaped bool) []hashedName {
	for found := (names{text: text, escaped: escaped}); found.scan(); {
		used = append(used, hashedName{found.hash, shapeOf(text[found.from:found.to])})
	}
	return used
}
