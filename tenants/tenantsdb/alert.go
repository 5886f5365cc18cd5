package tenantsdb

import (
	"context"
	"database/sql"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"palimpsest/pipeline/batchdb"
	"palimpsest/tenants"
)

// Alerts stores alert channels and deliveries, and reads the facts for rules.
type Alerts struct{ *core }

// AlertedWorkspaces returns the workspaces with an enabled alert channel.
func (db Alerts) AlertedWorkspaces(ctx context.Context) ([]tenants.WorkspaceID, error) {
	workspaces, err := batchdb.Scan[[]tenants.WorkspaceID](ctx, db.asWorker, "SELECT DISTINCT workspace_id FROM alert_channels WHERE NOT disabled ORDER BY workspace_id")
	return workspaces, batchdb.Wrapf(err, "list workspaces with alert channels")
}

// AlertChannels returns the alert channels of a workspace, the oldest first.
func (db Alerts) AlertChannels(ctx context.Context, workspace tenants.WorkspaceID) ([]tenants.AlertChannel, error) {
	channels, err := all[tenants.AlertChannel](ctx, db.tenant(workspace), "alert_channels", "created_at, id", "workspace_id = ?", workspace)
	return channels, batchdb.Wrapf(err, "alert channels of workspace %s", workspace)
}

// AddAlertChannel stores a new alert channel of a workspace. It returns a tenants.Invalid if the workspace
// has reached the maximum.
func (db Alerts) AddAlertChannel(ctx context.Context, workspace tenants.WorkspaceID, channel tenants.AlertChannel) error {
	err := db.inTenant(ctx, workspace, func(tx *gorm.DB) error {
		count, err := batchdb.Query[int](tx, "SELECT count(*) FROM alert_channels WHERE workspace_id = ?", workspace)
		if err != nil {
			return err
		}
		if count >= tenants.MaxAlertChannels {
			return tenants.Invalid{Field: "name", Message: fmt.Sprintf("cannot be added: there are %d channels already", count)}
		}
		if err := create(tx, "alert_channels", &owned[tenants.AlertChannel]{workspace, channel}); err != nil {
			return err
		}
		return audit(tx, workspace, tenants.Change{Action: tenants.AlertChannelAdded, Target: channel.ID.String(), After: channel.Fields()})
	})
	return batchdb.Wrapf(err, "add alert channel")
}

// ChangeAlertChannel replaces an alert channel with the result of change. It returns tenants.ErrNotFound and
// the errors of change.
func (db Alerts) ChangeAlertChannel(ctx context.Context, workspace tenants.WorkspaceID, id uuid.UUID, change func(tenants.AlertChannel) (tenants.AlertChannel, error)) error {
	err := db.inTenant(ctx, workspace, func(tx *gorm.DB) error {
		before, err := lockAlertChannel(tx, workspace, id)
		if err != nil {
			return err
		}
		after, err := change(before)
		if err != nil {
			return err
		}
		changed := []string{"name", "place", "user_id", "sealed", "rules", "disabled", "set_by"}
		if err := update(tx, "alert_channels", &after, changed, "workspace_id = ? AND id = ?", workspace, id); err != nil {
			return err
		}
		return audit(tx, workspace, tenants.Change{Action: tenants.AlertChannelChanged, Target: id.String(), Before: before.Fields(), After: after.Fields()})
	})
	return batchdb.Wrapf(err, "change alert channel %s", id)
}

// RemoveAlertChannel removes an alert channel with its deliveries, or returns
// tenants.ErrNotFound.
func (db Alerts) RemoveAlertChannel(ctx context.Context, workspace tenants.WorkspaceID, id uuid.UUID) error {
	err := db.inTenant(ctx, workspace, func(tx *gorm.DB) error {
		before, err := lockAlertChannel(tx, workspace, id)
		if err != nil {
			return err
		}
		if err := batchdb.Write(tx, "DELETE FROM alert_channels WHERE workspace_id = ? AND id = ?", workspace, id); err != nil {
			return err
		}
		return audit(tx, workspace, tenants.Change{Action: tenants.AlertChannelRemoved, Target: id.String(), Before: before.Fields()})
	})
	return batchdb.Wrapf(err, "remove alert channel %s", id)
}

