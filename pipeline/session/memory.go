package session

import (
	"bytes"
	"context"
	"slices"
	"sync"

	"github.com/google/uuid"

	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/conversation"
	"palimpsest/tenants"
)

// Memory is a Store in memory, for replays without a database. It also keeps the
// originals that were handed to it.
type Memory struct {
	mu    sync.Mutex
	heads map[tenants.WorkspaceID]map[conversation.Hash]head
	lanes map[uuid.UUID]*Found
	kept  map[uuid.UUID]map[int]archive.Entry
}

// NewMemory returns an empty store.
func NewMemory() *Memory {
	return &Memory{
		heads: make(map[tenants.WorkspaceID]map[conversation.Hash]head),
		lanes: make(map[uuid.UUID]*Found),
		kept:  make(map[uuid.UUID]map[int]archive.Entry),
	}
}

// Find implements Store.
func (m *Memory) Find(_ context.Context, workspace tenants.WorkspaceID, heads []conversation.Hash) (Found, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, head := range slices.Backward(heads) {
		known, ok := m.heads[workspace][head]
		if !ok {
			continue
		}
		found := *m.lanes[known.lane]
		found.Match = known.position
		found.Projections = append([]Projection(nil), found.Projections...)
		found.Inserts = slices.Clone(found.Inserts)
		return found, nil
	}
	return Found{}, ErrNotFound
}

// Stands implements Store.
func (m *Memory) Stands(ctx context.Context, workspace tenants.WorkspaceID, heads []conversation.Hash) (Standing, error) {
	found, err := m.Find(ctx, workspace, heads)
	if err != nil {
		return Standing{}, err
	}
	standing := found.Stored().standing()
	standing.Match = found.Match
	return standing, nil
}

// Announce implements Store.
func (m *Memory) Announce(_ context.Context, _ tenants.WorkspaceID, seen []Seen) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, one := range seen {
		one.Entries = nil
		m.record(one)
	}
	return nil
}

// Commit implements Store.
func (m *Memory) Commit(_ context.Context, seen Seen, projection Projection) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if known, ok := m.lanes[seen.Lane]; ok && projection.Reason == ReasonIdle && !known.Heat.At.IsZero() && !known.Heat.Cooled(seen.At) {
		return ErrWarm
	}
	lane := m.record(seen)
	for _, stored := range lane.Projections {
		if stored.Number == projection.Number {
			return ErrOvertaken
		}
	}
	lane.Projections = append(lane.Projections, projection)
	return nil
}

// Inject implements Store.
func (m *Memory) Inject(_ context.Context, seen Seen, inserts []Insert) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	lane := m.record(seen)
	for _, stored := range lane.Inserts {
		if stored.Number > lane.Taken && stored.Number >= inserts[0].Number {
			return ErrOvertaken
		}
	}
	lane.Inserts = append(lane.Inserts, inserts...)
	return nil
}

// Withdraw implements Store.
func (m *Memory) Withdraw(_ context.Context, _ tenants.WorkspaceID, lane uuid.UUID, from int) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if known, ok := m.lanes[lane]; ok {
		known.Inserts = slices.DeleteFunc(known.Inserts, func(insert Insert) bool { return insert.Number >= max(from, known.Taken+1) })
	}
	return nil
}

// Record implements Store.
func (m *Memory) Record(_ context.Context, _ tenants.Tenant, seen []Seen) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, one := range seen {
		m.record(one)
	}
	return nil
}

// Originals returns the originals of a lane by their place in the client's list.
func (m *Memory) Originals(lane uuid.UUID) map[int]archive.Entry {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.kept[lane]
}

func (m *Memory) record(seen Seen) *Found {
	lane, ok := m.lanes[seen.Lane]
	if !ok {
		lane = &Found{Session: seen.Session, Lane: seen.Lane, Naming: seen.Naming, Kind: seen.Kind, IsFork: seen.Parent != uuid.Nil}
		m.lanes[seen.Lane] = lane
		m.kept[seen.Lane] = make(map[int]archive.Entry)
		m.inherit(lane, seen)
	}
	lane.Tip = max(lane.Tip, seen.Position)
	if !seen.Heat.At.Before(lane.Heat.At) {
		lane.Heat = seen.Heat
	}
	if !seen.Attempts.At.Before(lane.Attempts.At) {
		lane.Attempts = seen.Attempts
	}
	for _, entry := range seen.Entries {
		entry.Raw = bytes.Clone(entry.Raw)
		m.kept[seen.Lane][entry.Index] = entry
	}
	for m.kept[seen.Lane][lane.Archived].Size > 0 {
		lane.Archived++
	}
	workspace := seen.Scope.Workspace
	if m.heads[workspace] == nil {
		m.heads[workspace] = make(map[conversation.Hash]head)
	}
	if seen.HasHead() {
		m.heads[workspace][seen.Head] = head{lane: seen.Lane, position: seen.Position}
	}
	return lane
}

// inherit gives a new lane what it shares with the lane it forked from.
func (m *Memory) inherit(lane *Found, seen Seen) {
	parent, ok := m.lanes[seen.Parent]
	if !ok {
		return
	}
	for _, projection := range parent.Projections {
		if projection.Number <= seen.Inherited && projection.Covers <= seen.ForkAt {
			lane.Projections = append(lane.Projections, projection)
		}
	}
	lane.Taken = seen.Taken
	for _, insert := range parent.Inserts {
		if insert.Number <= seen.Taken && insert.Message < seen.ForkAt {
			lane.Inserts = append(lane.Inserts, insert)
		}
	}
	for index, entry := range m.kept[seen.Parent] {
		if index < seen.ForkAt {
			m.kept[seen.Lane][index] = entry
		}
	}
}

var _ Store = (*Memory)(nil)
