package tenantsdb

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"palimpsest/pipeline/batchdb"
	"palimpsest/tenants"
)

// Logins stores logins.
type Logins struct{ *core }

// CreateLogin stores a new login, optionally without a workspace. It returns tenants.ErrNotFound if the user
// is not a member of the workspace.
func (db Logins) CreateLogin(ctx context.Context, login tenants.Login) error {
	err := db.inUser(ctx, login.UserID, func(tx *gorm.DB) error {
		if err := insertLogin(tx, login); err != nil {
			return err
		}
		if login.Workspace.IsZero() {
			return nil // no workspace's audit log to record it in
		}
		if err := seen(tx, login.UserID, login.Workspace); err != nil {
			return err
		}
		return auditLogin(tx, tenants.LoginOpened, login)
	})
	return batchdb.Wrapf(err, "create login")
}

// ActiveLogin returns the principal of a user's login. It returns tenants.ErrLoginEnded if the login is
// unknown, revoked or expired.
func (db Logins) ActiveLogin(ctx context.Context, user, id uuid.UUID) (tenants.Principal, error) {
	var found []principalRow
	var memberships []tenants.Membership
	err := db.inUser(ctx, user, func(tx *gorm.DB) error {
		var err error
		if found, err = findLogin(tx, user, id); err != nil || len(found) == 0 {
			return err
		}
		if memberships, err = findMemberships(tx, user); err != nil {
			return err
		}
		if time.Since(found[0].Login.SeenAt) >= seenEvery {
			if err := batchdb.Write(tx, "UPDATE logins SET last_seen_at = now() WHERE user_id = ? AND id = ?", user, id); err != nil {
				return err
			}
		}
		if !found[0].Unseen {
			return nil
		}
		return seen(tx, user, found[0].Login.Workspace)
	})
	if err != nil {
		return tenants.Principal{}, fmt.Errorf("find login %s: %w", id, err)
	}
	if len(found) == 0 {
		return tenants.Principal{}, tenants.ErrLoginEnded
	}
	principal := found[0].toPrincipal()
	principal.Memberships = memberships
	return principal.Bound(), nil
}

// Logins returns the active logins of a user, the newest first.
func (db Logins) Logins(ctx context.Context, user uuid.UUID) ([]tenants.Login, error) {
	logins, err := batchdb.Scan[[]tenants.Login](ctx, db.user(user), "SELECT "+loginColumns+` FROM logins
		WHERE user_id = ? AND revoked_at IS NULL AND expires_at > now() ORDER BY created_at DESC, id DESC`, user)
	return logins, batchdb.Wrapf(err, "logins of user %s", user)
}

// UsedPlace reports whether the person with an address has logged in from a place since a time. It does the
// same work for every address.
func (db Logins) UsedPlace(ctx context.Context, email, place string, since time.Time) (bool, error) {
	var used bool
	err := db.withEmail(ctx, email, func(tx *gorm.DB) error {
		found, err := batchdb.Query[[]uuid.UUID](tx, "SELECT id FROM users WHERE email = ?", email)
		if err != nil {
			return err
		}
		user := append(found, uuid.Nil)[0]
		if err := workFor(tx, forUser, user.String()); err != nil {
			return err
		}
		return tx.Raw("SELECT EXISTS (SELECT FROM logins WHERE user_id = ? AND place = ? AND place <> '' AND created_at > ?)", user, storable(place), since).Scan(&used).Error
	})
	return used, batchdb.Wrapf(err, "look for a place")
}

// seenEvery is the interval at which a login's use is recorded.
const seenEvery = 5 * time.Minute

// RevokeLogin ends a login of a user on all replicas. A second call has no effect.
func (db Logins) RevokeLogin(ctx context.Context, user, id uuid.UUID) error {
	err := db.inUser(ctx, user, func(tx *gorm.DB) error { return endLogins(tx, user, "id = ?", id) })
	return batchdb.Wrapf(err, "revoke login %s", id)
}

// RevokeLogins ends all logins of a user on all replicas, in all workspaces.
func (db Logins) RevokeLogins(ctx context.Context, user uuid.UUID) error {
	err := db.inUser(ctx, user, func(tx *gorm.DB) error { return endLogins(tx, user, "id <> ?", uuid.Nil) })
	return batchdb.Wrapf(err, "revoke logins of user %s", user)
}

// endLogins ends the active logins of a user that match a condition on an id.
func endLogins(tx *gorm.DB, user uuid.UUID, condition string, id uuid.UUID) error {
	ended, err := batchdb.Query[[]tenants.Login](tx, "UPDATE logins SET revoked_at = now() WHERE user_id = ? AND "+condition+" AND revoked_at IS NULL AND expires_at > now() RETURNING "+loginColumns, user, id)
	if err != nil {
		return err
	}
	for _, login := range ended {
		if err := auditLogin(tx, tenants.LoginEnded, login); err != nil {
			return err
		}
	}
	return notify(tx, LoginsChannel, id.String())
}

func insertLogin(tx *gorm.DB, login tenants.Login) error {
	login.UserAgent, login.Place, login.SeenAt = storable(login.UserAgent), storable(login.Place), login.CreatedAt
	if login.Workspace.IsZero() {
		return create(tx, "logins", &login)
	}
	return changedOne(tx.Exec(`INSERT INTO logins (id, user_id, workspace_id, sign_on_workspace, user_agent, place, created_at, last_seen_at, expires_at)
		SELECT ?, user_id, workspace_id, ?, ?, ?, ?, ?, ? FROM members WHERE user_id = ? AND workspace_id = ?`,
		login.ID, nullable(login.SignOn), login.UserAgent, login.Place, login.CreatedAt, login.SeenAt, login.ExpiresAt, login.UserID, login.Workspace), tenants.ErrNotFound)
}

