package providerdouble

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"net/http"
	"slices"
	"sync"
)

// Recorded is one request as a double received it.
type Recorded struct {
	Method string
	Path   string // with the query
	Header http.Header
	Body   []byte // as it came, decompressed
	Format string // "" for requests other than generations
	Model  string

	// Conversation is the client's name for the conversation, or the account if absent.
	Conversation string

	Status int

	// Invalid is the refusal of a body that broke a rule.
	Invalid error

	// Prompt, CacheRead and CacheWrite are the reported figures.
	Prompt, CacheRead, CacheWrite int

	Usage Usage // all reported figures

	// Busted says that the prompt of the conversation's previous request is not a prefix of this one.
	Busted bool

	// Done says that the answer has ended; Disconnected that the client left
	// before.
	Done, Disconnected bool

	positions []position
}

// received is a request as it came.
func received(r *http.Request, body []byte) *Recorded {
	return &Recorded{Method: r.Method, Path: r.URL.RequestURI(), Header: r.Header.Clone(), Body: body}
}

// answered records a request that a cloud answered itself. refusal is nil if it did not refuse it.
func (l *log) answered(entry *Recorded, refusal *Rejection) {
	entry.Status, entry.Done = http.StatusOK, true
	if refusal != nil {
		entry.Status, entry.Invalid = refusal.Status, refusal
	}
	l.add(entry)
}

// log keeps received requests and wakes up waiting callers.
type log struct {
	mu      sync.Mutex
	entries []*Recorded
	keep    int
	changed chan struct{} // closed and replaced at each change
}

func (l *log) add(r *Recorded) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, before := range slices.Backward(l.entries) {
		if before.Conversation == r.Conversation && before.Format == r.Format && before.Model == r.Model && before.Invalid == nil {
			r.Busted = len(r.positions) > 0 && !continues(before.positions, r.positions)
			before.positions = nil
			break
		}
	}
	l.entries = append(l.entries, r)
	if old := len(l.entries) - 1 - l.keep; l.keep > 0 && old >= 0 {
		l.entries[old].Body = nil
	}
	l.announce()
}

// continues reports whether a prompt begins with all of the previous one.
func continues(before, now []position) bool {
	if len(before) == 0 {
		return true
	}
	return len(now) >= len(before) && now[len(before)-1].sum == before[len(before)-1].sum
}

func (l *log) update(change func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change()
	l.announce()
}

func (l *log) announce() {
	if l.changed != nil {
		close(l.changed)
	}
	l.changed = make(chan struct{})
}

// wait blocks until enough entries satisfy a condition.
func (l *log) wait(ctx context.Context, n int, counts func(*Recorded) bool) error {
	for {
		l.mu.Lock()
		if l.changed == nil {
			l.changed = make(chan struct{})
		}
		changed, have := l.changed, 0
		for _, entry := range l.entries {
			if counts(entry) {
				have++
			}
		}
		l.mu.Unlock()
		if have >= n {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Requests returns a copy of everything received, oldest first.
func (d *Double) Requests() []Recorded {
	d.log.mu.Lock()
	defer d.log.mu.Unlock()
	all := make([]Recorded, 0, len(d.log.entries))
	for _, entry := range d.log.entries {
		all = append(all, *entry)
	}
	return all
}

// Last returns the newest request; ok is false before the first.
func (d *Double) Last() (Recorded, bool) {
	d.log.mu.Lock()
	defer d.log.mu.Unlock()
	if len(d.log.entries) == 0 {
		return Recorded{}, false
	}
	return *d.log.entries[len(d.log.entries)-1], true
}

// Reset forgets every request. Caches and stored answers stay.
func (d *Double) Reset() {
	d.log.update(func() { d.log.entries = nil })
}

// Wait blocks until n requests were received since the last Reset, or ctx ends.
func (d *Double) Wait(ctx context.Context, n int) error {
	return d.log.wait(ctx, n, func(*Recorded) bool { return true })
}

// WaitDone blocks until n requests have been answered or canceled by their clients.
func (d *Double) WaitDone(ctx context.Context, n int) error {
	return d.log.wait(ctx, n, func(r *Recorded) bool { return r.Done })
}

// Rejected counts the requests that broke a rule.
func (d *Double) Rejected() int {
	return d.log.count(func(r *Recorded) bool { return r.Invalid != nil })
}

// BustCount counts the requests of a conversation whose prompt did not begin with all of the previous one; ""
// counts those of all conversations.
func (d *Double) BustCount(conversation string) int {
	return d.log.count(func(r *Recorded) bool {
		return r.Busted && (conversation == "" || r.Conversation == conversation)
	})
}

func (l *log) count(counts func(*Recorded) bool) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, entry := range l.entries {
		if counts(entry) {
			n++
		}
	}
	return n
}

// conversationOf names the conversation of a request: the headers of the known
// clients, else the account.
func conversationOf(header http.Header, account string) string {
	for _, names := range [][2]string{
		{"X-Claude-Code-Session-Id", "X-Claude-Code-Agent-Id"}, {"Session-Id", "Thread-Id"}, {"Session_id", ""}, {"X-Session-Id", ""}, {"X-Session-Affinity", ""},
	} {
		if id := header.Get(names[0]); id != "" {
			return id + suffix(header, names[1])
		}
	}
	sum := sha256.Sum256([]byte(account))
	return "account-" + base62(sum, 8)
}

func suffix(header http.Header, name string) string {
	if name == "" || header.Get(name) == "" {
		return ""
	}
	return "/" + header.Get(name)
}

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
