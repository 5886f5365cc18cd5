package archive

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"palimpsest/pipeline/conversation"
	"palimpsest/tenants"
)

const (
	// restoredEntries is how many entries are requested at once.
	restoredEntries = 2000
	// restoredAtOnce and restoredBytes bound the messages in memory.
	restoredAtOnce = 64
	restoredBytes  = 8 << 20
)

// Object is a message requested by its hash.
type Object struct {
	Raw    []byte
	Damage error // ErrDamaged or ErrNotFound if it cannot be restored; otherwise nil
}

// Restored is one restored message of a lane.
type Restored struct {
	Entry

	Link   conversation.Hash // of the chain after it
	Damage error             // why Raw is nil; nil if it is the archived message
}

// Restore passes the first messages of a lane to give, at most limit, in order and with a bounded number of
// them in memory. Damaged messages come with their damage. It returns give's first error. Otherwise it
// returns ErrDamaged, with the place, if the entries do not match the stored chain.
func Restore(ctx context.Context, from Reader, workspace tenants.WorkspaceID, lane uuid.UUID, limit int, give func(Restored) error) error {
	stored, headErr := from.Head(ctx, workspace, lane)
	if headErr != nil && !errors.Is(headErr, ErrDamaged) {
		return headErr
	}
	restore := restoring{from: from, workspace: workspace, lane: lane, give: give, link: NewHead().Link, head: NewHead(), stored: stored}
	next := 0
	for limit > 0 {
		entries, err := from.Entries(ctx, workspace, lane, next, min(limit, restoredEntries))
		if err != nil {
			return err
		}
		if len(entries) == 0 {
			break
		}
		if err := restore.all(ctx, entries); err != nil {
			return err
		}
		next, limit = entries[len(entries)-1].Index+1, limit-len(entries)
	}
	if headErr != nil {
		return headErr
	}
	return restore.proven(limit <= 0)
}

// restoring is a lane during its restoration.
type restoring struct {
	from      Reader
	workspace tenants.WorkspaceID
	lane      uuid.UUID
	give      func(Restored) error

	link   conversation.Hash // after the last message given back
	head   Head              // over the messages from 0 without a gap
	stored Head
	broken error
}

func (r *restoring) all(ctx context.Context, entries []Entry) error {
	for len(entries) > 0 {
		count, size := 0, 0
		for count < len(entries) && count < restoredAtOnce && (count == 0 || size+entries[count].Size <= restoredBytes) {
			size += entries[count].Size
			count++
		}
		if err := r.some(ctx, entries[:count]); err != nil {
			return err
		}
		entries = entries[count:]
	}
	return nil
}

func (r *restoring) some(ctx context.Context, entries []Entry) error {
	hashes := make([]conversation.Hash, len(entries))
	for i := range entries {
		hashes[i] = entries[i].Hash
	}
	objects, err := r.from.Objects(ctx, r.workspace, hashes)
	if err != nil {
		return err
	}
	for i, entry := range entries {
		r.link = Link(r.link, entry.Index, entry.Hash)
		if entry.Index == r.head.Messages {
			r.head = r.head.Extend(entry.Hash)
			if r.head.Messages == r.stored.Messages && r.head.Link != r.stored.Link {
				r.broken = fmt.Errorf("lane %s: %w: its first %d messages are not those that were archived", r.lane, ErrDamaged, r.stored.Messages)
			}
		}
		entry.Raw = objects[i].Raw
		if err := r.give(Restored{Entry: entry, Link: r.link, Damage: objects[i].Damage}); err != nil {
			return err
		}
	}
	return nil
}

// proven returns the damage of the chain, or nil.
func (r *restoring) proven(cut bool) error {
	if r.broken == nil && !cut && r.head.Messages < r.stored.Messages {
		return fmt.Errorf("message %d of lane %s: %w: its place is empty", r.head.Messages, r.lane, ErrDamaged)
	}
	return r.broken
}
