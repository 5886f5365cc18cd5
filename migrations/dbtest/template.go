package dbtest

import (
	"context"
	"slices"
	"sync"
	"testing"
)

// Template is a migrated database with rows that several tests of a program share. The first of them fills
// it, and each gets a copy, because copying is faster than filling another.
type Template struct {
	mu   sync.Mutex
	name string // "" until it is filled
}

// New returns a copy for the test. fill fills the template. Its testing.TB ends with fill, cleanups included,
// because a database in use cannot be copied.
func (m *Template) New(t testing.TB, fill func(testing.TB, *Database)) *Database {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.name == "" {
		m.fill(t, fill)
	}
	return create(t, m.name).open(t)
}

func (m *Template) fill(t testing.TB, fill func(testing.TB, *Database)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	p := &part{TB: t, ctx: ctx}
	defer func() {
		cancel()
		p.end()
	}()
	database := shared.copy(p, template)
	shared.keep(database.Name)
	fill(p, database.open(p))
	m.name = database.Name // unless fill has failed the test
}

// keep drops a database at the end of the program.
func (c *cluster) keep(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kept = append(c.kept, name)
}

// part is a testing.TB for a part of a test.
type part struct {
	testing.TB

	ctx  context.Context //nolint:containedctx // as that of a test
	ends []func()
}

// Context returns a context that ends with the part.
func (p *part) Context() context.Context { return p.ctx }

// Cleanup registers a function for the end of the part.
func (p *part) Cleanup(end func()) { p.ends = append(p.ends, end) }

// end calls the registered functions, last first.
func (p *part) end() {
	for _, end := range slices.Backward(p.ends) {
		end()
	}
}
