package tenantsdb_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/google/uuid"

	"palimpsest/tenants"
)

// Rows are read as they were written: with and without optional values, and any text.
func TestRowsAreReadAsTheyWereWritten(t *testing.T) {
	t.Parallel()
	b := setup(t)
	full := tenants.AlertChannel{
		ID: uuid.Must(uuid.NewV7()), Kind: tenants.AlertEmail, Name: "on call", Place: "", User: b.user.ID, Sealed: []byte{0, 255},
		Rules: []tenants.AlertRule{tenants.AlertBudget, tenants.AlertAccess}, Disabled: true, SetBy: b.user.ID, CreatedAt: now(),
	}
	empty := tenants.AlertChannel{
		ID: uuid.Must(uuid.NewV7()), Kind: tenants.AlertWebhook, Name: "a\x00b\xff", Place: "hooks.example.com",
		Rules: []tenants.AlertRule{tenants.AlertErrorRate}, CreatedAt: now().Add(time.Second),
	}
	for _, channel := range []tenants.AlertChannel{full, empty} {
		if err := b.Alerts.AddAlertChannel(t.Context(), b.workspace, channel); err != nil {
			t.Fatal(err)
		}
	}
	empty.Name = "ab\uFFFD"
	channels, err := b.Alerts.AlertChannels(t.Context(), b.workspace)
	if want := []tenants.AlertChannel{full, empty}; err != nil || !reflect.DeepEqual(channels, want) {
		t.Errorf("%+v, %v, want %+v", channels, err, want)
	}
	var absent int
	const query = "SELECT count(*) FROM alert_channels WHERE user_id IS NULL AND set_by IS NULL"
	if err := b.database.Owner(t).QueryRow(t.Context(), query).Scan(&absent); err != nil || absent != 1 {
		t.Errorf("%d channels without a user, %v, want 1", absent, err)
	}

	delivery := tenants.AlertDelivery{
		Alert: tenants.Alert{Rule: tenants.AlertErrorRate, Subject: "key", Title: "Many requests fail", Text: "40 %", Path: "/requests"},
		ID:    uuid.Must(uuid.NewV7()), Channel: empty.ID, CreatedAt: now(), NextAt: now(), Until: now().Add(time.Hour), State: tenants.DeliveryWaiting,
		Status: 500, Answer: "\x00\xfe",
	}
	if err := b.Alerts.AddAlertDelivery(t.Context(), b.workspace, delivery); err != nil {
		t.Fatal(err)
	}
	delivery.Answer = "\uFFFD"
	found, channel, err := b.Alerts.AlertDelivery(t.Context(), b.workspace, delivery.ID)
	if err != nil || !reflect.DeepEqual(found, delivery) || !reflect.DeepEqual(channel, empty) {
		t.Errorf("%+v of %+v, %v, want %+v", found, channel, err, delivery)
	}

	changed := full
	changed.Name, changed.User, changed.Sealed, changed.Rules, changed.Disabled = "desk", uuid.Nil, nil, []tenants.AlertRule{tenants.AlertAccess}, false
	err = b.Alerts.ChangeAlertChannel(t.Context(), b.workspace, full.ID, func(tenants.AlertChannel) (tenants.AlertChannel, error) { return changed, nil })
	if err != nil {
		t.Fatal(err)
	}
	channels, err = b.Alerts.AlertChannels(t.Context(), b.workspace)
	if want := []tenants.AlertChannel{changed, empty}; err != nil || !reflect.DeepEqual(channels, want) {
		t.Errorf("%+v, %v, want %+v", channels, err, want)
	}
}
