package session

import (
	"slices"

	"palimpsest/pipeline/conversation"
)

// InSystem is the Message of an insert behind the client's own system prompt.
const InSystem = -1

// Insert is text that a module has put into a lane's prompt. It stays in its place, with the same bytes,
// until an epoch folds its message.
type Insert struct {
	Number  int               `json:"number"`  // in its lane, from 1; 0 if new in this request and not durable yet
	Message int               `json:"message"` // message of the client's list that it is appended to as a separate block; InSystem for behind the client's system prompt
	Chain   conversation.Hash `json:"chain"`   // link of the history after that message; the root's for InSystem
	Module  string            `json:"module"`  // "rehydrator", "compaction-bridge", "patterns"
	Text    string            `json:"text"`
	Tokens  int               `json:"tokens"`          // o200k tokens that it adds to the prompt
	Items   []string          `json:"items,omitempty"` // its items, for pages, headers and deduplication: pointers, pattern ids, …
}

// Count returns the number of its items, at least 1.
func (i *Insert) Count() int { return max(1, len(i.Items)) }

// stands reports whether the insert's message is part of the history with the links of chain.
func (i *Insert) stands(chain []conversation.Hash) bool {
	at := i.Message + 1
	return at < len(chain) && chain[at] == i.Chain
}

// Stands reports whether the insert is in a prompt with projection, which may be nil. It is not if its
// message is rendered.
func (i *Insert) Stands(projection *Projection) bool {
	return i.Message == InSystem || projection.Keeps(i.Message)
}

// Keeps reports whether a message is sent unchanged with the projection, which may be nil.
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

// weight is the insert's approximate size in memory, in bytes.
func (i *Insert) weight() int {
	bytes := 160 + len(i.Text)
	for _, item := range i.Items {
		bytes += 16 + len(item)
	}
	return bytes
}

// inserted holds the inserts of a lane's prompt.
type inserted struct {
	inserts []Insert // by number
}

// Inserts returns the lane's inserts that belong to the history with the links of chain, in the order of
// their creation. The caller must not change them.
func (i *inserted) Inserts(chain []conversation.Hash) []Insert { return ofHistory(i.inserts, chain) }

// ofHistory returns the inserts that belong to a history.
func ofHistory(inserts []Insert, chain []conversation.Hash) []Insert {
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
	next := l.Ancestry.Taken + 1
	if n := len(l.inserts); n > 0 {
		next = max(next, l.inserts[n-1].Number+1)
	}
	return next
}

// Keep adds durable inserts to the lane's prompt.
func (i *inserted) Keep(inserts []Insert) { i.inserts = append(slices.Clip(i.inserts), inserts...) }

// Drop removes the lane's inserts with a number of from or more.
func (i *inserted) Drop(from int) {
	at := slices.IndexFunc(i.inserts, func(insert Insert) bool { return insert.Number >= from })
	if at >= 0 {
		i.inserts = i.inserts[:at:at]
	}
}

// inherit takes over the inserts in the shared messages of the lane that this one forks from.
func (l *Lane) inherit(from *Lane, messages int) {
	for _, insert := range from.inserts {
		if insert.Message < messages {
			l.inserts = append(l.inserts, insert)
			l.Ancestry.Taken = insert.Number
		}
	}
}
