package providerdouble

import (
	"encoding/json"
	"sync"
)

// storeLimit bounds how many answers are stored.
const storeLimit = 1000

// store keeps the answers that later requests may refer to.
type store struct {
	mu        sync.Mutex
	responses map[string]storedResponse
	order     []string
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
	if s.responses == nil {
		s.responses, s.items = map[string]storedResponse{}, map[string]bool{}
	}
	s.responses[id] = response
	s.order = append(s.order, id)
	for _, itemID := range itemIDs {
		s.items[itemID] = true
	}
	if len(s.order) > storeLimit {
		delete(s.responses, s.order[0])
		s.order = s.order[1:]
	}
}

func (s *store) history(id string) ([]json.RawMessage, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, ok := s.responses[id]
	return found.history, ok
}

func (s *store) body(id string) ([]byte, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, ok := s.responses[id]
	return found.body, ok
}

func (s *store) forget(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.responses[id]
	delete(s.responses, id)
	return ok
}

func (s *store) hasItem(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.items[id]
}
