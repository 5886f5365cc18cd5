package tenants_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"palimpsest/tenants"
)

// tally is a throttle whose windows never end.
type tally map[string]int

// Check implements tenants.Throttle.
func (t tally) Check(_ context.Context, counts ...tenants.Count) error {
	for _, count := range counts {
		if t[count.Of] >= count.Most {
			return tenants.TooMany{Wait: count.Window}
		}
	}
	return nil
}

// Take implements tenants.Throttle.
func (t tally) Take(ctx context.Context, counts ...tenants.Count) error {
	for _, count := range counts {
		if err := t.Check(ctx, count); err != nil {
			return err
		}
		t[count.Of]++
	}
	return nil
}

// S11: a place that fails too often is slowed down at that, whichever of its addresses it uses,
// and no other place is.
func TestPlaceThatFailsTooOftenIsSlowedDownAlone(t *testing.T) {
	t.Parallel()
	throttle := tenants.PlaceThrottle{Throttle: tally{}, Most: 2, Window: time.Minute}
	from := func(address string) context.Context {
		return tenants.WithActor(t.Context(), tenants.Actor{From: address})
	}
	for range 3 { // what is more than there may be is no failure of counting
		if err := throttle.Failed(from("2001:db8::1"), "passkeys"); err != nil {
			t.Fatal(err)
		}
	}
	if err := throttle.Check(from("2001:db8::2"), "passkeys"); !errors.Is(err, tenants.ErrTooMany) {
		t.Errorf("the same network: %v", err)
	}
	for at, ctx := range map[string]context.Context{"passkeys": from("2001:db9::1"), "sign-ons": from("2001:db8::1")} {
		if err := throttle.Check(ctx, at); err != nil {
			t.Errorf("%s of another place, or of the same at something else: %v", at, err)
		}
	}
}
