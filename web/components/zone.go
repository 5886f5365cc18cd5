package components

import (
	"context"
	"time"
)

type zoneKey struct{}

// WithZone has At and When write moments in a reader's time zone; without, they are in
// UTC. Both name the zone.
func WithZone(ctx context.Context, zone *time.Location) context.Context {
	return context.WithValue(ctx, zoneKey{}, zone)
}

// zoned writes a moment in the reader's time zone: "21 Nov 2026, 11:01 CET".
func zoned(ctx context.Context, at time.Time) string {
	zone, is := ctx.Value(zoneKey{}).(*time.Location)
	if !is {
		return Moment(at)
	}
	return at.In(zone).Format("2 Jan 2006, 15:04 MST")
}
