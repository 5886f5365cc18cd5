package session

import (
	"cmp"

	"github.com/google/uuid"

	"palimpsest/pipeline/conversation"
)

// First returns the index of the exchange's first entry, or of the next one if it has none.
func (s *Update) First() int { return s.Position - len(s.Entries) }

// Base returns the link of the history before the exchange's entries: the end of the request that it
// continues, or its own end if it adds no message.
func (s *Update) Base() conversation.Hash {
	if len(s.Links) == 0 {
		return s.Head
	}
	return s.Links[0]
}

// MoveTo assigns the exchange to another lane.
func (s *Update) MoveTo(lane uuid.UUID, from Ancestry) { s.Lane, s.Ancestry = lane, from }

// Fork moves the exchange to a fork of its lane before its first entry. The fork takes over the lane's
// projections and inserts up to two numbers.
func (s *Update) Fork(inherited, taken int) {
	from := Ancestry{Parent: s.Lane, ForkAt: s.First(), Inherited: inherited, Taken: taken}
	s.MoveTo(forkID(s.Lane, cmp.Or(s.Kind, Main), s.Head), from)
}

// Skip removes the entries before a message, because the archive has them.
func (s *Update) Skip(messages int) {
	skipped := min(messages-s.First(), len(s.Entries))
	if skipped <= 0 {
		return
	}
	s.Entries = s.Entries[skipped:]
	if s.Links = s.Links[min(skipped, len(s.Links)):]; len(s.Entries) == 0 {
		s.Links = nil
	}
}
