package api

import (
	"errors"
	"sync"

	"palimpsest/tenants"
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

	heap *pressure

	mu   sync.Mutex
	all  int
	held map[tenants.WorkspaceID]int
}

// NewBytes returns a Bytes with a bound for each workspace and one for all.
func NewBytes(ofWorkspace, ofAll int) *Bytes {
	return &Bytes{ofWorkspace: ofWorkspace, ofAll: ofAll, heap: newPressure(), held: make(map[tenants.WorkspaceID]int)}
}

// hold begins to count the body of a request of a workspace.
func (b *Bytes) hold(workspace tenants.WorkspaceID) *heldBytes {
	return &heldBytes{of: b, workspace: workspace}
}

// recordingBytes is what it takes to record a message beside its own bytes, about.
const recordingBytes = 1 << 10

// recording has the collector follow closely while messages of so many bytes in all are recorded.
func (b *Bytes) recording(messages, size int) (done func()) {
	if b == nil || size+recordingBytes*messages < heavyBody {
		return func() {}
	}
	return b.heap.enter()
}

// heldBytes are the bytes of one body. It is for one goroutine at a time.
type heldBytes struct {
	of        *Bytes // optional: without it nothing is bounded
	workspace tenants.WorkspaceID
	count     int
	lighten   func() // nil while they are not heavy
}

// take counts so many bytes more, or returns errWorkspaceBytes or errProcessBytes.
func (h *heldBytes) take(more int) error {
	if h.of == nil {
		return nil
	}
	if err := h.of.add(h.workspace, more); err != nil {
		return err
	}
	if h.count += more; h.count >= heavyBody && h.lighten == nil {
		h.lighten = h.of.heap.enter()
	}
	return nil
}

// add counts so many bytes more of a workspace.
func (b *Bytes) add(workspace tenants.WorkspaceID, more int) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.held[workspace]+more > b.ofWorkspace:
		return errWorkspaceBytes
	case b.all+more > b.ofAll:
		return errProcessBytes
	}
	b.all += more
	b.held[workspace] += more
	return nil
}

// leave counts the body no longer. It may be called twice.
func (h *heldBytes) leave() {
	if h.of == nil {
		return
	}
	if h.lighten != nil {
		h.lighten()
	}
	h.of.mu.Lock()
	defer h.of.mu.Unlock()
	h.of.all -= h.count
	if h.of.held[h.workspace] -= h.count; h.of.held[h.workspace] == 0 {
		delete(h.of.held, h.workspace)
	}
	h.count = 0
}
