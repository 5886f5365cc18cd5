package paths

import (
	"github.com/google/uuid"

	"palimpsest/tenants"
)

// The paths of alerts.
const (
	Alerts          = "/settings/alerts"
	AlertChannels   = Alerts + "/channels"
	AlertDeliveries = Alerts + "/deliveries"
)

// NewAlertChannel is the path of the form to add a channel of a kind.
func NewAlertChannel(kind tenants.AlertKind) string {
	return With(AlertChannels+"/new", "kind", string(kind))
}

// AlertChannel is the path of a channel.
func AlertChannel(id uuid.UUID) string { return AlertChannels + "/" + id.String() }

// TestAlertChannel is the path that sends a test to a channel.
func TestAlertChannel(id uuid.UUID) string { return AlertChannel(id) + "/test" }

// RemoveAlertChannel is the path that removes a channel.
func RemoveAlertChannel(id uuid.UUID) string { return AlertChannel(id) + "/remove" }

// RetryAlert is the path that resends an undelivered alert.
func RetryAlert(delivery uuid.UUID) string {
	return AlertDeliveries + "/" + delivery.String() + "/retry"
}
