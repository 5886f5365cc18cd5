package components

import (
	"context"
	"time"
)

type zoneKey struct{}

// WithZone sets the time zone in which moments and days are rendered; the default is UTC. Moments name the
// zone.
func WithZone(ctx context.Context, zone *time.Location) context.Context {
	return context.WithValue(ctx, zoneKey{}, zone)
}

// Zone returns the reader's time zone, or UTC if unknown.
func Zone(ctx context.Context) *time.Location {
	if zone, is := ctx.Value(zoneKey{}).(*time.Location); is {
		return zone
	}
	return time.UTC
}

// MomentIn formats a moment in a time zone, with the zone: "21 Nov 2026, 11:01:07 CET".
func MomentIn(at time.Time, zone *time.Location) string {
	return at.In(zone).Format("2 Jan 2006, 15:04:05 MST")
}

// DayIn formats a moment's day in a time zone: "21 Nov 2026".
func DayIn(at time.Time, zone *time.Location) string { return at.In(zone).Format("2 Jan 2006") }
