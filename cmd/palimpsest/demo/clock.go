package demo

import (
	"sync/atomic"
	"time"
)

// Clock is a clock that can be set. Between two settings it runs at the machine's speed, so that durations
// measured with it are real. The zero value is the machine's clock. Its methods may be called from any
// goroutine.
type Clock struct{ ahead atomic.Int64 } // nanoseconds before or, below 0, behind the machine's

// Now returns the time by the clock.
func (c *Clock) Now() time.Time { return time.Now().Add(c.Ahead()) }

// Ahead returns how far the clock is ahead of the machine's; negative if it is behind.
func (c *Clock) Ahead() time.Duration { return time.Duration(c.ahead.Load()) }

// Set sets the clock to a time.
func (c *Clock) Set(to time.Time) { c.ahead.Store(int64(time.Until(to))) }

// Pass moves the clock forward.
func (c *Clock) Pass(d time.Duration) { c.ahead.Add(int64(d)) }
