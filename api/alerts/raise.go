package alerts

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"palimpsest/tenants"
)

// raise delivers an alert to channels, unless people were already alerted to the same problem. Alerts in
// quiet hours wait until those end.
func (s *Service) raise(ctx context.Context, workspace tenants.WorkspaceID, settings tenants.AlertSettings, channels []tenants.AlertChannel, alert tenants.Alert) error {
	if len(channels) == 0 {
		return nil
	}
	now := s.config.Now()
	due := settings.Due(now)
	err := s.config.Store.Together(ctx, workspace, func(tenant tenants.Tenant) error {
		isNew, err := s.config.Store.MarkAlert(ctx, tenant, alert, now)
		if err != nil || !isNew {
			return err
		}
		for _, channel := range channels {
			if err := s.hand(ctx, tenant, channel, alert, now, due); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("raise alert %s: %w", alert.Rule, err)
	}
	return nil
}

// hand stores a delivery, and a job that does it.
func (s *Service) hand(ctx context.Context, tenant tenants.Tenant, channel tenants.AlertChannel, alert tenants.Alert, now, due time.Time) error {
	delivery := tenants.AlertDelivery{
		Alert: alert, ID: uuid.Must(uuid.NewV7()), Channel: channel.ID, CreatedAt: now, NextAt: due, Until: due.Add(GiveUpAfter), State: tenants.DeliveryWaiting,
	}
	if err := s.config.Store.AddAlertDelivery(ctx, tenant, delivery); err != nil {
		return err
	}
	return s.enqueue(ctx, tenant, delivery.ID, due)
}
