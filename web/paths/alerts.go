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

// NewAlertChannel is the path of the form to add a channel of a kind with.
func NewAlertChannel(kind tenants.AlertKind) string {
	return With(AlertChannels+"/new", "kind", string(kind))
}

// AlertChannel is the path of a channel.
func AlertChannel(id uuid.UUID) string { return AlertChannels + "/" + id.String() }

// TestAlertChannel is the path to send a test to a channel at.
func TestAlertChannel(id uuid.UUID) string { return AlertChannel(id) + "/test" }

// RemoveAlertChannel is the path to remove a channel at.
func RemoveAlertChannel(id uuid.UUID) string { return AlertChannel(id) + "/remove" }

// RetryAlert is the path to send an alert again at that was not delivered.
func RetryAlert(delivery uuid.UUID) string {
	return AlertDeliveries + "/" + delivery.String() + "/retry"
}