// ResealAlertChannel replaces an alert channel's sealed value, unless it has been replaced already.
func (db Alerts) ResealAlertChannel(ctx context.Context, workspace tenants.WorkspaceID, id uuid.UUID, old, sealed []byte) error {
	err := batchdb.Exec(ctx, db.tenant(workspace), "UPDATE alert_channels SET sealed = ? WHERE workspace_id = ? AND id = ? AND sealed = ?", sealed, workspace, id, old)
	return batchdb.Wrapf(err, "reseal alert channel %s", id)
}

// AlertSettings returns a workspace's alert settings.
func (db Alerts) AlertSettings(ctx context.Context, workspace tenants.WorkspaceID) (tenants.AlertSettings, error) {
	settings, err := batchdb.Read(ctx, db.tenant(workspace), func(tx *gorm.DB) (tenants.AlertSettings, error) { return findAlertSettings(tx, workspace) })
	return settings, batchdb.Wrapf(err, "alert settings of workspace %s", workspace)
}

// SaveAlertSettings sets a workspace's alert settings, or returns a tenants.Invalid.
func (db Alerts) SaveAlertSettings(ctx context.Context, workspace tenants.WorkspaceID, settings tenants.AlertSettings) error {
	if err := settings.Validate(); err != nil {
		return err
	}
	err := db.inTenant(ctx, workspace, func(tx *gorm.DB) error {
		before, err := findAlertSettings(tx, workspace)
		if err != nil || before == settings {
			return err
		}
		err = tx.Exec(`INSERT INTO alert_settings (workspace_id, quiet_from, quiet_to, time_zone, error_percent, spend_percent, slow_seconds, held_percent)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?)
			ON CONFLICT (workspace_id) DO UPDATE SET quiet_from = excluded.quiet_from, quiet_to = excluded.quiet_to,
				time_zone = excluded.time_zone, error_percent = excluded.error_percent,
				spend_percent = excluded.spend_percent, slow_seconds = excluded.slow_seconds, held_percent = excluded.held_percent`,
			workspace, settings.QuietFrom, settings.QuietTo, settings.TimeZone, settings.ErrorPercent,
			settings.SpendPercent, settings.SlowSeconds, settings.HeldPercent).Error
		if err != nil {
			return err
		}
		return audit(tx, workspace, tenants.Change{Action: tenants.AlertsSaved, Before: before.Fields(), After: settings.Fields()})
	})
	return batchdb.Wrapf(err, "save alert settings of workspace %s", workspace)
}

// findAlertSettings returns a workspace's settings, or the defaults in its own time zone.
func findAlertSettings(tx *gorm.DB, workspace tenants.WorkspaceID) (tenants.AlertSettings, error) {
	var rows []tenants.AlertSettings
	usual := tenants.DefaultAlertSettings()
	err := tx.Raw(`SELECT coalesce(s.quiet_from, 0) AS quiet_from, coalesce(s.quiet_to, 0) AS quiet_to, coalesce(s.time_zone, w.time_zone) AS time_zone,
			coalesce(s.error_percent, ?) AS error_percent, coalesce(s.spend_percent, ?) AS spend_percent,
			coalesce(s.slow_seconds, ?) AS slow_seconds, coalesce(s.held_percent, ?) AS held_percent
		FROM workspaces w LEFT JOIN alert_settings s ON s.workspace_id = w.workspace_id WHERE w.workspace_id = ?`,
		usual.ErrorPercent, usual.SpendPercent, usual.SlowSeconds, usual.HeldPercent, workspace).Scan(&rows).Error
	return batchdb.First(rows, err, tenants.ErrNotFound)
}

// lockAlertChannel returns and locks an alert channel, or returns tenants.ErrNotFound.
func lockAlertChannel(tx *gorm.DB, workspace tenants.WorkspaceID, id uuid.UUID) (tenants.AlertChannel, error) {
	return find[tenants.AlertChannel](tx.Table("alert_channels").Where("workspace_id = ? AND id = ?", workspace, id).Clauses(locked()))
}

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
		return batchdb.Write(tx, statement, values...)
	})
	return batchdb.Wrapf(err, "clear marks of alerts")
}

