package tenants

import (
	"context"
	"errors"
	"time"
)

// Count is a limit on the number of something in a window of time.
type Count struct {
	Of     string        // the counted action and its source
	Most   int           // that there may be
	Window time.Duration // in that time
}

// Throttle limits the rate of actions.
type Throttle interface {
	// Check returns a TooMany if one of the counts is full.
	Check(ctx context.Context, counts ...Count) error

	// Take adds one to each count, or returns a TooMany at the first full one.
	Take(ctx context.Context, counts ...Count) error
}

// PlaceThrottle limits the failures of the place of the context's actor.
type PlaceThrottle struct {
	Throttle Throttle
	Most     int           // failures that there may be
	Window   time.Duration // in that time
}

// Check returns a TooMany if the actor's place has failed too often at something.
func (t PlaceThrottle) Check(ctx context.Context, at string) error {
	return t.Throttle.Check(ctx, t.failures(ctx, at))
}

// Failed counts a failure of the actor's place at something.
func (t PlaceThrottle) Failed(ctx context.Context, at string) error {
	if err := t.Throttle.Take(ctx, t.failures(ctx, at)); !errors.Is(err, ErrTooMany) {
		return err
	}
	return nil
}

func (t PlaceThrottle) failures(ctx context.Context, at string) Count {
	return Count{Of: at + " from " + ActorOf(ctx).Place(), Most: t.Most, Window: t.Window}
}
