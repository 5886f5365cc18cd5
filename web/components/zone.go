package components

import (
	"context"
	"time"
)

type zoneKey struct{}

// WithZone has everything that is rendered write moments and days in a reader's time
// zone; without, they are in UTC. Moments name the zone.
func WithZone(ctx context.Context, zone *time.Location) context.Context {
	return context.WithValue(ctx, zoneKey{}, zone)
}

// Zone returns the time zone of who reads what is rendered; UTC if it is not known.
func Zone(ctx context.Context) *time.Location {
	if zone, is := ctx.Value(zoneKey{}).(*time.Location); is {
		return zone
	}
	return time.UTC
}

// MomentIn writes a moment in a time zone, which it names: "21 Nov 2026, 11:01:07 CET".
func MomentIn(at time.Time, zone *time.Location) string {
	return at.In(zone).Format("2 Jan 2006, 15:04:05 MST")
}

// DayIn writes the day that a moment has in a time zone: "21 Nov 2026".
func DayIn(at time.Time, zone *time.Location) string { return at.In(zone).Format("2 Jan 2006") }
