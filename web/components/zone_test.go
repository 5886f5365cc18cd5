package components_test

import (
	"strings"
	"testing"
	"time"

	"palimpsest/web/components"
)

func TestMomentsAreWrittenInTheReadersTimeZone(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 23, 1, 7, 0, time.UTC)
	for zone, want := range map[string]string{"Europe/Berlin": "22 Nov 2026, 00:01:07 CET", "America/New_York": "21 Nov 2026, 18:01:07 EST", "": "21 Nov 2026, 23:01:07 UTC"} {
		ctx := t.Context()
		if zone != "" {
			place, err := time.LoadLocation(zone)
			if err != nil {
				t.Fatal(err)
			}
			ctx = components.WithZone(ctx, place)
		}
		var full, short, day strings.Builder
		if err := components.When(at).Render(ctx, &full); err != nil {
			t.Fatal(err)
		}
		if err := components.At(at, at.Add(time.Hour)).Render(ctx, &short); err != nil {
			t.Fatal(err)
		}
		if err := components.Day(at).Render(ctx, &day); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(full.String(), ">"+want+"<") || !strings.Contains(full.String(), `datetime="2026-11-21T23:01:07Z"`) {
			t.Errorf("%q: %s", zone, full.String())
		}
		for _, written := range []string{full.String(), short.String(), day.String()} {
			if !strings.Contains(written, `title="`+want+`"`) {
				t.Errorf("%q: %s", zone, written)
			}
		}
		if wanted, _, _ := strings.Cut(want, ","); !strings.Contains(short.String(), ">1 h ago<") || !strings.Contains(day.String(), ">"+wanted+"<") {
			t.Errorf("%q: %s, %s", zone, short.String(), day.String())
		}
	}
}
