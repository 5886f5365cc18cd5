package alerts

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"palimpsest/tenants"
)

// Pass checks the rules of all workspaces that have a channel, and raises alerts. It may run again, or in two
// processes at once, because an alert is raised once.
func (s *Service) Pass(ctx context.Context) error {
	workspaces, err := s.config.Store.AlertedWorkspaces(ctx)
	if err != nil {
		return err
	}
	var failures []error
	for _, workspace := range workspaces {
		if err := s.look(ctx, workspace); err != nil {
			failures = append(failures, fmt.Errorf("alerts of workspace %s: %w", workspace, err))
		}
	}
	return errors.Join(failures...)
}

// look does a pass for one workspace. A rule that fails doesn't stop the others.
func (s *Service) look(ctx context.Context, workspace tenants.WorkspaceID) error {
	channels, err := s.config.Store.AlertChannels(ctx, workspace)
	if err != nil {
		return err
	}
	settings, err := s.config.Store.AlertSettings(ctx, workspace)
	if err != nil {
		return err
	}
	failures := []error{s.resume(ctx, workspace), s.config.Store.ForgetAlerts(ctx, workspace, s.config.Now().Add(-keepLog))}
	for _, rule := range tenants.AlertRules() {
		subscribed := slices.DeleteFunc(slices.Clone(channels), func(channel tenants.AlertChannel) bool { return !channel.Takes(rule) })
		if len(subscribed) > 0 {
			failures = append(failures, ruleCheck{service: s, workspace: workspace, settings: settings, channels: subscribed, rule: rule}.look(ctx))
		}
	}
	return errors.Join(failures...)
}

// ruleCheck checks one rule in one workspace.
type ruleCheck struct {
	service   *Service
	workspace tenants.WorkspaceID
	settings  tenants.AlertSettings
	channels  []tenants.AlertChannel // subscribers of the rule
	rule      tenants.AlertRule
}

// look checks the rule and raises its alerts.
func (l ruleCheck) look(ctx context.Context) error {
	switch l.rule {
	case tenants.AlertBudget:
		return l.budgets(ctx)
	case tenants.AlertSpendJump:
		return l.spendJump(ctx)
	case tenants.AlertProviderKey:
		return l.providerKeys(ctx)
	case tenants.AlertErrorRate:
		return l.errorRate(ctx)
	case tenants.AlertSlow:
		return l.slow(ctx)
	case tenants.AlertHeldUp:
		return l.heldUp(ctx)
	case tenants.AlertCompaction:
		return l.compaction(ctx)
	case tenants.AlertAccess:
		return l.access(ctx)
	case tenants.AlertInstallation:
		return l.installation(ctx)
	case tenants.AlertTest:
	}
	return nil
}

// raise delivers an alert of the rule to the channels.
func (l ruleCheck) raise(ctx context.Context, channels []tenants.AlertChannel, alert tenants.Alert) error {
	alert.Rule = l.rule
	return l.service.raise(ctx, l.workspace, l.settings, channels, alert)
}

// goesOn raises alerts for current problems. It clears the marks of past ones, so that they can raise alerts
// again.
func (l ruleCheck) goesOn(ctx context.Context, alerts []tenants.Alert) error {
	subjects := make([]string, len(alerts))
	for i, alert := range alerts {
		subjects[i] = alert.Subject
	}
	err := l.service.config.Store.ClearAlertMarks(ctx, l.workspace, l.rule, subjects, l.service.config.Now().Add(-tenants.AlertCalm))
	for _, alert := range alerts {
		err = errors.Join(err, l.raise(ctx, l.channels, alert))
	}
	return err
}

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
