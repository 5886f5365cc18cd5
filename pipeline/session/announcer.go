package session

import (
	"context"
	"errors"
	"sync"
	"time"

	"palimpsest/pipeline/spans"
	"palimpsest/tenants"
)

const (
	announceTimeout  = 2 * time.Second // timeout of an announcement
	announcePatience = time.Second     // how long an answer waits for it
	announceWriters  = 4               // workspaces written in parallel
	announceMost     = 512             // lanes in one write
)

// Announcer notifies all processes of a request's lane while its provider is at work, so that the lane's next
// request finds it on any process. Announcements of a workspace that arrive during a write are written
// together.
type Announcer struct {
	announce func(ctx context.Context, workspace tenants.WorkspaceID, updates []Update) error
	failed   func(error)
	outage   *Outage // of the store, during which no answer waits for it
	writers  chan struct{}
	ctx      context.Context //nolint:containedctx // ends what is being written when Stop has waited long enough
	cancel   context.CancelFunc

	mu      sync.Mutex
	waiting map[tenants.WorkspaceID]*announcement // by workspace with a writer; nil while its queue is empty
	running sync.WaitGroup
}

// announcement is a batch of updates to write together.
type announcement struct {
	updates []Update
	done    chan struct{} // closed once it is written or has failed
}

// NewAnnouncer returns an Announcer that writes with announce, as Store.Announce does. failed is notified
// about failed writes and about answers that did not wait. Optional.
func NewAnnouncer(announce func(ctx context.Context, workspace tenants.WorkspaceID, updates []Update) error, outage *Outage, failed func(error)) *Announcer {
	ctx, cancel := context.WithCancel(context.Background())
	return &Announcer{
		announce: announce, outage: outage, failed: failed, writers: make(chan struct{}, announceWriters), ctx: ctx, cancel: cancel,
		waiting: make(map[tenants.WorkspaceID]*announcement),
	}
}

// errLate says that an answer went out before all processes could know of its request.
var errLate = errors.New("the announcement of a lane took longer than an answer waits for it")

// Announced is an announcement in progress. Its zero value has nothing to wait for.
type Announced struct {
	done   <-chan struct{}
	failed func(error) // is notified if the wait ended early
}

// Wait returns once all processes find the lane, after announcePatience, or when ctx ends.
func (a Announced) Wait(ctx context.Context) {
	if a.done == nil {
		return
	}
	select {
	case <-a.done:
		return
	default:
	}
	ctx, span := spans.Start(ctx, "announce lane")
	defer span.End()
	patience := time.NewTimer(announcePatience)
	defer patience.Stop()
	select {
	case <-a.done:
	case <-patience.C:
		if a.failed != nil {
			a.failed(errLate)
		}
	case <-ctx.Done():
	}
}

// Announce begins to notify all processes of a request, without blocking. While the store is away, Wait of
// the result returns at once. A nil Announcer does nothing.
func (a *Announcer) Announce(update Update) Announced {
	if a == nil {
		return Announced{}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	workspace := update.Scope.Workspace
	next, busy := a.waiting[workspace]
	if next == nil {
		next = &announcement{done: make(chan struct{})}
		a.waiting[workspace] = next
	}
	if len(next.updates) >= announceMost {
		return Announced{} // the recorder announces it
	}
	next.updates = append(next.updates, update)
	if !busy {
		a.running.Go(func() { a.write(workspace) })
	}
	if a.outage.Lasts() {
		return Announced{}
	}
	return Announced{done: next.done, failed: a.failed}
}

// Stop waits for the current writes, for announceTimeout at most. Announce must not be called afterwards.
func (a *Announcer) Stop() {
	late := time.AfterFunc(announceTimeout, a.cancel)
	defer late.Stop()
	a.running.Wait()
	a.cancel()
}

// write writes the announcements of a workspace until its queue is empty. After each write, workspaces that
// have waited longer take their turn.
func (a *Announcer) write(workspace tenants.WorkspaceID) {
	for more := true; more; {
		a.writers <- struct{}{} // the longest waiting workspace goes first
		var batch *announcement
		if batch, more = a.next(workspace); more {
			a.tell(workspace, batch)
		}
		<-a.writers
	}
}

// next returns a workspace's queued announcement, and removes the workspace if its queue is empty.
func (a *Announcer) next(workspace tenants.WorkspaceID) (batch *announcement, more bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	batch = a.waiting[workspace]
	if batch == nil {
		delete(a.waiting, workspace)
		return nil, false
	}
	a.waiting[workspace] = nil
	return batch, true
}

// tell writes one announcement.
func (a *Announcer) tell(workspace tenants.WorkspaceID, batch *announcement) {
	defer close(batch.done)
	ctx, cancel := context.WithTimeout(a.ctx, announceTimeout)
	defer cancel()
	err := a.announce(ctx, workspace, batch.updates)
	if a.ctx.Err() == nil { // otherwise the error is not the store's
		a.outage.Note(err)
	}
	if err != nil && a.failed != nil {
		a.failed(err)
	}
}
