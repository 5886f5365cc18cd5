package providerdouble

import (
	"encoding/json"
	"sync"
)

// storeLimit bounds how many answers are stored.
const storeLimit = 1000

// bounded keeps the newest values, by their ids.
type bounded[V any] struct {
	values map[string]V
	order  []string
}

func (b *bounded[V]) keep(id string, value V) {
	if b.values == nil {
		b.values = map[string]V{}
	}
	b.values[id] = value
	if b.order = append(b.order, id); len(b.order) > storeLimit {
		delete(b.values, b.order[0])
		b.order = b.order[1:]
	}
}

// store keeps the answers that later requests may refer to.
type store struct {
	mu        sync.Mutex
	responses bounded[storedResponse]
	items     map[string]bool
}

// storedResponse is a stored answer and the whole conversation that ends with it.
type storedResponse struct {
	body    []byte
	history []json.RawMessage
}

func (s *store) keep(id string, response storedResponse, itemIDs []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.items == nil {
		s.items = map[string]bool{}
	}
	s.responses.keep(id, response)
	for _, itemID := range itemIDs {
		s.items[itemID] = true
	}
}

func (s *store) history(id string) ([]json.RawMessage, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, ok := s.responses.values[id]
	return found.history, ok
}

func (s *store) body(id string) ([]byte, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, ok := s.responses.values[id]
	return found.body, ok
}

func (s *store) forget(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.responses.values[id]
	delete(s.responses.values, id)
	return ok
}

func (s *store) hasItem(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.items[id]
}
