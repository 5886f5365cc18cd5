package api

import (
	"errors"
	"sync"

	"github.com/google/uuid"
)

// What there is too much of while bodies are read.
var (
	errWorkspaceBytes = errors.New("workspace has too many bytes in flight")
	errProcessBytes   = errors.New("process has too many bytes in flight")
)

// Bytes bounds the bytes of request bodies that are in flight in this process, of each
// workspace and of all: from when they arrive until the provider has answered.
type Bytes struct {
	ofWorkspace, ofAll int

	mu   sync.Mutex
	all  int
	held map[uuid.UUID]int
}

// NewBytes returns a Bytes with a bound for each workspace and one for all.
func NewBytes(ofWorkspace, ofAll int) *Bytes {
	return &Bytes{ofWorkspace: ofWorkspace, ofAll: ofAll, held: make(map[uuid.UUID]int)}
}

// hold begins to count the body of a request of a workspace.
func (b *Bytes) hold(workspace uuid.UUID) *heldBytes { return &heldBytes{of: b, workspace: workspace} }

// heldBytes are the bytes of one body. It is for one goroutine at a time.
type heldBytes struct {
	of        *Bytes // optional: without it nothing is bounded
	workspace uuid.UUID
	count     int
}

// take counts so many bytes more, or returns errWorkspaceBytes or errProcessBytes.
func (h *heldBytes) take(more int) error {
	if h.of == nil {
		return nil
	}
	h.of.mu.Lock()
	defer h.of.mu.Unlock()
	switch {
	case h.of.held[h.workspace]+more > h.of.ofWorkspace:
		return errWorkspaceBytes
	case h.of.all+more > h.of.ofAll:
		return errProcessBytes
	}
	h.of.all += more
	h.of.held[h.workspace] += more
	h.count += more
	return nil
}

// leave counts the body no longer. It may be called twice.
func (h *heldBytes) leave() {
	if h.of == nil {
		return
	}
	h.of.mu.Lock()
	defer h.of.mu.Unlock()
	h.of.all -= h.count
	if h.of.held[h.workspace] -= h.count; h.of.held[h.workspace] == 0 {
		delete(h.of.held, h.workspace)
	}
	h.count = 0
}
