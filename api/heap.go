package api

import (
	"math"
	"runtime/debug"
	"runtime/metrics"
	"sync"
)

const (
	// heavyBody is the size in bytes from which a request's body makes it heavy. No prompt of
	// text alone comes near it.
	heavyBody = 8 << 20

	// heavyGrowth is how much the heap may grow between two collections while a heavy request
	// is in flight, in percent of what is in use: reading and recording such a body makes
	// garbage of several times its size.
	heavyGrowth = 10
)

// pressure has the garbage collector follow closely while heavy requests are in flight, so that
// one takes at most four times its size of memory.
type pressure struct {
	usual int // the collector's target without them

	mu    sync.Mutex
	heavy int
}

// newPressure returns a pressure for the one collector that the process has.
func newPressure() *pressure {
	target := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(target)
	return &pressure{usual: int(min(target[0].Value.Uint64(), math.MaxInt32))}
}

// enter counts something heavy until leave is called, which may happen twice.
func (p *pressure) enter() (leave func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.heavy++; p.heavy == 1 {
		debug.SetGCPercent(min(p.usual, heavyGrowth))
	}
	return sync.OnceFunc(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.heavy--; p.heavy == 0 {
			debug.SetGCPercent(p.usual)
		}
	})
}
