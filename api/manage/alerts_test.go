package manage_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"palimpsest/tenants"
)

func TestAlertsAreReadAndSetWithoutSecrets(t *testing.T) {
	t.Parallel()
	p := setup(t)
	a := p.tenant(t, "ant")
	channel := tenants.AlertChannel{ID: uuid.Must(uuid.NewV7()), Kind: tenants.AlertWebhook, Name: "on call", Place: "example.com", Sealed: []byte("sealed-canary"), Rules: []tenants.AlertRule{tenants.AlertBudget}, CreatedAt: time.Now()}
	if err := p.db.DB.Alerts.AddAlertChannel(t.Context(), a.workspace, channel); err != nil {
		t.Fatal(err)
	}
	delivery := tenants.AlertDelivery{
		Alert: tenants.Alert{Rule: tenants.AlertTest, Title: "Test of on call", Path: "/settings/alerts"}, ID: uuid.Must(uuid.NewV7()), Channel: channel.ID,
		CreatedAt: time.Now(), NextAt: time.Now().Add(time.Hour), State: tenants.DeliveryWaiting,
	}
	if err := p.db.DB.Alerts.AddAlertDelivery(t.Context(), a.workspace, delivery); err != nil {
		t.Fatal(err)
	}
	type settings struct {
		QuietFrom    string `json:"quiet_from"`
		QuietTo      string `json:"quiet_to"`
		TimeZone     string `json:"time_zone"`
		ErrorPercent int    `json:"error_percent"`
		SpendPercent int    `json:"spend_percent"`
		SlowSeconds  int    `json:"slow_seconds"`
		HeldPercent  int    `json:"held_percent"`
		Channels     []struct {
			Name string `json:"name"`
			Host string `json:"host"`
		} `json:"channels"`
	}
	answer := a.send(t, http.MethodPut, "/alerts", `{"quiet_from":"22:00","quiet_to":"06:30","time_zone":"Europe/Berlin","slow_seconds":30,"held_percent":50}`)
	answer.want(t, http.StatusOK)
	var got settings
	if err := json.Unmarshal(answer.body, &got); err != nil || got.QuietFrom != "22:00" || got.QuietTo != "06:30" || got.TimeZone != "Europe/Berlin" || got.ErrorPercent != 25 || got.SpendPercent != 300 || got.SlowSeconds != 30 || got.HeldPercent != 50 ||
		len(got.Channels) != 1 || got.Channels[0].Host != "example.com" || strings.Contains(string(answer.body), "canary") {
		t.Errorf("answer %s, %v", answer.body, err)
	}
	for field, body := range map[string]string{"quiet_from": `{"quiet_from":"late"}`, "error_percent": `{"error_percent":101}`, "spend_percent": `{"spend_percent":1}`, "slow_seconds": `{"slow_seconds":0}`, "held_percent": `{"held_percent":0}`, "time_zone": `{"time_zone":"Mars"}`} {
		answer := a.send(t, http.MethodPut, "/alerts", body)
		answer.want(t, http.StatusUnprocessableEntity)
		if !strings.Contains(string(answer.body), `"`+field+`"`) {
			t.Errorf("%s: %s", field, answer.body)
		}
	}
	answer = a.send(t, http.MethodGet, "/alerts/deliveries", "")
	answer.want(t, http.StatusOK)
	var log struct {
		Data []struct {
			ID      uuid.UUID  `json:"id"`
			State   string     `json:"state"`
			TriedAt *time.Time `json:"tried_at"`
			NextAt  *time.Time `json:"next_at"`
		} `json:"data"`
	}
	if err := json.Unmarshal(answer.body, &log); err != nil || len(log.Data) != 1 || log.Data[0].ID != delivery.ID || log.Data[0].TriedAt != nil || log.Data[0].NextAt == nil {
		t.Errorf("log %s, %v", answer.body, err)
	}
}
