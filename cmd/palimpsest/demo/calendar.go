package demo

import (
	"fmt"
	"time"

	"github.com/google/uuid"
)

// first is when the demo's first day begins.
func (c Config) first() time.Time { return c.Until.Add(-time.Duration(c.Days) * day) }

// share is the time at a share of the demo's days, from 0 to 1.
func (c Config) share(of float64) time.Time {
	return c.first().Add(time.Duration(of * float64(c.Days) * float64(day)))
}

// dawn is when a day of the demo begins, counted from 0. A large demo has the days of the calendar. A small
// demo's days end at the hour at which the demo ends, so that their events and their order do not depend on
// when it is made.
func (c Config) dawn(number int) time.Time {
	begins := c.first().Add(time.Duration(number) * day)
	if c.isSmall() {
		return begins
	}
	return begins.Truncate(day)
}

// name is a client's name for a session.
func (c Config) name(number uint64) string {
	return uuid.NewSHA1(uuid.NameSpaceOID, fmt.Appendf(nil, "demo %d %d", c.Seed, number)).String()
}

// hasty is when the day with the hasty pipeline begins. In a small demo it's more than a day before the
// endless session, which saves much, so that no day of any time zone holds both. In a large one it's a
// workday.
func (c Config) hasty() time.Time {
	if c.isSmall() {
		return c.Until.Add(-44 * time.Hour)
	}
	when := c.share(0.80).Truncate(day)
	for when.Weekday() == time.Saturday || when.Weekday() == time.Sunday {
		when = when.Add(-day)
	}
	return when.Add(opens * time.Hour)
}

// isSmall reports whether a demo should take only seconds to make.
func (c Config) isSmall() bool { return c.Days < week }
