package api

import (
	"math"
	"runtime/debug"
	"runtime/metrics"
	"sync"
)

const (
	// heavyBody is the size in bytes from which a request counts as heavy. A prompt of text alone does not
	// reach it.
	heavyBody = 8 << 20

	// heavyGrowth is how much the heap may grow between two collections while a heavy request is in flight,
	// in percent of the heap in use. Reading and recording such a body makes garbage of several times its
	// size.
	heavyGrowth = 10
)

// pressure makes the garbage collector run more often while heavy requests are in flight, so that one takes
// at most four times its size in memory.
type pressure struct {
	usual int // the collector's target without heavy requests

	mu    sync.Mutex
	heavy int
}

// newPressure returns a pressure for the process's garbage collector.
func newPressure() *pressure {
	target := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(target)
	return &pressure{usual: int(min(target[0].Value.Uint64(), math.MaxInt32))}
}

// enter counts a heavy request until leave is called; a second call of leave does nothing.
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
