package tenants_test

import (
	"errors"
	"testing"

	"github.com/google/uuid"

	"palimpsest/tenants"
)

func TestDataSettingsNameTheFieldAtFault(t *testing.T) {
	t.Parallel()
	sound := tenants.DataSettings{TimeZone: "Europe/Berlin", Text: textPolicy()}
	if err := sound.Validate(); err != nil {
		t.Fatal(err)
	}
	for field, change := range map[string]func(*tenants.DataSettings){
		"time_zone":     func(s *tenants.DataSettings) { s.TimeZone = "Mars/Olympus" },
		"managers_read": func(s *tenants.DataSettings) { s.Text.Managers = tenants.ReadsNone },
		"members_read":  func(s *tenants.DataSettings) { s.Text.Members = tenants.ReadsNone },
		"viewers_read":  func(s *tenants.DataSettings) { s.Text.Viewers = tenants.ReadsOwn },
		"redact":        func(s *tenants.DataSettings) { s.Redact.Kinds = []tenants.RedactionKind{"address"} },
		"redact_names":  func(s *tenants.DataSettings) { s.Redact.Names = []string{"Ada", "line\nbreak"} },
	} {
		wrong := sound
		change(&wrong)
		var invalid tenants.Invalid
		if err := wrong.Validate(); !errors.As(err, &invalid) || invalid.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
	for _, zone := range []string{"", "Local", "../etc/passwd"} {
		if err := (tenants.DataSettings{TimeZone: zone, Text: sound.Text}).Validate(); err == nil {
			t.Errorf("the time zone %q is allowed", zone)
		}
	}
}

func TestAReaderReadsWhatTheyMayAndNothingElse(t *testing.T) {
	t.Parallel()
	own, other := uuid.New(), uuid.New()
	for name, reader := range map[string]struct {
		tenants.Reader

		own, other, none bool
	}{
		"nobody":             {tenants.Reader{}, false, false, true},
		"all":                {tenants.Reader{All: true}, true, true, false},
		"own":                {tenants.Reader{Own: true, Keys: []uuid.UUID{own}}, true, false, false},
		"own without a key":  {tenants.Reader{Own: true}, false, false, false},
		"keys but no policy": {tenants.Reader{Keys: []uuid.UUID{own}}, false, false, true},
	} {
		if reader.MayRead(own) != reader.own || reader.MayRead(other) != reader.other || reader.None() != reader.none {
			t.Errorf("%s: own %v, other %v, none %v", name, reader.MayRead(own), reader.MayRead(other), reader.None())
		}
	}
}

// textPolicy is that of a workspace that has set none.
func textPolicy() tenants.TextPolicy {
	return tenants.TextPolicy{Managers: tenants.ReadsAll, Members: tenants.ReadsOwn, Viewers: tenants.ReadsNone}
}
