package session

import "sync"

// durability is how far a lane's messages have come on their way into the archive. Its
// mutex is its own: who notes that they have come never waits for the request that holds
// the lane.
type durability struct {
	mutex    sync.Mutex
	archived int // messages known to be durable, without a gap from 0
	handed   int // messages handed to what makes them durable, those included

	// A fork begins with messages that are written with the lane it comes from, and may
	// be durable only after it began.
	parent *durability // nil if nothing more comes from there
	shared int         // messages of the parent that count as the lane's own
}

// durable returns the durability of a lane of whose messages the first are durable.
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

// HandOver notes that the lane's first messages are on their way to the archive
// and returns how many of them had been before.
func (d *durability) HandOver(messages int) int {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.look()
	before := d.handed
	d.handed = max(d.handed, messages)
	return min(before, messages)
}

// Arrived notes that messages of the lane are durable, from index from to to
// (excluded). Behind messages that are not, they do not count.
func (d *durability) Arrived(from, to int) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if from <= d.look() {
		d.archived = max(d.archived, to)
		d.handed = max(d.handed, d.archived)
	}
}

// Lost notes that a hand-over failed: all messages that are not durable have to
// be handed over again.
func (d *durability) Lost() {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.handed = d.look()
}

// look takes over what has come with the parent by now and returns archived. The caller
// holds the mutex; a parent never looks at its forks.
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
