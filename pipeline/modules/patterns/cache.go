package patterns

import (
	"context"
	"sync"
	"time"

	"palimpsest/tenants"
)

const (
	shelfAge     = 5 * time.Minute  // maximum age, in case a notice of a change is lost
	shelfPause   = 10 * time.Second // after a failure, before the next attempt
	shelfTimeout = time.Second      // of a read, because a request waits for it
	maxShelves   = 20_000           // workspaces in memory
)

// Cache serves approved patterns from memory. It is safe for concurrent use.
type Cache struct {
	read func(ctx context.Context, workspace tenants.WorkspaceID) ([]Pattern, error) // the approved ones
	now  func() time.Time

	mu      sync.RWMutex
	boards  map[tenants.WorkspaceID]*board
	changes uint64 // counts calls of Forget and ForgetAll
}

// board holds the patterns of one workspace.
type board struct {
	index *index
	until time.Time
}

// NewCache returns a Cache that reads approved patterns of a workspace on demand, at most
// MaxServed, those edited last first.
func NewCache(read func(ctx context.Context, workspace tenants.WorkspaceID) ([]Pattern, error), now func() time.Time) *Cache {
	return &Cache{read: read, now: now, boards: map[tenants.WorkspaceID]*board{}}
}

// Forget has a workspace's patterns read again.
func (s *Cache) Forget(workspace tenants.WorkspaceID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changes++
	delete(s.boards, workspace)
}

// ForgetAll has the patterns of all workspaces read again.
func (s *Cache) ForgetAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changes++
	clear(s.boards)
}

// of returns the patterns of a workspace; nil if there are no patterns. If it fails to read them,
// it returns those read last, if any.
func (s *Cache) of(ctx context.Context, workspace tenants.WorkspaceID) *index {
	s.mu.RLock()
	known, changes := s.boards[workspace], s.changes
	s.mu.RUnlock()
	now := s.now()
	if known != nil && now.Before(known.until) {
		return known.index
	}
	fresh := &board{until: now.Add(shelfAge)}
	ctx, cancel := context.WithTimeout(ctx, shelfTimeout)
	defer cancel()
	approved, err := s.read(ctx, workspace)
	switch {
	case err == nil:
		fresh.index = newIndex(approved)
	case known != nil:
		fresh.index, fresh.until = known.index, now.Add(shelfPause)
	default:
		fresh.until = now.Add(shelfPause)
	}
	s.keep(workspace, fresh, changes)
	return fresh.index
}

// keep puts a workspace's patterns into the cache, unless a change was reported since they were
// read.
func (s *Cache) keep(workspace tenants.WorkspaceID, fresh *board, changes uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.changes != changes {
		return
	}
	if len(s.boards) >= maxShelves {
		clear(s.boards)
	}
	s.boards[workspace] = fresh
}
