package dbtest

import (
	"context"
	"slices"
	"sync"
	"testing"
)

// Template is a migrated database with rows that several tests of a program begin with. The first of
// them fills it; each gets a copy, which costs less than to fill one more.
type Template struct {
	mu   sync.Mutex
	name string // empty until it is filled
}

// New returns a copy for the test. fill fills the template, with a testing.TB whose context and cleanups
// end with it: a database that is in use cannot be copied.
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

// keep has a database dropped at the end of the program.
func (c *cluster) keep(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kept = append(c.kept, name)
}

// part is a part of a test.
type part struct {
	testing.TB

	ctx  context.Context //nolint:containedctx // as that of a test
	ends []func()
}

// Context returns a context that ends with the part.
func (p *part) Context() context.Context { return p.ctx }

// Cleanup has a function called at the end of the part.
func (p *part) Cleanup(end func()) { p.ends = append(p.ends, end) }

// end calls those functions, the last one first.
func (p *part) end() {
	for _, end := range slices.Backward(p.ends) {
		end()
	}
}
