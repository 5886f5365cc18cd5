package tenantsdb

import (
	"context"
	"encoding/hex"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"palimpsest/pipeline/batchdb"
	"palimpsest/tenants"
)

// DeviceLogins stores terminals' logins by the hashes of their codes.
type DeviceLogins struct{ *core }

// CreateDeviceLogin stores a login, and deletes logins that ended an hour ago.
func (db DeviceLogins) CreateDeviceLogin(ctx context.Context, login tenants.DeviceLogin, device, code []byte) error {
	err := db.withCode(ctx, device, func(tx *gorm.DB) error {
		if err := tx.Exec("DELETE FROM device_logins WHERE expires_at < now() - interval '1 hour'").Error; err != nil {
			return err
		}
		// The hash is not the first value because gorm expands bytes behind a parenthesis to a list.
		return tx.Exec(`INSERT INTO device_logins (machine, device_hash, code_hash, asked_from, asked_at, expires_at, pause_seconds)
			VALUES (?, ?, ?, ?, ?, ?, ?)`, storable(login.Machine), device, code, storable(login.From), login.AskedAt, login.ExpiresAt, int(login.Pause.Seconds())).Error
	})
	return batchdb.Wrapf(err, "create terminal login")
}

// DeviceLogin returns the login with the hash of one of its codes, or tenants.ErrNotFound.
func (db DeviceLogins) DeviceLogin(ctx context.Context, hash []byte) (tenants.DeviceLogin, error) {
	var login tenants.DeviceLogin
	err := db.withCode(ctx, hash, func(tx *gorm.DB) error {
		var err error
		login, err = deviceLogin(tx, hash, "")
		return err
	})
	return login, batchdb.Wrapf(err, "find terminal login")
}

// ChangeDeviceLogin stores the changes that change makes to a login. It returns tenants.ErrNotFound.
func (db DeviceLogins) ChangeDeviceLogin(ctx context.Context, hash []byte, change func(*tenants.DeviceLogin)) error {
	err := db.withCode(ctx, hash, func(tx *gorm.DB) error {
		login, err := deviceLogin(tx, hash, " FOR UPDATE")
		if err != nil {
			return err
		}
		change(&login)
		return tx.Exec(`UPDATE device_logins SET pause_seconds = ?, polled_at = ?, denied = ?, user_id = ?, email = ?, workspace_id = ?, workspace_name = ?, key_expires = ?, used_at = ?
			WHERE device_hash = ? OR code_hash = ?`, int(login.Pause.Seconds()), given(login.PolledAt), login.Denied, nullable(login.User), login.Email,
			nullable(uuid.UUID(login.Workspace)), login.Name, login.KeyExpires, given(login.UsedAt), hash, hash).Error
	})
	return batchdb.Wrapf(err, "change terminal login")
}

// withCode runs fn in a transaction that sees the login with the hash of one of its codes.
func (db DeviceLogins) withCode(ctx context.Context, hash []byte, fn func(tx *gorm.DB) error) error {
	return db.transaction(ctx, forToken, hex.EncodeToString(hash), fn)
}

func deviceLogin(tx *gorm.DB, hash []byte, lock string) (tenants.DeviceLogin, error) {
	var rows []deviceLoginRow
	err := tx.Raw(`SELECT machine, asked_from, asked_at, expires_at, pause_seconds, polled_at, denied, user_id, email, workspace_id, workspace_name, key_expires, used_at
		FROM device_logins WHERE device_hash = ? OR code_hash = ?`+lock, hash, hash).Scan(&rows).Error
	row, err := batchdb.First(rows, err, tenants.ErrNotFound)
	return row.toDeviceLogin(), err
}

type deviceLoginRow struct {
	Machine       string
	AskedFrom     string
	AskedAt       time.Time
	ExpiresAt     time.Time
	PauseSeconds  int
	PolledAt      *time.Time
	Denied        bool
	UserID        *uuid.UUID
	Email         string
	WorkspaceID   *tenants.WorkspaceID
	WorkspaceName string
	KeyExpires    *time.Time
	UsedAt        *time.Time
}

func (r deviceLoginRow) toDeviceLogin() tenants.DeviceLogin {
	login := tenants.DeviceLogin{
		PolledAt: moment(r.PolledAt), UsedAt: moment(r.UsedAt),
		Machine: r.Machine, From: r.AskedFrom, AskedAt: r.AskedAt, ExpiresAt: r.ExpiresAt, Pause: time.Duration(r.PauseSeconds) * time.Second,
		DeviceDecision: tenants.DeviceDecision{Denied: r.Denied, Email: r.Email, Name: r.WorkspaceName, KeyExpires: r.KeyExpires},
	}
	if r.UserID != nil && r.WorkspaceID != nil {
		login.User, login.Workspace = *r.UserID, *r.WorkspaceID
	}
	return login
}
