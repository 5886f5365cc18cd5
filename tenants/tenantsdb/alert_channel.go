package tenantsdb

import (
	"context"
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
	var workspaces []tenants.WorkspaceID
	err := db.asWorker(ctx, func(tx *gorm.DB) error {
		return tx.Raw("SELECT DISTINCT workspace_id FROM alert_channels WHERE NOT disabled ORDER BY workspace_id").Scan(&workspaces).Error
	})
	return workspaces, batchdb.Wrapf(err, "list workspaces with alert channels")
}

// AlertChannels returns the alert channels of a workspace, the oldest first.
func (db Alerts) AlertChannels(ctx context.Context, workspace tenants.WorkspaceID) ([]tenants.AlertChannel, error) {
	var rows []alertChannelRow
	err := db.inTenant(ctx, workspace, func(tx *gorm.DB) error {
		return tx.Table("alert_channels").Select(alertChannelColumns).
			Where("workspace_id = ?", workspace).Order("created_at, id").Find(&rows).Error
	})
	return each(rows, (*alertChannelRow).toAlertChannel), batchdb.Wrapf(err, "alert channels of workspace %s", workspace)
}

// AddAlertChannel stores a new alert channel of a workspace. It returns a tenants.Invalid if the workspace
// has reached the maximum.
func (db Alerts) AddAlertChannel(ctx context.Context, workspace tenants.WorkspaceID, channel tenants.AlertChannel) error {
	err := db.inTenant(ctx, workspace, func(tx *gorm.DB) error {
		var count int64
		if err := tx.Table("alert_channels").Where("workspace_id = ?", workspace).Count(&count).Error; err != nil {
			return err
		}
		if count >= tenants.MaxAlertChannels {
			return tenants.Invalid{Field: "name", Message: fmt.Sprintf("cannot be added: there are %d channels already", count)}
		}
		err := tx.Exec(`INSERT INTO alert_channels (workspace_id, id, kind, name, place, user_id, sealed, rules, disabled, set_by, created_at)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, workspace, channel.ID, string(channel.Kind), storable(channel.Name), storable(channel.Place),
			nullable(channel.User), channel.Sealed, tenants.JoinAlertRules(channel.Rules), channel.Disabled, nullable(channel.SetBy), channel.CreatedAt).Error
		if err != nil {
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
		err = tx.Exec(`UPDATE alert_channels SET name = ?, place = ?, user_id = ?, sealed = ?, rules = ?, disabled = ?, set_by = ?
			WHERE workspace_id = ? AND id = ?`, storable(after.Name), storable(after.Place), nullable(after.User), after.Sealed,
			tenants.JoinAlertRules(after.Rules), after.Disabled, nullable(after.SetBy), workspace, id).Error
		if err != nil {
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
		if err := tx.Exec("DELETE FROM alert_channels WHERE workspace_id = ? AND id = ?", workspace, id).Error; err != nil {
			return err
		}
		return audit(tx, workspace, tenants.Change{Action: tenants.AlertChannelRemoved, Target: id.String(), Before: before.Fields()})
	})
	return batchdb.Wrapf(err, "remove alert channel %s", id)
}

// ResealAlertChannel replaces an alert channel's sealed value, unless it has been replaced already.
func (db Alerts) ResealAlertChannel(ctx context.Context, workspace tenants.WorkspaceID, id uuid.UUID, old, sealed []byte) error {
	err := db.inTenant(ctx, workspace, func(tx *gorm.DB) error {
		return tx.Exec("UPDATE alert_channels SET sealed = ? WHERE workspace_id = ? AND id = ? AND sealed = ?", sealed, workspace, id, old).Error
	})
	return batchdb.Wrapf(err, "reseal alert channel %s", id)
}

// AlertSettings returns a workspace's alert settings.
func (db Alerts) AlertSettings(ctx context.Context, workspace tenants.WorkspaceID) (tenants.AlertSettings, error) {
	var settings tenants.AlertSettings
	err := db.inTenant(ctx, workspace, func(tx *gorm.DB) (err error) {
		settings, err = findAlertSettings(tx, workspace)
		return err
	})
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
		err = tx.Exec(`INSERT INTO alert_settings (workspace_id, quiet_from, quiet_to, time_zone, error_percent) VALUES (?, ?, ?, ?, ?)
			ON CONFLICT (workspace_id) DO UPDATE SET quiet_from = excluded.quiet_from, quiet_to = excluded.quiet_to,
				time_zone = excluded.time_zone, error_percent = excluded.error_percent`,
			workspace, settings.QuietFrom, settings.QuietTo, settings.TimeZone, settings.ErrorPercent).Error
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
	err := tx.Raw(`SELECT coalesce(s.quiet_from, 0) AS quiet_from, coalesce(s.quiet_to, 0) AS quiet_to, coalesce(s.time_zone, w.time_zone) AS time_zone, coalesce(s.error_percent, ?) AS error_percent
		FROM workspaces w LEFT JOIN alert_settings s ON s.workspace_id = w.workspace_id WHERE w.workspace_id = ?`,
		tenants.DefaultAlertSettings().ErrorPercent, workspace).Scan(&rows).Error
	return batchdb.First(rows, err, tenants.ErrNotFound)
}

const alertChannelColumns = "id, kind, name, place, user_id, sealed, rules, disabled, set_by, created_at"

// lockAlertChannel returns and locks an alert channel, or returns tenants.ErrNotFound.
func lockAlertChannel(tx *gorm.DB, workspace tenants.WorkspaceID, id uuid.UUID) (tenants.AlertChannel, error) {
	var rows []alertChannelRow
	err := tx.Raw("SELECT "+alertChannelColumns+" FROM alert_channels WHERE workspace_id = ? AND id = ? FOR UPDATE", workspace, id).Scan(&rows).Error
	row, err := batchdb.First(rows, err, tenants.ErrNotFound)
	return row.toAlertChannel(), err
}

type alertChannelRow struct {
	ID        uuid.UUID
	Kind      string
	Name      string
	Place     string
	UserID    uuid.NullUUID
	Sealed    []byte
	Rules     string
	Disabled  bool
	SetBy     uuid.NullUUID
	CreatedAt time.Time
}

func (r alertChannelRow) toAlertChannel() tenants.AlertChannel {
	return tenants.AlertChannel{
		ID: r.ID, Kind: tenants.AlertKind(r.Kind), Name: r.Name, Place: r.Place, User: r.UserID.UUID, Sealed: r.Sealed,
		Rules: tenants.SplitAlertRules(r.Rules), Disabled: r.Disabled, SetBy: r.SetBy.UUID, CreatedAt: r.CreatedAt,
	}
}
