package identity

import (
	"time"

	"github.com/maypok86/otter/v2"
)

// cacheClock is the clock of a cache whose entries age by ours. It does not tick:
// what has aged is taken out when it is met or when room is needed.
type cacheClock func() time.Time

// NowNano implements otter.Clock.
func (c cacheClock) NowNano() int64 { return c().UnixNano() }

// Tick implements otter.Clock.
func (c cacheClock) Tick(time.Duration) <-chan time.Time { return nil }

var _ otter.Clock = cacheClock(nil)
