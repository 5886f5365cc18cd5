package ipc

import (
	"palimpsest/pipeline"
	"palimpsest/pipeline/session"
)

// addedTo returns the o200k tokens of the inserts at each message. They count with
// messages that stay as they are; whatever changes a message drops them. What pointers
// save does not count in a plan: the epoch may take what they point at.
func addedTo(exchange *pipeline.Exchange) map[int]int {
	added := map[int]int{}
	for i := range exchange.Inserts {
		if insert := &exchange.Inserts[i]; !insert.IsPointer() {
			added[insert.Message] += insert.Tokens
		}
	}
	return added
}

// originals returns the o200k tokens of messages as the client sent them, with the
// inserts at them.
func (p *planner) originals(from, to int) int {
	size := 0
	for i, digest := range p.exchange.Digests[from:to] {
		size += digest.Tokens + p.added[from+i]
	}
	return size
}

// weigh returns the o200k tokens of a part, with the inserts that stand in it.
func (p *planner) weigh(part session.Part) int {
	size := part.Tokens
	for i := part.From; part.Raw == nil && i < part.To; i++ {
		size += p.added[i]
	}
	return size
}
