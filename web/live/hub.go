// Package live notifies open pages of new requests in their workspace, so that they can offer to show them. A
// page gets only the number of requests, not their content.
package live

import (
	"errors"
	"strconv"
	"strings"
	"sync"

	"github.com/google/uuid"

	"palimpsest/tenants"
)

// Limits of the concurrently open streams. Pages beyond them work without live updates.
const (
	maxStreams     = 2000 // of the process
	maxOfWorkspace = 100
)

var (
	errFull   = errors.New("as many streams are open as may be")
	errClosed = errors.New("the process is stopping")
)

// Hub passes workspaces' events to the streams of their readers.
type Hub struct {
	mu      sync.Mutex
	streams map[tenants.WorkspaceID]map[*stream]bool
	open    int
	closed  chan struct{} // closed by Close
	once    sync.Once
}

// stream is one page's pending events.
type stream struct {
	visible   tenants.Visible
	exchanges int           // since the last event
	missed    bool          // notifications may have been lost
	recheck   bool          // check whether the reader is still logged in
	wake      chan struct{} // holds one value while events are pending
}

// NewHub returns a Hub.
func NewHub() *Hub {
	return &Hub{streams: make(map[tenants.WorkspaceID]map[*stream]bool), closed: make(chan struct{})}
}

// Happened notifies the streams of a workspace whose readers may see an API key of its newly recorded exchanges. It
// never waits for a reader.
func (h *Hub) Happened(workspace tenants.WorkspaceID, apiKey uuid.UUID, exchanges int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for one := range h.streams[workspace] {
		if one.visible.Has(apiKey) {
			one.exchanges += exchanges
			one.ring()
		}
	}
}

// Told is Happened with the payload of a notification: "workspace/API key/count".
func (h *Hub) Told(payload string) {
	parts := strings.Split(payload, "/")
	if len(parts) != 3 {
		return
	}
	workspace, err := tenants.ParseWorkspaceID(parts[0])
	apiKey, keyErr := uuid.Parse(parts[1])
	exchanges, countErr := strconv.Atoi(parts[2])
	if err == nil && keyErr == nil && countErr == nil {
		h.Happened(workspace, apiKey, exchanges)
	}
}

// Missed tells all streams that notifications may have been lost.
func (h *Hub) Missed() { h.all(func(one *stream) { one.missed = true }) }

// Recheck makes all streams check whether their reader is still logged in.
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

// Close ends all streams and refuses new ones. It may be called twice.
func (h *Hub) Close() { h.once.Do(func() { close(h.closed) }) }

// Open returns the number of open streams.
func (h *Hub) Open() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.open
}

// subscribe returns a stream of what a reader may see of a workspace, and a function that ends it.
func (h *Hub) subscribe(workspace tenants.WorkspaceID, visible tenants.Visible) (*stream, func(), error) {
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
	added := &stream{visible: visible, wake: make(chan struct{}, 1)}
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

// pending is a stream's events that are not sent yet.
type pending struct {
	exchanges       int
	missed, recheck bool
}

// take returns and clears a stream's pending events.
func (h *Hub) take(one *stream) pending {
	h.mu.Lock()
	defer h.mu.Unlock()
	found := pending{exchanges: one.exchanges, missed: one.missed, recheck: one.recheck}
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
