package providerdouble

import (
	"crypto/sha256"
	"strconv"
	"sync"
)

// memoLimit bounds how many elements are remembered.
const memoLimit = 1 << 14

// memo remembers parsed elements by the sum of their bytes, because a client
// sends its whole history with every request.
type memo[T any] struct {
	mu    sync.Mutex
	known map[[sha256.Size]byte]*T
}

func (m *memo[T]) find(key [sha256.Size]byte) (*T, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	element, ok := m.known[key]
	return element, ok
}

func (m *memo[T]) keep(key [sha256.Size]byte, parsed *T) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.known == nil || len(m.known) >= memoLimit {
		m.known = make(map[[sha256.Size]byte]*T)
	}
	m.known[key] = parsed
}

// at names element i of a list.
func at(path string, i int) string { return path + "." + strconv.Itoa(i) }

// item names element i of a list as OpenAI does.
func item(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }
