package manage

import (
	"context"
	"time"

	"github.com/google/uuid"

	"palimpsest/tenants"
)

// Alerts keeps what a workspace is alerted to, and where.
type Alerts interface {
	AlertChannels(ctx context.Context, workspace uuid.UUID) ([]tenants.AlertChannel, error)
	AlertSettings(ctx context.Context, workspace uuid.UUID) (tenants.AlertSettings, error)
}

// alertsJSON is what a workspace has set of alerts, without URLs and secrets.
type alertsJSON struct {
	QuietFrom    string             `json:"quiet_from"` // the same as quiet_to: no quiet hours
	QuietTo      string             `json:"quiet_to"`
	TimeZone     string             `json:"time_zone"`
	ErrorPercent int                `json:"error_percent"`
	Channels     []alertChannelJSON `json:"channels"`
}

type alertChannelJSON struct {
	ID        uuid.UUID           `json:"id"`
	Kind      tenants.AlertKind   `json:"kind"`
	Name      string              `json:"name"`
	Host      string              `json:"host,omitempty"`    // of a webhook
	User      *uuid.UUID          `json:"user_id,omitempty"` // who gets the mails
	Rules     []tenants.AlertRule `json:"rules"`
	Disabled  bool                `json:"disabled"`
	CreatedAt time.Time           `json:"created_at"`
}

// alertsOf returns what a workspace has set of alerts.
func (s *server) alertsOf(ctx context.Context, workspace uuid.UUID) (alertsJSON, error) {
	settings, err := s.Alerts.AlertSettings(ctx, workspace)
	if err != nil {
		return alertsJSON{}, err
	}
	channels, err := s.Alerts.AlertChannels(ctx, workspace)
	if err != nil {
		return alertsJSON{}, err
	}
	alerts := alertsJSON{
		QuietFrom: tenants.ClockTime(settings.QuietFrom), QuietTo: tenants.ClockTime(settings.QuietTo), TimeZone: settings.TimeZone,
		ErrorPercent: settings.ErrorPercent, Channels: make([]alertChannelJSON, len(channels)),
	}
	for i, channel := range channels {
		alerts.Channels[i] = alertChannelJSON{
			ID: channel.ID, Kind: channel.Kind, Name: channel.Name, Host: channel.Place, Rules: channel.Rules, Disabled: channel.Disabled, CreatedAt: channel.CreatedAt,
		}
		if channel.User != uuid.Nil {
			alerts.Channels[i].User = &channel.User
		}
	}
	return alerts, nil
}
