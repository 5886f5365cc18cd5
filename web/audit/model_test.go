package audit

import (
	"net/url"
	"testing"
	"time"

	"github.com/google/uuid"

	"palimpsest/pipeline"
	"palimpsest/tenants"
)

// Fields that were added, removed or changed are all listed, in order, and those that stayed are not.
func TestEntryListsEveryFieldThatChanged(t *testing.T) {
	t.Parallel()
	entry := tenants.AuditEntry{Change: tenants.Change{
		Action: tenants.KeyChanged, Before: tenants.Fields{"name": "a", "gone_field": "1", "same": "x"}, After: tenants.Fields{"name": "b", "new": "2", "same": "x"},
	}}
	want := []change{{"gone field", "1", ""}, {"name", "a", "b"}, {"new", "", "2"}}
	got := newRow(&entry, pipeline.Layer{}).Changes
	if len(got) != len(want) {
		t.Fatalf("%+v", got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%d: %+v, want %+v", i, got[i], want[i])
		}
	}
}

// An entry says who made the change: a person, a key of a person, or neither.
func TestEntrySaysWhatItsActorIs(t *testing.T) {
	t.Parallel()
	person, key := uuid.New(), uuid.New()
	for name, c := range map[string]struct {
		actor     tenants.Actor
		shown, by string
	}{
		"person": {tenants.Actor{User: person, Name: "ada"}, "ada", ""}, "key": {tenants.Actor{APIKey: key, Name: "ci"}, "ci", "API key"},
		"key of a person": {tenants.Actor{User: person, APIKey: key, Name: "ci"}, "ci", "API key"},
		"operator":        {tenants.Actor{Name: "operator"}, "operator", "no login"}, "product": {tenants.Actor{}, "Palimpsest", "no login"},
	} {
		if r := newRow(&tenants.AuditEntry{Actor: c.actor}, pipeline.Layer{}); r.Actor != c.shown || r.By != c.by {
			t.Errorf("%s: %q by %q", name, r.Actor, r.By)
		}
	}
}

// Each page and the file have all filters of the list, and a range ends with its last day.
func TestPagesAndFileKeepEveryFilter(t *testing.T) {
	t.Parallel()
	zone := time.FixedZone("east", 2*60*60)
	m := model{Actor: "ada", Action: "key", From: newDay("from", "From", "2026-01-30"), To: newDay("to", "To", "2026-01-31"), Zone: zone}
	filter, ok := m.filter()
	if !ok || !filter.From.Equal(time.Date(2026, 1, 29, 22, 0, 0, 0, time.UTC)) || !filter.To.Equal(time.Date(2026, 1, 31, 22, 0, 0, 0, time.UTC)) || filter.Action != "key" || filter.Except != "" {
		t.Errorf("%t, %+v", ok, filter)
	}
	queryOf(t, m.path("x"), map[string]string{"actor": "ada", "action": "key", "from": "2026-01-30", "to": "2026-01-31", "cursor": "x"})
	queryOf(t, m.download(filter), map[string]string{"actor": "ada", "action": "key", "from": "2026-01-29T22:00:00Z", "to": "2026-01-31T22:00:00Z"})
	for action, want := range map[string][2]string{"": {"", logins}, everything: {"", ""}, logins: {logins, ""}} {
		m := model{Action: action, Zone: zone}
		if filter, ok := m.filter(); !ok || filter.Action != want[0] || filter.Except != want[1] {
			t.Errorf("%q asks for %q without %q", action, filter.Action, filter.Except)
		}
	}
	m = model{Zone: zone}
	filter, _ = m.filter()
	queryOf(t, m.download(filter), map[string]string{"except": logins})
}

// queryOf compares the query of an address.
func queryOf(t *testing.T, address string, want map[string]string) {
	t.Helper()
	parsed, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	got := parsed.Query()
	for name, value := range want {
		if got.Get(name) != value {
			t.Errorf("%s has %s %q, want %q", address, name, got.Get(name), value)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%s has more than %v", address, want)
	}
}
