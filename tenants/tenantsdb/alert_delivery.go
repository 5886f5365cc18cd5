package tenantsdb

import (
	"context"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"palimpsest/pipeline/batchdb"
	"palimpsest/tenants"
)

// MarkAlert reports whether an alert has not been sent yet, and marks it as sent. It returns true to exactly
// one of several concurrent replicas.
func (db Alerts) MarkAlert(ctx context.Context, tenant tenants.Tenant, alert tenants.Alert, at time.Time) (bool, error) {
	workspace := tenant.Workspace()
	var marked int64
	err := db.inTenant(ctx, tenant, func(tx *gorm.DB) error {
		done := tx.Exec(`INSERT INTO alert_marks AS m (workspace_id, rule, subject, period, at) VALUES (?, ?, ?, ?, ?)
			ON CONFLICT (workspace_id, rule, subject) DO UPDATE SET period = excluded.period, at = excluded.at
			WHERE m.period <> excluded.period OR excluded.period = '' AND m.at <= ?`,
			workspace, string(alert.Rule), storable(alert.Subject), storable(alert.Period), at, at.Add(-tenants.AlertAgain))
		marked = done.RowsAffected
		return done.Error
	})
	return marked > 0, batchdb.Wrapf(err, "mark alert %s", alert.Rule)
}

// ClearAlertMarks deletes a rule's alert marks from before a time for problems that have ended.
func (db Alerts) ClearAlertMarks(ctx context.Context, workspace tenants.WorkspaceID, rule tenants.AlertRule, still []string, before time.Time) error {
	err := db.inTenant(ctx, workspace, func(tx *gorm.DB) error {
		statement, values := "DELETE FROM alert_marks WHERE workspace_id = ? AND rule = ? AND period = '' AND at < ?", []any{workspace, string(rule), before}
		if len(still) > 0 {
			statement, values = statement+" AND subject NOT IN ?", append(values, still)
		}
		return tx.Exec(statement, values...).Error
	})
	return batchdb.Wrapf(err, "clear marks of alerts")
}

// ForgetAlerts deletes ended deliveries, and marks, from before a time.
func (db Alerts) ForgetAlerts(ctx context.Context, workspace tenants.WorkspaceID, before time.Time) error {
	err := db.inTenant(ctx, workspace, func(tx *gorm.DB) error {
		if err := tx.Exec("DELETE FROM alert_marks WHERE workspace_id = ? AND at < ?", workspace, before).Error; err != nil {
			return err
		}
		return tx.Exec("DELETE FROM alert_deliveries WHERE workspace_id = ? AND created_at < ? AND state <> 'waiting'", workspace, before).Error
	})
	return batchdb.Wrapf(err, "forget alerts of workspace %s", workspace)
}

