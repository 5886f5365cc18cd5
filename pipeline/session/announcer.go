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
	announceTimeout  = 2 * time.Second // the store has so long for an announcement
	announcePatience = time.Second     // an answer waits so long for it
	announceWriters  = 4               // workspaces that are written for at once
	announceMost     = 512             // lanes in one write
)

// Announcer tells all processes which lane a request belongs to while its provider is at
// work, so that the next request of the lane finds it wherever it is sent. Announcements of
// a workspace that come while one is written are written together.
type Announcer struct {
	announce func(ctx context.Context, workspace tenants.WorkspaceID, updates []Update) error
	failed   func(error)
	outage   *Outage // of the store: no answer waits for it then
	writers  chan struct{}
	ctx      context.Context //nolint:containedctx // ends what is being written when Stop has waited long enough
	cancel   context.CancelFunc

	mu      sync.Mutex
	waiting map[tenants.WorkspaceID]*announcement // by the workspaces that are being written for; nil while their queue is empty
	running sync.WaitGroup
}

// announcement is what waits to be written together.
type announcement struct {
	updates []Update
	done    chan struct{} // closed once it is written, or has failed
}

// NewAnnouncer returns an Announcer that writes by announce, as Store.Announce does. failed, which may be nil, hears of writes that failed or that an answer did not wait for.
func NewAnnouncer(announce func(ctx context.Context, workspace tenants.WorkspaceID, updates []Update) error, outage *Outage, failed func(error)) *Announcer {
	ctx, cancel := context.WithCancel(context.Background())
	return &Announcer{
		announce: announce, outage: outage, failed: failed, writers: make(chan struct{}, announceWriters), ctx: ctx, cancel: cancel,
		waiting: make(map[tenants.WorkspaceID]*announcement),
	}
}

// errLate says that an answer went out before all processes could know of its request.
var errLate = errors.New("the announcement of a lane took longer than an answer waits for it")

// Announced is an announcement on its way. Its zero value has nobody to wait for.
type Announced struct {
	done   <-chan struct{}
	failed func(error) // hears that it was not waited for to the end
}

// Wait returns once all processes find the lane, after announcePatience at most, or when ctx
// ends.
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

// Announce begins to tell all processes of a request. It does not wait, and while the store
// is away no answer has to. A nil Announcer does nothing.
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
		return Announced{} // the recorder tells of it
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

// Stop waits for what is being written, for announceTimeout at most. Nothing may be
// announced any more.
func (a *Announcer) Stop() {
	late := time.AfterFunc(announceTimeout, a.cancel)
	defer late.Stop()
	a.running.Wait()
	a.cancel()
}

// write writes what waits for a workspace until nothing does. After each write those that have waited
// longer have their turn.
func (a *Announcer) write(workspace tenants.WorkspaceID) {
	for more := true; more; {
		a.writers <- struct{}{} // who has waited longest goes first
		var batch *announcement
		if batch, more = a.next(workspace); more {
			a.tell(workspace, batch)
		}
		<-a.writers
	}
}

// next returns what waits for a workspace, and forgets the workspace if nothing does.
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
	if a.ctx.Err() == nil { // else it says nothing of the store
		a.outage.Note(err)
	}
	if err != nil && a.failed != nil {
		a.failed(err)
	}
}
