package tenants

import (
	"context"
	"errors"
	"time"
)

// Count is something that is counted, and how much of it there may be.
type Count struct {
	Of     string        // what is counted, and of whom
	Most   int           // that there may be
	Window time.Duration // in that time
}

// Throttle counts what must not happen too often.
type Throttle interface {
	// Check returns a TooMany if one of the counts is full.
	Check(ctx context.Context, counts ...Count) error

	// Take counts one more of each, or returns a TooMany at the first that is full.
	Take(ctx context.Context, counts ...Count) error
}

// PlaceThrottle slows down the place of the context's actor that fails at something.
type PlaceThrottle struct {
	Throttle Throttle
	Most     int           // failures that there may be
	Window   time.Duration // in that time
}

// Check returns a TooMany if the actor's place failed too often at something.
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
