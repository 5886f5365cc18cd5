package api

import (
	"errors"
	"sync"

	"github.com/google/uuid"

	"palimpsest/tenants"
)

// Errors for limits that a body exceeds while it is read.
var (
	errWorkspaceBytes = errors.New("workspace has too many bytes in flight")
	errAccountBytes   = errors.New("account has too many bytes in flight")
	errProcessBytes   = errors.New("process has too many bytes in flight")
)

// isBytes reports whether an error is about too many bytes in flight.
func isBytes(err error) bool {
	return errors.Is(err, errWorkspaceBytes) || errors.Is(err, errAccountBytes) || errors.Is(err, errProcessBytes)
}

// timesFree bounds an account, with all of its workspaces, to this multiple of the free bytes. So one account
// at its limit leaves a quarter, and several leave some.
const timesFree = 3

// Bytes bounds the bytes of request bodies in flight in this process, per workspace, per account and in
// total. A body counts from its arrival until the provider has answered.
type Bytes struct {
	ofWorkspace, ofAll int

	heap *pressure

	mu   sync.Mutex
	all  int
	held map[uuid.UUID]int // by workspace, and by account
}

// NewBytes returns a Bytes with a bound for each workspace and one for all.
func NewBytes(ofWorkspace, ofAll int) *Bytes {
	return &Bytes{ofWorkspace: ofWorkspace, ofAll: ofAll, heap: newPressure(), held: make(map[uuid.UUID]int)}
}

// hold starts to count the body of a key's request.
func (b *Bytes) hold(key tenants.APIKey) *heldBytes {
	return &heldBytes{of: b, workspace: uuid.UUID(key.Workspace), account: key.Account()}
}

// recordingBytes is roughly the memory for recording a message, beside its own bytes.
const recordingBytes = 1 << 10

// recording makes the garbage collector run more often while messages of a total size are recorded.
func (b *Bytes) recording(messages, size int) (done func()) {
	if b == nil || size+recordingBytes*messages < heavyBody {
		return func() {}
	}
	return b.heap.enter()
}

// heldBytes are the bytes of one body. It is for one goroutine at a time.
type heldBytes struct {
	of        *Bytes // optional: no bounds without it
	workspace uuid.UUID
	account   uuid.UUID
	count     int
	lighten   func() // nil while they are not heavy
}

// take counts more bytes, or returns errWorkspaceBytes, errAccountBytes or errProcessBytes.
func (h *heldBytes) take(more int) error {
	if h.of == nil {
		return nil
	}
	if err := h.add(more); err != nil {
		return err
	}
	if h.count >= heavyBody && h.lighten == nil {
		h.lighten = h.of.heap.enter()
	}
	return nil
}

// add counts more bytes.
func (h *heldBytes) add(more int) error {
	b := h.of
	b.mu.Lock()
	defer b.mu.Unlock()
	free := b.ofAll - b.all - more
	switch {
	case b.held[h.workspace]+more > b.ofWorkspace:
		return errWorkspaceBytes
	case free < 0:
		return errProcessBytes
	case b.held[h.account]+more > timesFree*free:
		return errAccountBytes
	}
	h.change(more)
	return nil
}

// change counts more bytes, or fewer, for the workspace, the account and the process.
func (h *heldBytes) change(more int) {
	h.count += more
	h.of.all += more
	who := []uuid.UUID{h.workspace, h.account}
	if h.account == h.workspace {
		who = who[:1]
	}
	for _, id := range who {
		if h.of.held[id] += more; h.of.held[id] == 0 {
			delete(h.of.held, id)
		}
	}
}

// leave stops counting the body. It may be called twice.
func (h *heldBytes) leave() {
	if h.of == nil {
		return
	}
	if h.lighten != nil {
		h.lighten()
	}
	h.of.mu.Lock()
	defer h.of.mu.Unlock()
	h.change(-h.count)
}
