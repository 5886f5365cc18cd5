package sessiondb

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"gorm.io/gorm"

	"palimpsest/pipeline/batchdb"
	"palimpsest/pipeline/session"
	"palimpsest/tenants"
)

const (
	// A lane inherits the pins of the messages that it shares with its parent.
	sqlPins = sqlDescent + `
		SELECT DISTINCT ON (n.message) n.lane_id, n.message, n.pinned_by, n.pinned_at
		FROM line JOIN lane_pins n ON n.workspace_id = $1 AND n.lane_id = line.id AND n.message < line.covers
		ORDER BY n.message, n.pinned_at`
	sqlPin = `INSERT INTO lane_pins (workspace_id, lane_id, message, pinned_by)
		SELECT workspace_id, id, $3, $4 FROM lanes
		WHERE workspace_id = $1 AND id = $2 AND position > $3
			AND (SELECT count(*) FROM lane_pins n WHERE n.workspace_id = $1 AND n.lane_id = $2) < $5
		ON CONFLICT (workspace_id, lane_id, message) DO UPDATE SET pinned_by = lane_pins.pinned_by`
	sqlPinSession   = `UPDATE sessions SET pinned_at = coalesce(pinned_at, now()), pinned_by = coalesce(pinned_by, $3) WHERE workspace_id = $1 AND id = $2`
	sqlUnpinSession = `UPDATE sessions SET pinned_at = NULL, pinned_by = NULL WHERE workspace_id = $1 AND id = $2 AND pinned_at IS NOT NULL`
	sqlNotifyLanes  = `SELECT pg_notify($3, workspace_id || '/' || id || '/0') FROM lanes WHERE workspace_id = $1 AND session_id = $2`
	sqlUnpin        = `DELETE FROM lane_pins WHERE workspace_id = $1 AND lane_id = $2 AND message = $3`
)

// Pins returns the pins of a lane by message, including those of messages shared with its parent.
func (s Browser) Pins(ctx context.Context, workspace tenants.WorkspaceID, lane uuid.UUID) ([]session.Pin, error) {
	pins, err := batchdb.Read(ctx, batchdb.Of(s.runner, workspace), func(tx *gorm.DB) ([]session.Pin, error) { return pinsOf(tx, workspace, lane) })
	return pins, batchdb.Wrapf(err, "pins of lane %s", lane)
}

// Pin pins a message of a lane and notifies all replicas. An existing pin stays. It returns
// session.ErrNotFound if the lane has no such message or has session.MaxPins pins.
func (s Browser) Pin(ctx context.Context, tenant tenants.Tenant, pin session.Pin) error {
	err := s.change(ctx, tenant, pin.Lane, sqlPin, tenant.Workspace(), pin.Lane, pin.Message, pin.By, session.MaxPins)
	return batchdb.Wrapf(err, "pin message %d of lane %s", pin.Message, pin.Lane)
}

// Unpin removes a pin and notifies all replicas. It returns session.ErrNotFound if the lane itself has no
// such pin.
func (s Browser) Unpin(ctx context.Context, tenant tenants.Tenant, lane uuid.UUID, message int) error {
	if err := s.change(ctx, tenant, lane, sqlUnpin, tenant.Workspace(), lane, message); err != nil {
		return fmt.Errorf("unpin message %d of lane %s: %w", message, lane, err)
	}
	return nil
}

// PinSession pins a whole session and notifies all replicas. An existing pin stays. It returns
// session.ErrNotFound if the workspace has no such session.
func (s Browser) PinSession(ctx context.Context, tenant tenants.Tenant, id, by uuid.UUID) error {
	return batchdb.Wrapf(s.changeSession(ctx, tenant, id, sqlPinSession, by), "pin session %s", id)
}

// UnpinSession ends the pin of a whole session and notifies all replicas. It returns session.ErrNotFound if
// the session isn't pinned.
func (s Browser) UnpinSession(ctx context.Context, tenant tenants.Tenant, id uuid.UUID) error {
	return batchdb.Wrapf(s.changeSession(ctx, tenant, id, sqlUnpinSession), "unpin session %s", id)
}

// changeSession runs a statement on the row of a session and makes all replicas reload its lanes.
func (c *core) changeSession(ctx context.Context, tenant tenants.Tenant, id uuid.UUID, statement string, values ...any) error {
	return c.runner.InTenant(ctx, tenant, func(tx *gorm.DB) error {
		result, err := tx.Statement.ConnPool.ExecContext(ctx, statement, append([]any{tenant.Workspace(), id}, values...)...)
		if err != nil {
			return err
		}
		rows, err := result.RowsAffected()
		if err != nil {
			return err
		}
		if rows == 0 {
			return session.ErrNotFound
		}
		return batchdb.Later(tx, sqlNotifyLanes, tenant.Workspace(), id, Channel)
	})
}

// change runs a statement on one row of a lane and makes all replicas reload the lane.
func (s Browser) change(ctx context.Context, tenant tenants.Tenant, lane uuid.UUID, statement string, values ...any) error {
	return s.runner.InTenant(ctx, tenant, func(tx *gorm.DB) error {
		result, err := tx.Statement.ConnPool.ExecContext(ctx, statement, values...)
		if err != nil {
			return err
		}
		rows, err := result.RowsAffected()
		if err != nil {
			return err
		}
		if rows == 0 {
			return session.ErrNotFound
		}
		return notify(tx, tenant.Workspace(), lane, 0)
	})
}

func pinsOf(tx *gorm.DB, workspace tenants.WorkspaceID, lane uuid.UUID) ([]session.Pin, error) {
	return batchdb.Rows(tx, func(row pgx.CollectableRow) (pin session.Pin, err error) {
		err = row.Scan(&pin.Lane, &pin.Message, &pin.By, &pin.At)
		return pin, err
	}, sqlPins, workspace, lane)
}
