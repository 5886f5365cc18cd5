package tenantsdb

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"palimpsest/pipeline/batchdb"
	"palimpsest/tenants"
)

// ResetPassword sets another password for the person of a token valid at a time, and ends all their logins.
// The token also verifies the person's address. notice returns the mail to them. It returns
// tenants.ErrLinkEnded.
func (db Accounts) ResetPassword(ctx context.Context, hash []byte, at time.Time, passwordHash string, notice func(tenants.User) tenants.Mail) error {
	err := db.withToken(ctx, hash, func(tx *gorm.DB) error {
		tx, _, user, err := redeem(tx, hash, at, tenants.TokenReset)
		if err != nil {
			return err
		}
		if err := setPassword(tx, user, uuid.Nil, passwordHash, notice(user)); err != nil {
			return err
		}
		if err := tx.Exec("UPDATE users SET verified_at = coalesce(verified_at, ?) WHERE id = ?", at, user.ID).Error; err != nil {
			return err
		}
		if err := notify(tx, KeysChannel, user.ID.String()); err != nil { // their workspaces may now be usable
			return err
		}
		return tx.Exec("UPDATE user_tokens SET used_at = ? WHERE user_id = ? AND kind = ? AND used_at IS NULL", at, user.ID, string(tenants.TokenReset)).Error
	})
	return batchdb.Wrapf(err, "reset password")
}

// ChangePassword sets another password, notifies the person, and ends all their logins except one.
func (db Accounts) ChangePassword(ctx context.Context, user tenants.User, keep uuid.UUID, passwordHash string, notice tenants.Mail) error {
	err := db.inUser(ctx, user.ID, func(tx *gorm.DB) error { return setPassword(tx, user, keep, passwordHash, notice) })
	return batchdb.Wrapf(err, "change password")
}

// RenewPasswordHash stores another hash of a person's password, unless the password was changed meanwhile.
func (db Accounts) RenewPasswordHash(ctx context.Context, user uuid.UUID, old, hash string) error {
	err := db.inUser(ctx, user, func(tx *gorm.DB) error {
		return tx.Exec("UPDATE users SET password_hash = ? WHERE id = ? AND password_hash = ?", hash, user, old).Error
	})
	return batchdb.Wrapf(err, "renew the hash of a password")
}

// ConfirmEmail redeems a token that proves an address. It marks the person's address as verified, or changes
// their address to the proven one and sends the mail of notice to the old one. It returns the token,
// tenants.ErrLinkEnded, or tenants.ErrEmailTaken.
func (db Accounts) ConfirmEmail(ctx context.Context, hash []byte, at time.Time, notice func(before, after string) tenants.Mail) (tenants.Token, error) {
	var token tenants.Token
	err := db.withToken(ctx, hash, func(tx *gorm.DB) error {
		tx, used, user, err := redeem(tx, hash, at, tenants.TokenVerify, tenants.TokenEmail)
		if err != nil {
			return err
		}
		token = used
		change := tenants.Change{Action: tenants.EmailVerified, Target: user.Email}
		if token.Kind == tenants.TokenEmail {
			change = tenants.Change{
				Action: tenants.EmailChanged, Target: user.ID.String(),
				Before: tenants.Fields{"email": user.Email}, After: tenants.Fields{"email": token.Email},
			}
			if err := queueMail(tx, notice(user.Email, token.Email)); err != nil {
				return err
			}
		}
		err = tx.Exec("UPDATE users SET email = ?, verified_at = ? WHERE id = ?", token.Email, at, user.ID).Error
		if isDuplicate(err) || errors.Is(err, gorm.ErrDuplicatedKey) {
			return tenants.ErrEmailTaken
		}
		if err != nil {
			return err
		}
		if err := auditPerson(tx, user.ID, change); err != nil {
			return err
		}
		if err := notify(tx, KeysChannel, user.ID.String()); err != nil { // their workspaces may now be usable
			return err
		}
		return notify(tx, LoginsChannel, user.ID.String()) // cached logins contain the address
	})
	return token, batchdb.Wrapf(err, "confirm address")
}

// VerifyUser marks a person's address as their own.
func (db Accounts) VerifyUser(ctx context.Context, user uuid.UUID) error {
	err := db.inUser(ctx, user, func(tx *gorm.DB) error {
		if err := tx.Exec("UPDATE users SET verified_at = coalesce(verified_at, now()) WHERE id = ?", user).Error; err != nil {
			return err
		}
		return notify(tx, KeysChannel, user.String())
	})
	return batchdb.Wrapf(err, "verify user %s", user)
}

// redeem uses up a token of the given kinds and returns it with its person. The returned transaction works on
// behalf of that person. A token for an address that the person no longer has is invalid, unless it changes the
// address.
func redeem(tx *gorm.DB, hash []byte, at time.Time, kinds ...tenants.TokenKind) (*gorm.DB, tenants.Token, tenants.User, error) {
	token, err := useToken(tx, hash, at)
	if err != nil {
		return nil, tenants.Token{}, tenants.User{}, err
	}
	var found userRow
	err = tx.Table("users").Select("id, email, created_at, verified_at").Where("id = ?", token.User).Take(&found).Error
	if err != nil {
		return nil, tenants.Token{}, tenants.User{}, kind(err)
	}
	good := false
	for _, kind := range kinds {
		good = good || token.Kind == kind && (kind == tenants.TokenEmail || token.Email == found.Email)
	}
	if !good {
		return nil, tenants.Token{}, tenants.User{}, tenants.ErrLinkEnded
	}
	ctx := tx.Statement.Context
	actor := tenants.Actor{User: found.ID, Name: found.Email, From: tenants.ActorOf(ctx).From}
	return tx.WithContext(tenants.WithActor(ctx, actor)), token, found.toUser(), nil
}

// setPassword works in a transaction of the person.
func setPassword(tx *gorm.DB, user tenants.User, keep uuid.UUID, passwordHash string, notice tenants.Mail) error {
	if err := tx.Exec("UPDATE users SET password_hash = ? WHERE id = ?", passwordHash, user.ID).Error; err != nil {
		return err
	}
	if err := endLogins(tx, user.ID, "id <> ?", keep); err != nil {
		return err
	}
	if err := auditPerson(tx, user.ID, tenants.Change{Action: tenants.PasswordChanged, Target: user.Email}); err != nil {
		return err
	}
	return queueMail(tx, notice)
}

// auditPerson records a person's change to their account in the audit log of each of their workspaces.
func auditPerson(tx *gorm.DB, user uuid.UUID, change tenants.Change) error {
	var workspaces []tenants.WorkspaceID
	err := tx.Table("members").Where("user_id = ?", user).Order("workspace_id").Pluck("workspace_id", &workspaces).Error
	if err != nil {
		return err
	}
	for _, workspace := range workspaces {
		if err := workFor(tx, forWorkspace, workspace.String()); err != nil {
			return err
		}
		if err := audit(tx, workspace, change); err != nil {
			return err
		}
	}
	return nil
}
