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

// Memory is a Store in memory, for replays without a database. It also keeps the originals that it receives.
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
func (m *Memory) Announce(_ context.Context, _ tenants.WorkspaceID, updates []Update) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, one := range updates {
		one.Messages.Entries = nil
		m.record(one)
	}
	return nil
}

// Commit implements Store.
func (m *Memory) Commit(_ context.Context, update Update, projection Projection) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if known, ok := m.lanes[update.Lane]; ok && projection.Reason == ReasonIdle && !known.Heat.At.IsZero() && !known.Heat.Cooled(update.At) {
		return ErrWarm
	}
	lane := m.record(update)
	for _, stored := range lane.Projections {
		if stored.Number == projection.Number {
			return ErrOvertaken
		}
	}
	lane.Projections = append(lane.Projections, projection)
	return nil
}

// Inject implements Store.
func (m *Memory) Inject(_ context.Context, update Update, inserts []Insert) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	lane := m.record(update)
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
func (m *Memory) Record(_ context.Context, _ tenants.Tenant, updates []Update) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, one := range updates {
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

func (m *Memory) record(update Update) *Found {
	lane, ok := m.lanes[update.Lane]
	if !ok {
		lane = &Found{Session: update.Session, Lane: update.Lane, Naming: update.Naming, Kind: update.Kind, IsFork: update.ForkAt > 0}
		m.lanes[update.Lane] = lane
		m.kept[update.Lane] = make(map[int]archive.Entry)
		m.inherit(lane, update)
	}
	lane.Tip = max(lane.Tip, update.Messages.Position)
	if !update.Heat.At.Before(lane.Heat.At) {
		lane.Heat = update.Heat
	}
	if !update.Attempts.At.Before(lane.Attempts.At) {
		lane.Attempts = update.Attempts
	}
	for _, entry := range update.Messages.Entries {
		entry.Raw = bytes.Clone(entry.Raw)
		m.kept[update.Lane][entry.Index] = entry
	}
	for m.kept[update.Lane][lane.Archived].Size > 0 {
		lane.Archived++
	}
	workspace := update.Scope.Workspace
	if m.heads[workspace] == nil {
		m.heads[workspace] = make(map[conversation.Hash]head)
	}
	if update.HasHead() {
		m.heads[workspace][update.Messages.Head] = head{lane: update.Lane, position: update.Messages.Position}
	}
	return lane
}

// inherit copies the shared part of a new lane from the lane it forked from.
func (m *Memory) inherit(lane *Found, update Update) {
	parent, ok := m.lanes[update.Parent]
	if !ok {
		return
	}
	for _, projection := range parent.Projections {
		if projection.Number <= update.Inherited && projection.Covers <= update.ForkAt {
			lane.Projections = append(lane.Projections, projection)
		}
	}
	lane.Taken = update.Taken
	for _, insert := range parent.Inserts {
		if insert.Number <= update.Taken && insert.Message < update.ForkAt {
			lane.Inserts = append(lane.Inserts, insert)
		}
	}
	for index, entry := range m.kept[update.Parent] {
		if index < update.ForkAt {
			m.kept[update.Lane][index] = entry
		}
	}
}

var _ Store = (*Memory)(nil)