// ForgetAlerts deletes ended deliveries, and marks, from before a time.
func (db Alerts) ForgetAlerts(ctx context.Context, workspace tenants.WorkspaceID, before time.Time) error {
	err := db.inTenant(ctx, workspace, func(tx *gorm.DB) error {
		if err := batchdb.Write(tx, "DELETE FROM alert_marks WHERE workspace_id = ? AND at < ?", workspace, before); err != nil {
			return err
		}
		return batchdb.Write(tx, "DELETE FROM alert_deliveries WHERE workspace_id = ? AND created_at < ? AND state <> 'waiting'", workspace, before)
	})
	return batchdb.Wrapf(err, "forget alerts of workspace %s", workspace)
}

// AddAlertDelivery stores a delivery.
func (db Alerts) AddAlertDelivery(ctx context.Context, tenant tenants.Tenant, d tenants.AlertDelivery) error {
	err := db.inTenant(ctx, tenant, func(tx *gorm.DB) error {
		return create(tx, "alert_deliveries", &owned[tenants.AlertDelivery]{tenant.Workspace(), d})
	})
	return batchdb.Wrapf(err, "keep delivery of alert")
}

// AlertDeliveries returns the newest deliveries of a workspace, the newest first.
func (db Alerts) AlertDeliveries(ctx context.Context, workspace tenants.WorkspaceID, limit int) ([]tenants.AlertDelivery, error) {
	return db.alertDeliveries(ctx, workspace, func(query *gorm.DB) *gorm.DB { return query.Order("id DESC").Limit(limit) })
}

// OverdueAlertDeliveries returns deliveries that were due before a time.
func (db Alerts) OverdueAlertDeliveries(ctx context.Context, workspace tenants.WorkspaceID, before time.Time, limit int) ([]tenants.AlertDelivery, error) {
	return db.alertDeliveries(ctx, workspace, func(query *gorm.DB) *gorm.DB {
		return query.Where("state = 'waiting' AND next_at < ?", before).Order("id").Limit(limit)
	})
}

// AlertDelivery returns a delivery and its channel, or tenants.ErrNotFound.
func (db Alerts) AlertDelivery(ctx context.Context, workspace tenants.WorkspaceID, id uuid.UUID) (tenants.AlertDelivery, tenants.AlertChannel, error) {
	var found tenants.AlertDelivery
	var channel tenants.AlertChannel
	err := db.inTenant(ctx, workspace, func(tx *gorm.DB) (err error) {
		if found, err = find[tenants.AlertDelivery](tx.Table("alert_deliveries").Where("workspace_id = ? AND id = ?", workspace, id)); err != nil {
			return err
		}
		channel, err = find[tenants.AlertChannel](tx.Table("alert_channels").Where("workspace_id = ? AND id = ?", workspace, found.Channel))
		return err
	})
	return found, channel, batchdb.Wrapf(err, "delivery of alert %s", id)
}

