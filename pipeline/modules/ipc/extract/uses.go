package extract

import (
	"palimpsest/pipeline/conversation"
)

// Uses records which turns use which names: in messages of people and the assistant, and in
// arguments of calls. A tool's result does not use a name until someone takes it up. It depends on
// the originals alone.
type Uses struct {
	entries []Use
	table   []int32         // by hash, open: index in entries + 1; its length is a power of two
	shapes  [1 << 10]uint64 // a bit for each shape of a name
}

// Use is the uses of one name.
type Use struct {
	hash   uint64
	Last   int // newest turn that uses it
	Before int // the one before, or -1
	Turns  int // turns that use it

	// Shared between the records of a band, which are made from the newest turn to the oldest.
	Shown int // end of the last band with a record that has it
	Found int // the turn that found it last
}

// NewUses returns Uses without a name.
func NewUses() *Uses { return &Uses{table: make([]int32, 1<<12)} }

// HashedName is the hash and the shape of a used name.
type HashedName struct {
	hash  uint64
	shape uint16
}

// Add notes the names that a turn uses.
func (u *Uses) Add(turn int, used []HashedName) {
	for _, name := range used {
		at := u.slot(name.hash)
		if u.table[at] == 0 {
			u.entries = append(u.entries, Use{hash: name.hash, Last: -1, Before: -1, Found: -1})
			u.table[at] = int32(len(u.entries)) //nolint:gosec // a prompt has not as many names
			u.shapes[name.shape>>6] |= 1 << (name.shape & 63)
		}
		if entry := &u.entries[u.table[at]-1]; entry.Last != turn {
			entry.Before, entry.Last = entry.Last, turn
			entry.Turns++
		}
		if 2*len(u.entries) > len(u.table) {
			u.grow()
		}
	}
}

// slot returns the position of a hash in the table, or the free one for it.
func (u *Uses) slot(hash uint64) int {
	mask := len(u.table) - 1
	at := int(hash) & mask //nolint:gosec // the low bits are what is wanted
	for u.table[at] != 0 && u.entries[u.table[at]-1].hash != hash {
		at = (at + 1) & mask
	}
	return at
}

// grow doubles the table.
func (u *Uses) grow() {
	u.table = make([]int32, 2*len(u.table))
	for i := range u.entries {
		u.table[u.slot(u.entries[i].hash)] = int32(i + 1)
	}
}

// Has reports whether any name of a shape is used.
func (u *Uses) Has(shape uint16) bool { return u.shapes[shape>>6]&(1<<(shape&63)) != 0 }

// Of returns the uses of the name with a hash; nil if no turn uses it.
func (u *Uses) Of(hash uint64) *Use {
	if i := u.table[u.slot(hash)]; i > 0 {
		return &u.entries[i-1]
	}
	return nil
}

// NamesUsed returns the names that messages use.
func NamesUsed(messages []conversation.Message) []HashedName {
	var used []HashedName
	for _, message := range messages {
		for i := range message.Blocks {
			switch block := &message.Blocks[i]; block.Kind {
			case conversation.Text:
				if message.Role == conversation.Assistant || conversation.IsTyped(block.Text) {
					used = AppendNames(used, conversation.WithoutReminders(block.Text), false)
				}
			case conversation.ToolCall:
				used = AppendNames(used, block.Text, true)
			case conversation.ToolResult, conversation.Thinking, conversation.Media, conversation.Opaque:
			}
		}
	}
	return used
}

// AppendNames appends the names in a text.
func AppendNames(used []HashedName, text string, escaped bool) []HashedName {
	for found := (Names{Text: text, Escaped: escaped}); found.Scan(); {
		used = append(used, HashedName{found.Hash, ShapeOf(text[found.From:found.To])})
	}
	return used
}