// auditLogin records an event of a login in the workspace of the login, if it has one.
func auditLogin(tx *gorm.DB, action tenants.Action, login tenants.Login) error {
	if login.Workspace.IsZero() {
		return nil
	}
	fields := tenants.Fields{"browser": login.UserAgent}
	change := tenants.Change{Action: action, Target: login.ID.String(), After: fields}
	if action == tenants.LoginEnded {
		change.Before, change.After = fields, nil
	}
	return errors.Join(workFor(tx, forWorkspace, login.Workspace.String()), audit(tx, login.Workspace, change))
}

// findLogin returns the active login with an id; empty if absent.
func findLogin(tx *gorm.DB, user, id uuid.UUID) ([]principalRow, error) {
	return list[principalRow](tx.Table("logins l").
		Select(`l.id, l.user_id, l.workspace_id, l.sign_on_workspace, l.user_agent, l.created_at, l.last_seen_at, l.expires_at, m.role,
			u.email, u.created_at AS user_created_at, u.verified_at, w.name AS workspace_name, w.created_at AS workspace_created_at,
			o.user_id IS NOT NULL AS operator, s.since AS suspended_since, coalesce(s.reason, '') AS suspended_reason,
			m.role IS NOT NULL AND (m.seen_at IS NULL OR m.seen_at < now() - interval '5 minutes') AS unseen`).
		Joins("JOIN users u ON u.id = l.user_id").
		Joins("LEFT JOIN workspaces w ON w.workspace_id = l.workspace_id").
		Joins("LEFT JOIN operators o ON o.user_id = l.user_id").
		Joins("LEFT JOIN suspensions s ON s.workspace_id = l.workspace_id").
		Joins("LEFT JOIN members m ON m.workspace_id = l.workspace_id AND m.user_id = l.user_id").
		Where("l.user_id = ? AND l.id = ? AND l.revoked_at IS NULL AND l.expires_at > now()", user, id))
}

const loginColumns = "id, user_id, workspace_id, sign_on_workspace, user_agent, created_at, last_seen_at, expires_at"

type principalRow struct {
	Login     tenants.Login `gorm:"embedded"`
	Suspended suspended     `gorm:"embedded"`

	Role               tenants.Role
	Email              string
	UserCreatedAt      time.Time
	VerifiedAt         *time.Time
	WorkspaceName      string
	WorkspaceCreatedAt time.Time
	Operator           bool
	Unseen             bool // for some minutes
}

func (r *principalRow) toPrincipal() tenants.Principal {
	return tenants.Principal{
		User:  tenants.User{ID: r.Login.UserID, Email: r.Email, CreatedAt: r.UserCreatedAt, VerifiedAt: r.VerifiedAt, Operator: r.Operator},
		Login: r.Login, Role: r.Role,
		Workspace: tenants.Workspace{ID: r.Login.Workspace, Name: r.WorkspaceName, CreatedAt: r.WorkspaceCreatedAt, Suspension: r.Suspended.suspension()},
	}
}

// DeviceLogins stores terminals' logins by the hashes of their codes.
type DeviceLogins struct{ *core }

// CreateDeviceLogin stores a login, and deletes logins that ended an hour ago.
func (db DeviceLogins) CreateDeviceLogin(ctx context.Context, login tenants.DeviceLogin, device, code []byte) error {
	row := struct {
		tenants.DeviceLogin

		DeviceHash, CodeHash []byte
	}{login, device, code}
	err := db.withToken(device)(ctx, func(tx *gorm.DB) error {
		return errors.Join(batchdb.Write(tx, "DELETE FROM device_logins WHERE expires_at < now() - interval '1 hour'"), create(tx, "device_logins", &row))
	})
	return batchdb.Wrapf(err, "create terminal login")
}

// DeviceLogin returns the login with the hash of one of its codes, or tenants.ErrNotFound.
func (db DeviceLogins) DeviceLogin(ctx context.Context, hash []byte) (tenants.DeviceLogin, error) {
	login, err := batchdb.Read(ctx, db.withToken(hash), func(tx *gorm.DB) (tenants.DeviceLogin, error) {
		return find[tenants.DeviceLogin](tx.Table("device_logins").Where(ofCode, hash, hash))
	})
	return login, batchdb.Wrapf(err, "find terminal login")
}

// ChangeDeviceLogin stores the changes that change makes to a login. It returns tenants.ErrNotFound.
func (db DeviceLogins) ChangeDeviceLogin(ctx context.Context, hash []byte, change func(*tenants.DeviceLogin)) error {
	err := db.withToken(hash)(ctx, func(tx *gorm.DB) error {
		login, err := find[tenants.DeviceLogin](tx.Table("device_logins").Where(ofCode, hash, hash).Clauses(locked()))
		if err != nil {
			return err
		}
		change(&login)
		changed := []string{"pause_seconds", "polled_at", "denied", "user_id", "email", "workspace_id", "workspace_name", "key_expires", "used_at"}
		return update(tx, "device_logins", &login, changed, ofCode, hash, hash)
	})
	return batchdb.Wrapf(err, "change terminal login")
}

// ofCode is the condition for the login with the hash of one of its codes.
const ofCode = "(device_hash = ? OR code_hash = ?)"