// NoteAlertAttempt records the outcome of a delivery attempt.
func (db Alerts) NoteAlertAttempt(ctx context.Context, workspace tenants.WorkspaceID, id uuid.UUID, attempt tenants.AlertAttempt) error {
	err := batchdb.Exec(ctx, db.tenant(workspace), `UPDATE alert_deliveries SET attempts = attempts + 1, tried_at = ?, state = ?, next_at = coalesce(?, next_at), status = ?, answer = ?
		WHERE workspace_id = ? AND id = ?`, attempt.At, string(attempt.State), sql.NullTime{Time: attempt.NextAt, Valid: !attempt.NextAt.IsZero()}, attempt.Status, storable(attempt.Answer), workspace, id)
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

func (db Alerts) alertDeliveries(ctx context.Context, workspace tenants.WorkspaceID, narrow func(*gorm.DB) *gorm.DB) ([]tenants.AlertDelivery, error) {
	deliveries, err := batchdb.Read(ctx, db.tenant(workspace), func(tx *gorm.DB) ([]tenants.AlertDelivery, error) {
		return list[tenants.AlertDelivery](narrow(tx.Table("alert_deliveries").Where("workspace_id = ?", workspace)))
	})
	return deliveries, batchdb.Wrapf(err, "deliveries of alerts of workspace %s", workspace)
}

// RecentFailures counts a workspace's client exchanges since a time, and the failed ones, by the rules of
// tenants.Usage.
func (db Alerts) RecentFailures(ctx context.Context, workspace tenants.WorkspaceID, since time.Time) (exchanges, failures int64, err error) {
	var row struct{ Exchanges, Failures int64 }
	err = db.inTenant(ctx, workspace, func(tx *gorm.DB) error {
		return tx.Raw(`SELECT count(*) AS exchanges, count(*) FILTER (WHERE status >= 400 AND status <> 499) AS failures FROM exchanges
			WHERE workspace_id = ? AND at >= ? AND id >= first_exchange_id(?) AND class NOT IN ('summary', 'embedding')`, workspace, since, since).Scan(&row).Error
	})
	return row.Exchanges, row.Failures, batchdb.Wrapf(err, "recent failures of workspace %s", workspace)
}

// sqlHeldUp counts exchanges that compression concerned: with a projection, or above their target without one.
const sqlHeldUp = `
	SELECT count(*) FILTER (WHERE projection > 0 OR above OR unstored) AS concerned,
		count(*) FILTER (WHERE above OR unstored) AS held, count(*) FILTER (WHERE unstored) AS unstored
	FROM (SELECT projection, compression = 'unreachable' AS above, coalesce(report @> '{"events": [{"module": "ipc", "type": "failed"}]}'
			OR report @> '{"events": [{"module": "ipc", "reason": "not_archived"}]}', false) AS unstored
		FROM exchanges WHERE workspace_id = @workspace AND at >= @since AND id >= first_exchange_id(@since) AND tokens_before > 0) e`

// HeldUp counts a workspace's exchanges since a time whose prompt was compressed or should have been.
func (db Alerts) HeldUp(ctx context.Context, workspace tenants.WorkspaceID, since time.Time) (tenants.HeldUp, error) {
	var held tenants.HeldUp
	err := db.inTenant(ctx, workspace, func(tx *gorm.DB) error {
		return tx.Raw(sqlHeldUp, map[string]any{"workspace": workspace, "since": since}).Scan(&held).Error
	})
	return held, batchdb.Wrapf(err, "prompts of workspace %s that stayed above their target", workspace)
}

// maxNews bounds the changes read at once.
const maxNews = 50

// UntoldEntries returns a workspace's audit entries since a time with one of some actions and without an
// alert, the oldest first, at most 50.
func (db Alerts) UntoldEntries(ctx context.Context, workspace tenants.WorkspaceID, since time.Time, actions []tenants.Action) ([]tenants.AuditEntry, error) {
	entries, err := batchdb.Scan[[]tenants.AuditEntry](ctx, db.tenant(workspace), `SELECT id, at, user_id, api_key_id, actor, address, action, target, before, after FROM audit_entries
			WHERE workspace_id = ? AND id >= ? AND at >= ? AND action IN ? AND NOT EXISTS (SELECT FROM alert_marks m
				WHERE m.workspace_id = audit_entries.workspace_id AND m.rule = ? AND m.subject = audit_entries.id::text)
			ORDER BY id LIMIT ?`, workspace, firstID(since.Add(-time.Minute)), since, actions, tenants.AlertAccess, maxNews)
	return entries, batchdb.Wrapf(err, "audit of workspace %s", workspace)
}

// IsOperator reports whether a person is an operator of the installation.
func (db Alerts) IsOperator(ctx context.Context, user uuid.UUID) (bool, error) {
	is, err := batchdb.Scan[bool](ctx, db.user(user), "SELECT EXISTS (SELECT FROM operators WHERE user_id = ?)", user)
	return is, batchdb.Wrapf(err, "whether user %s is an operator", user)
}

// firstID returns the smallest version 7 id of a time.
func firstID(at time.Time) uuid.UUID {
	var id uuid.UUID
	binary.BigEndian.PutUint64(id[:8], uint64(max(at.UnixMilli(), 0))<<16)
	return id
}
