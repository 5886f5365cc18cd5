package ipc

import (
	"encoding/json"
	"iter"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/ledger"
)

// memory caches the readings of a history's turns.
type memory struct {
	readings map[conversation.Turn]*reading
	texts    *ledger.Memo
}

func newMemory() *memory {
	return &memory{readings: map[conversation.Turn]*reading{}, texts: ledger.NewMemo()}
}

// of returns the reading of a turn; nil if it isn't cached.
func (m *memory) of(turn conversation.Turn) *reading {
	if m == nil {
		return nil
	}
	return m.readings[turn]
}

// reading is the parsed content of a turn, independent of the plan. Expensive parts are computed
// when they are first needed.
type reading struct {
	from     int // index of the first message
	messages []conversation.Message
	isClosed bool

	made  []ledger.Made // nil until computed
	used  []hashedName  // names in its messages; nil until computed
	short []shortForm   // L1 of its messages; nil until computed
}

// shortForm is a message at L1 with its media.
type shortForm struct {
	isMade  bool
	message conversation.Message
	size    int             // o200k tokens
	raw     json.RawMessage // nil until encoded
}

// names returns the names in the turn's messages.
func (r *reading) names() []hashedName {
	if r.used == nil {
		r.used = namesUsed(r.messages)
	}
	return r.used
}

// calls returns the turn's calls, in order.
func (r *reading) calls() []ledger.Made {
	if r.made == nil {
		r.made = ledger.Calls(r.from, r.messages)
	}
	return r.made
}

// with returns the reading with another message in place of one of its own. Its calls stay the
// same.
func (r *reading) with(place int, message conversation.Message) *reading {
	changed := &reading{from: r.from, isClosed: r.isClosed, made: r.made}
	changed.messages = append(changed.messages, r.messages...)
	changed.messages[place] = message
	return changed
}

// isClosed reports whether each call of the messages has exactly one result and
// each result its call.
func isClosed(messages []conversation.Message) bool {
	calls, results := 0, 0
	for i := range messages {
		for j := range messages[i].Blocks {
			switch messages[i].Blocks[j].Kind {
			case conversation.ToolCall:
				calls++
			case conversation.ToolResult:
				results++
			case conversation.Text, conversation.Thinking, conversation.Media, conversation.Opaque:
			}
		}
	}
	if calls != results || calls == 0 {
		return calls == results
	}
	answered := make(map[string]bool, calls)
	for block := range blocksOf(messages, conversation.ToolCall) {
		if _, again := answered[block.ID]; again {
			return false
		}
		answered[block.ID] = false
	}
	for block := range blocksOf(messages, conversation.ToolResult) {
		if again, isCalled := answered[block.ID]; again || !isCalled {
			return false
		}
		answered[block.ID] = true
	}
	return true
}

// blocksOf yields the blocks of a kind.
func blocksOf(messages []conversation.Message, kind conversation.Kind) iter.Seq[*conversation.Block] {
	return func(yield func(*conversation.Block) bool) {
		for i := range messages {
			for j := range messages[i].Blocks {
				if block := &messages[i].Blocks[j]; block.Kind == kind && !yield(block) {
					return
				}
			}
		}
	}
}
