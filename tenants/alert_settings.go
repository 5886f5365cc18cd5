package tenants

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

const minutesOfDay = 24 * 60

// AlertSettings are a workspace's quiet hours and alert thresholds.
type AlertSettings struct {
	QuietFrom    int    // minutes after midnight from which alerts wait
	QuietTo      int    // end of the quiet hours; equal to QuietFrom for none
	TimeZone     string // time zone of both, from the IANA time zone database
	ErrorPercent int    // share of failing requests that causes an alert
}

// DefaultAlertSettings are the settings of a workspace that has not set its own: no quiet hours.
func DefaultAlertSettings() AlertSettings { return AlertSettings{TimeZone: "UTC", ErrorPercent: 25} }

// Validate returns an Invalid for invalid settings.
func (s AlertSettings) Validate() error {
	for _, field := range []struct {
		name  string
		value int
	}{{"quiet_from", s.QuietFrom}, {"quiet_to", s.QuietTo}} {
		if field.value < 0 || field.value >= minutesOfDay {
			return Invalid{Field: field.name, Message: "must be a time of day from 00:00 to 23:59"}
		}
	}
	if _, err := time.LoadLocation(s.TimeZone); err != nil || s.TimeZone == "" || s.TimeZone == "Local" {
		return Invalid{Field: "time_zone", Message: "is not a time zone such as Europe/Berlin or UTC"}
	}
	if s.ErrorPercent < 1 || s.ErrorPercent > 100 {
		return Invalid{Field: "error_percent", Message: "must be a whole number from 1 to 100"}
	}
	return nil
}

// Due returns when to send an alert of a time: at once, or at the end of the quiet hours.
func (s AlertSettings) Due(at time.Time) time.Time {
	zone, err := time.LoadLocation(s.TimeZone)
	if err != nil || s.QuietFrom == s.QuietTo || !s.isQuiet(at.In(zone)) {
		return at
	}
	// Minute by minute, since a day may have 23 or 25 hours and a time of day may come twice.
	end := at.Truncate(time.Minute)
	for s.isQuiet(end.In(zone)) {
		end = end.Add(time.Minute)
	}
	return end
}

func (s AlertSettings) isQuiet(local time.Time) bool {
	minute := local.Hour()*60 + local.Minute()
	if s.QuietFrom < s.QuietTo {
		return minute >= s.QuietFrom && minute < s.QuietTo
	}
	return minute >= s.QuietFrom || minute < s.QuietTo
}

// Fields returns the settings' fields for the audit log.
func (s AlertSettings) Fields() Fields {
	quiet := "none"
	if s.QuietFrom != s.QuietTo {
		quiet = ClockTime(s.QuietFrom) + " to " + ClockTime(s.QuietTo)
	}
	return Fields{"quiet_hours": quiet, "time_zone": s.TimeZone, "error_percent": strconv.Itoa(s.ErrorPercent)}
}

// ClockTime formats minutes after midnight as a time of day, such as 22:30.
func ClockTime(minutes int) string { return fmt.Sprintf("%02d:%02d", minutes/60, minutes%60) }

// ParseClockTime parses a time of day such as 22:30 to minutes after midnight, or returns -1.
func ParseClockTime(text string) int {
	at, err := time.Parse("15:04", strings.TrimSpace(text))
	if err != nil {
		return -1
	}
	return at.Hour()*60 + at.Minute()
}
