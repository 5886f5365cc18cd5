// Package live tells open pages what happens in their workspace, so that they can offer
// to show it. A page hears how many requests there are, nothing of what is in them.
package live

import (
	"errors"
	"strconv"
	"strings"
	"sync"

	"palimpsest/tenants"
)

// The most streams that are open at a time. A page beyond them works without.
const (
	maxStreams     = 2000 // of the process
	maxOfWorkspace = 100
)

var (
	errFull   = errors.New("as many streams are open as may be")
	errClosed = errors.New("the process is stopping")
)

// Hub hands what happens in workspaces to the streams of their readers.
type Hub struct {
	mu      sync.Mutex
	streams map[tenants.WorkspaceID]map[*stream]bool
	open    int
	closed  chan struct{} // is closed by Close
	once    sync.Once
}

// stream is what one page has yet to be told.
type stream struct {
	exchanges int           // since it was told last
	missed    bool          // some notice may have been lost
	recheck   bool          // whether its reader is still logged in
	wake      chan struct{} // holds one value while there is something
}

// NewHub returns a Hub.
func NewHub() *Hub {
	return &Hub{streams: make(map[tenants.WorkspaceID]map[*stream]bool), closed: make(chan struct{})}
}

// Happened tells the streams of a workspace that so many exchanges were recorded. It
// never waits for a reader.
func (h *Hub) Happened(workspace tenants.WorkspaceID, exchanges int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for one := range h.streams[workspace] {
		one.exchanges += exchanges
		one.ring()
	}
}

// Told is Happened with the payload of a notification: "workspace/count".
func (h *Hub) Told(payload string) {
	name, count, _ := strings.Cut(payload, "/")
	workspace, err := tenants.ParseWorkspaceID(name)
	exchanges, countErr := strconv.Atoi(count)
	if err == nil && countErr == nil {
		h.Happened(workspace, exchanges)
	}
}

// Missed tells all streams that notices may have been lost.
func (h *Hub) Missed() { h.all(func(one *stream) { one.missed = true }) }

// Recheck has all streams look whether their reader is still logged in.
func (h *Hub) Recheck() { h.all(func(one *stream) { one.recheck = true }) }

func (h *Hub) all(change func(*stream)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, of := range h.streams {
		for one := range of {
			change(one)
			one.ring()
		}
	}
}

// Close ends all streams, and refuses new ones. It may be called twice.
func (h *Hub) Close() { h.once.Do(func() { close(h.closed) }) }

// Open returns how many streams are open.
func (h *Hub) Open() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.open
}

// subscribe returns a stream of a workspace, and what ends it.
func (h *Hub) subscribe(workspace tenants.WorkspaceID) (*stream, func(), error) {
	select {
	case <-h.closed:
		return nil, nil, errClosed
	default:
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.open >= maxStreams || len(h.streams[workspace]) >= maxOfWorkspace {
		return nil, nil, errFull
	}
	if h.streams[workspace] == nil {
		h.streams[workspace] = make(map[*stream]bool)
	}
	added := &stream{wake: make(chan struct{}, 1)}
	h.streams[workspace][added] = true
	h.open++
	return added, func() { h.forget(workspace, added) }, nil
}

func (h *Hub) forget(workspace tenants.WorkspaceID, one *stream) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.streams[workspace], one)
	if len(h.streams[workspace]) == 0 {
		delete(h.streams, workspace)
	}
	h.open--
}

// news is what a stream is to be told.
type news struct {
	exchanges       int
	missed, recheck bool
}

// take returns what a stream has yet to be told, and takes it as told.
func (h *Hub) take(one *stream) news {
	h.mu.Lock()
	defer h.mu.Unlock()
	found := news{exchanges: one.exchanges, missed: one.missed, recheck: one.recheck}
	one.exchanges, one.missed, one.recheck = 0, false, false
	return found
}

// ring wakes the writer of the stream.
func (s *stream) ring() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}
