package session

import (
	"slices"

	"palimpsest/pipeline/conversation"
)

// InSystem is the Message of an insert that stands behind the client's own system
// prompt.
const InSystem = -1

// Insert is text that a module has put into a lane's prompt. It stays where it was
// put, with the same bytes, until an epoch folds the message it stands in.
//
// One with a Block stands in place of a tool result of which another message has the
// rest: a pointer. It goes as soon as that message is no longer sent as it came, and
// the result stands there again.
type Insert struct {
	Number  int               `json:"number"`  // in its lane, from 1 on; 0: new in this request, not durable yet
	Message int               `json:"message"` // message of the client's list it is appended to as a block of its own; InSystem: behind the client's system prompt
	Chain   conversation.Hash `json:"chain"`   // link of the history after that message; of its root for InSystem
	Module  string            `json:"module"`  // "rehydrator", "compaction-bridge", "patterns"
	Text    string            `json:"text"`
	Tokens  int               `json:"tokens"`          // o200k tokens by which the prompt is longer with it; of a pointer below 0
	Items   []string          `json:"items,omitempty"` // what it holds, for pages, headers and not doing it twice: pointers, pattern ids …

	Block  int `json:"block,omitempty"`  // the message's block, from 1 on, that Text stands in place of; 0: Text is a block of its own
	Source int `json:"source,omitempty"` // message that has what Text leaves out, where there is a Block
}

// IsPointer reports whether it stands in place of a tool result.
func (i *Insert) IsPointer() bool { return i.Block > 0 }

// Count returns how many items it holds: one at least.
func (i *Insert) Count() int { return max(1, len(i.Items)) }

// stands reports whether a history whose links chain holds has the message that
// the insert was put at.
func (i *Insert) stands(chain []conversation.Hash) bool {
	at := i.Message + 1
	return at < len(chain) && chain[at] == i.Chain
}

// Stands reports whether it is in the prompt if projection, which may be nil, stands
// for the first messages: one whose message is rendered is not, nor is a pointer at a
// message that is.
func (i *Insert) Stands(projection *Projection) bool {
	if i.IsPointer() && !projection.Keeps(i.Source) {
		return false
	}
	return i.Message == InSystem || projection.Keeps(i.Message)
}

// Keeps reports whether a message is sent as the client sent it if the projection,
// which may be nil, stands for the first messages.
func (p *Projection) Keeps(message int) bool {
	if p == nil || message >= p.Covers {
		return true
	}
	at, found := slices.BinarySearchFunc(p.Parts, message, func(part Part, message int) int {
		switch {
		case part.To <= message:
			return -1
		case part.From > message:
			return 1
		}
		return 0
	})
	return found && p.Parts[at].Raw == nil
}

// weight is what the insert takes in memory, in bytes, roughly.
func (i *Insert) weight() int {
	bytes := 160 + len(i.Text)
	for _, item := range i.Items {
		bytes += 16 + len(item)
	}
	return bytes
}

// inserted is what modules have put into a lane's prompt.
type inserted struct {
	inserts []Insert // by number
}

// Inserts returns the lane's inserts that stand in the history whose links chain
// holds, in the order in which they were put there. The caller must not change them.
func (i *inserted) Inserts(chain []conversation.Hash) []Insert { return standing(i.inserts, chain) }

// standing returns those of inserts that stand in a history.
func standing(inserts []Insert, chain []conversation.Hash) []Insert {
	for i := range inserts {
		if inserts[i].stands(chain) {
			continue
		}
		kept := slices.Clone(inserts[:i])
		for _, insert := range inserts[i+1:] {
			if insert.stands(chain) {
				kept = append(kept, insert)
			}
		}
		return kept
	}
	return slices.Clip(inserts)
}

// NextInsert returns the number of the lane's next insert.
func (l *Lane) NextInsert() int {
	next := l.Taken + 1
	if n := len(l.inserts); n > 0 {
		next = max(next, l.inserts[n-1].Number+1)
	}
	return next
}

// Keep makes durable inserts part of the lane's prompt from now on.
func (i *inserted) Keep(inserts []Insert) { i.inserts = append(slices.Clip(i.inserts), inserts...) }

// Drop takes the lane's inserts from a number on out again.
func (i *inserted) Drop(from int) {
	at := slices.IndexFunc(i.inserts, func(insert Insert) bool { return insert.Number >= from })
	if at >= 0 {
		i.inserts = i.inserts[:at:at]
	}
}

// inherit takes over the inserts that stand in the first messages of the lane that this
// one forks from.
func (l *Lane) inherit(from *Lane, messages int) {
	for _, insert := range from.inserts {
		if insert.Message < messages {
			l.inserts = append(l.inserts, insert)
			l.Taken = insert.Number
		}
	}
}
