package session

import (
	"cmp"
	"sync"

	"github.com/google/uuid"

	"palimpsest/pipeline/conversation"
)

// durability tracks a lane's messages on their way into the archive. It has its own mutex, so that updates
// never wait for the request that holds the lane.
type durability struct {
	mutex    sync.Mutex
	archived int // messages known to be durable, without a gap from 0
	handed   int // messages handed over for storing, including the archived ones

	// A fork begins with messages that are written with its parent lane, and they may become durable only
	// after the fork began.
	parent *durability // nil once no more messages come from there
	shared int         // messages of the parent that count as the lane's own
}

// durable returns the durability of a lane whose first archived messages are durable.
func durable(archived int) *durability {
	return &durability{archived: archived, handed: archived}
}

// fork returns the durability of a lane that shares the first messages.
func (d *durability) fork(shared int) *durability {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	fork := durable(min(d.look(), shared))
	fork.shared, fork.parent = shared, d
	if d.parent != nil && shared <= d.shared {
		fork.parent = d.parent // so that retries of retries do not wait for each other
	}
	return fork
}

// Archived returns how many messages of the lane are known to be durable.
func (d *durability) Archived() int {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	return d.look()
}

// HandOver notes that the lane's first messages are on their way to the archive and returns how many of them
// already were.
func (d *durability) HandOver(messages int) int {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.look()
	before := d.handed
	d.handed = max(d.handed, messages)
	return min(before, messages)
}

// Arrived notes that messages of the lane from index from to to (excluded) are durable. It ignores messages
// after a gap.
func (d *durability) Arrived(from, to int) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if from <= d.look() {
		d.archived = max(d.archived, to)
		d.handed = max(d.handed, d.archived)
	}
}

// Lost notes that a hand-over failed, so that all messages that are not durable must be handed over again.
func (d *durability) Lost() {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.handed = d.look()
}

// look takes over the parent's progress and returns archived. The caller holds the mutex. There is no
// deadlock, since a parent never looks at its forks.
func (d *durability) look() int {
	if d.parent != nil {
		d.archived = max(d.archived, min(d.parent.Archived(), d.shared))
		d.handed = max(d.handed, d.archived)
	}
	if d.archived >= d.shared {
		d.parent = nil
	}
	return d.archived
}

// First returns the index of the exchange's first entry, or of the next one if it has none.
func (s *Update) First() int { return s.Messages.Position - len(s.Messages.Entries) }

// Base returns the link of the history before the exchange's entries: the end of the request that it
// continues, or its own end if it adds no message.
func (s *Update) Base() conversation.Hash {
	if len(s.Messages.Links) == 0 {
		return s.Messages.Head
	}
	return s.Messages.Links[0]
}

// MoveTo assigns the exchange to another lane.
func (s *Update) MoveTo(lane uuid.UUID, from Ancestry) { s.Lane, s.Ancestry = lane, from }

// Fork moves the exchange to a fork of its lane before its first entry. The fork takes over the lane's
// projections and inserts up to two numbers.
func (s *Update) Fork(inherited, taken int) {
	from := Ancestry{Parent: s.Lane, ForkAt: s.First(), Inherited: inherited, Taken: taken}
	s.MoveTo(forkID(s.Lane, cmp.Or(s.Kind, Main), s.Messages.Head), from)
}

// Skip removes the entries before a message, because the archive has them.
func (s *Update) Skip(messages int) {
	skipped := min(messages-s.First(), len(s.Messages.Entries))
	if skipped <= 0 {
		return
	}
	s.Messages.Entries = s.Messages.Entries[skipped:]
	if s.Messages.Links = s.Messages.Links[min(skipped, len(s.Messages.Links)):]; len(s.Messages.Entries) == 0 {
		s.Messages.Links = nil
	}
}
