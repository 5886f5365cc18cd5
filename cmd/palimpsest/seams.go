package main

import (
	"context"
	"sync"

	"github.com/google/uuid"

	"palimpsest/pipeline/archive/archivedb"
	"palimpsest/pipeline/jobs/jobsdb"
	"palimpsest/pipeline/prompt"
	"palimpsest/pipeline/session/journal"
	"palimpsest/tenants"
	"palimpsest/tenants/identity"
	"palimpsest/tenants/tenantsdb"
)

// seams are parts of a running program that commands use in addition to its servers.
type seams struct {
	db      *tenantsdb.DB
	people  *identity.Service
	work    *jobsdb.Runner
	mover   *archivedb.Mover
	journal *journal.Journal // compactions that wait for the database
	writer  *prompt.Writer

	recorded tally // exchanges of this process that have become durable
}

// tally is a counter that others can wait for.
type tally struct {
	mu      sync.Mutex
	count   int
	changed chan struct{} // closed and replaced when count changes; nil without waiters
}

// counting returns a function that counts exchanges and then calls next.
func (t *tally) counting(next func(tenants.WorkspaceID, []uuid.UUID)) func(tenants.WorkspaceID, []uuid.UUID) {
	return func(workspace tenants.WorkspaceID, apiKeys []uuid.UUID) {
		t.add(len(apiKeys))
		next(workspace, apiKeys)
	}
}

func (t *tally) add(n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.count += n
	if t.changed != nil {
		close(t.changed)
		t.changed = nil
	}
}

// wait returns once the count is at least n, or with the context's error.
func (t *tally) wait(ctx context.Context, n int) error {
	for {
		t.mu.Lock()
		if t.count >= n {
			t.mu.Unlock()
			return nil
		}
		if t.changed == nil {
			t.changed = make(chan struct{})
		}
		changed := t.changed
		t.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