// AddAlertDelivery stores a delivery.
func (db Alerts) AddAlertDelivery(ctx context.Context, tenant tenants.Tenant, d tenants.AlertDelivery) error {
	workspace := tenant.Workspace()
	err := db.inTenant(ctx, tenant, func(tx *gorm.DB) error {
		return tx.Exec(`INSERT INTO alert_deliveries (workspace_id, id, channel_id, rule, subject, title, body, path, created_at, next_at, until,
				state, attempts, tried_at, status, answer) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			workspace, d.ID, d.Channel, string(d.Rule), storable(d.Subject), storable(d.Title), storable(d.Text), storable(d.Path), d.CreatedAt,
			d.NextAt, d.Until, string(d.State), d.Attempts, given(d.TriedAt), d.Status, storable(d.Answer)).Error
	})
	return batchdb.Wrapf(err, "keep delivery of alert")
}

// AlertDeliveries returns the newest deliveries of a workspace, the newest first.
func (db Alerts) AlertDeliveries(ctx context.Context, workspace tenants.WorkspaceID, limit int) ([]tenants.AlertDelivery, error) {
	return db.alertDeliveries(ctx, workspace, "workspace_id = ? ORDER BY id DESC LIMIT ?", workspace, limit)
}

// OverdueAlertDeliveries returns deliveries that were due before a time.
func (db Alerts) OverdueAlertDeliveries(ctx context.Context, workspace tenants.WorkspaceID, before time.Time, limit int) ([]tenants.AlertDelivery, error) {
	return db.alertDeliveries(ctx, workspace, "workspace_id = ? AND state = 'waiting' AND next_at < ? ORDER BY id LIMIT ?", workspace, before, limit)
}

// AlertDelivery returns a delivery and its channel, or tenants.ErrNotFound.
func (db Alerts) AlertDelivery(ctx context.Context, workspace tenants.WorkspaceID, id uuid.UUID) (tenants.AlertDelivery, tenants.AlertChannel, error) {
	var found tenants.AlertDelivery
	var channel tenants.AlertChannel
	err := db.inTenant(ctx, workspace, func(tx *gorm.DB) error {
		var row alertDeliveryRow
		err := tx.Table("alert_deliveries").Select(alertDeliveryColumns).Where("workspace_id = ? AND id = ?", workspace, id).Take(&row).Error
		if err != nil {
			return kind(err)
		}
		var of alertChannelRow
		err = tx.Table("alert_channels").Select(alertChannelColumns).Where("workspace_id = ? AND id = ?", workspace, row.ChannelID).Take(&of).Error
		found, channel = row.toAlertDelivery(), of.toAlertChannel()
		return kind(err)
	})
	return found, channel, batchdb.Wrapf(err, "delivery of alert %s", id)
}

// NoteAlertAttempt records the outcome of a delivery attempt.
func (db Alerts) NoteAlertAttempt(ctx context.Context, workspace tenants.WorkspaceID, id uuid.UUID, attempt tenants.AlertAttempt) error {
	err := db.inTenant(ctx, workspace, func(tx *gorm.DB) error {
		return tx.Exec(`UPDATE alert_deliveries SET attempts = attempts + 1, tried_at = ?, state = ?, next_at = coalesce(?, next_at), status = ?, answer = ?
			WHERE workspace_id = ? AND id = ?`, attempt.At, string(attempt.State), given(attempt.NextAt), attempt.Status, storable(attempt.Answer), workspace, id).Error
	})
	return batchdb.Wrapf(err, "note attempt to deliver alert %s", id)
}

// RetryAlertDelivery makes a failed delivery wait for attempts between two times. It returns
// tenants.ErrNotFound for a delivery that has not failed.
func (db Alerts) RetryAlertDelivery(ctx context.Context, tenant tenants.Tenant, id uuid.UUID, at, until time.Time) error {
	workspace := tenant.Workspace()
	err := db.inTenant(ctx, tenant, func(tx *gorm.DB) error {
		return changedOne(tx.Exec("UPDATE alert_deliveries SET state = 'waiting', next_at = ?, until = ? WHERE workspace_id = ? AND id = ? AND state = 'failed'",
			at, until, workspace, id), tenants.ErrNotFound)
	})
	return batchdb.Wrapf(err, "retry delivery of alert %s", id)
}

func (db Alerts) alertDeliveries(ctx context.Context, workspace tenants.WorkspaceID, condition string, values ...any) ([]tenants.AlertDelivery, error) {
	var rows []alertDeliveryRow
	err := db.inTenant(ctx, workspace, func(tx *gorm.DB) error {
		return tx.Raw("SELECT "+alertDeliveryColumns+" FROM alert_deliveries WHERE "+condition, values...).Scan(&rows).Error
	})
	return each(rows, (*alertDeliveryRow).toAlertDelivery), batchdb.Wrapf(err, "deliveries of alerts of workspace %s", workspace)
}

// given converts a time for a column: NULL for the zero time.
func given(at time.Time) *time.Time {
	if at.IsZero() {
		return nil
	}
	return &at
}

const alertDeliveryColumns = "id, channel_id, rule, subject, title, body, path, created_at, next_at, until, state, attempts, tried_at, status, answer"

type alertDeliveryRow struct {
	ID        uuid.UUID
	ChannelID uuid.UUID
	Rule      string
	Subject   string
	Title     string
	Body      string
	Path      string
	CreatedAt time.Time
	NextAt    time.Time
	Until     time.Time
	State     string
	Attempts  int
	TriedAt   *time.Time
	Status    int
	Answer    string
}

func (r alertDeliveryRow) toAlertDelivery() tenants.AlertDelivery {
	return tenants.AlertDelivery{
		Alert: tenants.Alert{Rule: tenants.AlertRule(r.Rule), Subject: r.Subject, Title: r.Title, Text: r.Body, Path: r.Path},
		ID:    r.ID, Channel: r.ChannelID, CreatedAt: r.CreatedAt, NextAt: r.NextAt, Until: r.Until, State: tenants.DeliveryState(r.State),
		Attempts: r.Attempts, TriedAt: moment(r.TriedAt), Status: r.Status, Answer: r.Answer,
	}
}
