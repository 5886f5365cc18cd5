package session

import (
	"context"
	"slices"

	"github.com/google/uuid"

	"palimpsest/pipeline/archive"
)

// Left says which history a request has left behind, where its client names the
// session and goes on in it with another history. The zero Left says nothing.
type Left struct {
	Session uuid.UUID // of the request
	Lane    uuid.UUID // of the request; uuid.Nil: nothing was left
	Kind    Kind      // of that lane

	// From is the lane that was left: that of the run's newest request before this
	// one. uuid.Nil: this process has not seen it, the store may know.
	From uuid.UUID

	// Messages is how many messages of From the client had; 0: it is not known.
	Messages int
}

// Found reports whether a history was left.
func (l Left) Found() bool { return l.Lane != uuid.Nil }

// Before returns the lane of a session's main conversation that was used last
// before another one was opened, and how many messages it has. It returns
// ErrNotFound if there is none.
func (m *Memory) Before(_ context.Context, _, session, lane uuid.UUID) (left uuid.UUID, messages int, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var newest *Found
	for id, found := range m.lanes {
		if found.Session != session || id == lane || found.Kind == Subagent || found.Kind == Side {
			continue
		}
		if newest == nil || found.Heat.At.After(newest.Heat.At) {
			newest, left = found, id
		}
	}
	if newest == nil {
		return uuid.Nil, 0, ErrNotFound
	}
	return left, newest.Tip, nil
}

// MemoryArchive reads the originals that a Memory keeps.
type MemoryArchive struct{ *Memory }

// Originals returns the messages of a lane from index from to to (excluded), as far
// as they were stored, in order.
func (m MemoryArchive) Originals(_ context.Context, _, lane uuid.UUID, from, to int) ([]archive.Entry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var entries []archive.Entry
	for index, entry := range m.kept[lane] {
		if index >= from && index < to {
			entries = append(entries, entry)
		}
	}
	slices.SortFunc(entries, func(a, b archive.Entry) int { return a.Index - b.Index })
	return entries, nil
}
