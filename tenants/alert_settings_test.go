package tenants_test

import (
	"errors"
	"testing"
	"time"

	"palimpsest/tenants"
)

func TestAlertWaitsForTheEndOfQuietHours(t *testing.T) {
	t.Parallel()
	night := tenants.AlertSettings{QuietFrom: 22 * 60, QuietTo: 7 * 60, TimeZone: "Europe/Berlin", ErrorPercent: 25}
	day := tenants.AlertSettings{QuietFrom: 9 * 60, QuietTo: 17*60 + 30, TimeZone: "America/New_York", ErrorPercent: 25}
	early := tenants.AlertSettings{QuietFrom: 1 * 60, QuietTo: 2*60 + 30, TimeZone: "Europe/Berlin", ErrorPercent: 25}
	for _, test := range []struct {
		name     string
		settings tenants.AlertSettings
		at, want string
	}{
		{"before the night", night, "2026-01-15T20:59:59Z", "2026-01-15T20:59:59Z"},
		{"as the night begins", night, "2026-01-15T21:00:00Z", "2026-01-16T06:00:00Z"},
		{"after midnight", night, "2026-01-16T02:15:30Z", "2026-01-16T06:00:00Z"},
		{"as the night ends", night, "2026-01-16T06:00:00Z", "2026-01-16T06:00:00Z"},
		{"in summer", night, "2026-07-15T22:00:00Z", "2026-07-16T05:00:00Z"},
		{"in the night when clocks go forward", night, "2026-03-28T23:00:00Z", "2026-03-29T05:00:00Z"},
		{"in the night when clocks go back", night, "2026-10-24T23:00:00Z", "2026-10-25T06:00:00Z"},
		{"an end that comes twice, the second time", early, "2026-10-25T01:10:00Z", "2026-10-25T01:30:00Z"},
		{"an end that does not come", early, "2026-03-29T00:30:00Z", "2026-03-29T01:00:00Z"},
		{"within a day", day, "2026-01-15T15:00:00Z", "2026-01-15T22:30:00Z"},
		{"no quiet hours", tenants.DefaultAlertSettings(), "2026-01-15T00:00:00Z", "2026-01-15T00:00:00Z"},
	} {
		if got := test.settings.Due(moment(t, test.at)); !got.Equal(moment(t, test.want)) {
			t.Errorf("%s: %s, want %s", test.name, got.UTC().Format(time.RFC3339), test.want)
		}
	}
}

func moment(t *testing.T, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func TestAlertSettingsNameTheFieldThatIsWrong(t *testing.T) {
	t.Parallel()
	good := tenants.AlertSettings{QuietFrom: 1, QuietTo: 2, TimeZone: "UTC", ErrorPercent: 100, SpendPercent: 110, SlowSeconds: 1, HeldPercent: 1}
	if err := errors.Join(good.Validate(), tenants.DefaultAlertSettings().Validate()); err != nil {
		t.Error(err)
	}
	for field, change := range map[string]func(*tenants.AlertSettings){
		"quiet_from":    func(s *tenants.AlertSettings) { s.QuietFrom = tenants.ParseClockTime("24:00") },
		"quiet_to":      func(s *tenants.AlertSettings) { s.QuietTo = tenants.ParseClockTime("soon") },
		"time_zone":     func(s *tenants.AlertSettings) { s.TimeZone = "Local" },
		"error_percent": func(s *tenants.AlertSettings) { s.ErrorPercent = 0 },
		"spend_percent": func(s *tenants.AlertSettings) { s.SpendPercent = 109 },
		"slow_seconds":  func(s *tenants.AlertSettings) { s.SlowSeconds = 3601 },
		"held_percent":  func(s *tenants.AlertSettings) { s.HeldPercent = 101 },
	} {
		bad := good
		change(&bad)
		if invalid, is := errors.AsType[tenants.Invalid](bad.Validate()); !is || invalid.Field != field {
			t.Errorf("%s: %v", field, bad.Validate())
		}
	}
	if got := tenants.ParseClockTime(tenants.ClockTime(22*60 + 5)); got != 22*60+5 {
		t.Errorf("22:05 is read as %d", got)
	}
}
