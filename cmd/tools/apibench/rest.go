package apibench

import (
	"context"
	"fmt"
	"time"
)

const (
	restFor      = time.Second           // length of a sample
	restBelow    = 50 * time.Millisecond // CPU time in a sample below which a process rests
	restPatience = 2 * time.Minute
)

// rest waits until the processes behind the routes have finished the work of the case before, such as a
// search index, for restPatience at most.
func rest(ctx context.Context, place Place, routes []Route) error {
	used := func() (sum time.Duration) {
		for _, route := range routes {
			target := route.Targets[place]
			sum += target.cpu()
		}
		return sum
	}
	look := time.NewTicker(restFor)
	defer look.Stop()
	before := used()
	for range int(restPatience / restFor) {
		select {
		case <-look.C:
		case <-ctx.Done():
			return fmt.Errorf("wait until the processes rest: %w", ctx.Err())
		}
		now := used()
		if now-before < restBelow {
			return nil
		}
		before = now
	}
	return nil
}
