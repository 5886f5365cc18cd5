package tenantsdb

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"palimpsest/pipeline/batchdb"
	"palimpsest/tenants"
)

// Factors stores second factors and passkeys.
type Factors struct{ *core }

// SecondFactor returns a person's second factor, confirmed or not, or
// tenants.ErrNotFound.
func (db Factors) SecondFactor(ctx context.Context, user uuid.UUID) (tenants.SecondFactor, error) {
	rows, err := batchdb.Scan[[]tenants.SecondFactor](ctx, db.user(user), `SELECT user_id, sealed, created_at, confirmed_at, used_at, last_step,
		(SELECT count(*) FROM recovery_codes c WHERE c.user_id = f.user_id) AS codes FROM second_factors f WHERE user_id = ?`, user)
	found, err := batchdb.First(rows, err, tenants.ErrNotFound)
	return found, batchdb.Wrapf(err, "second factor")
}

// StartSecondFactor stores a sealed secret before its first code, in place of an earlier one. It returns
// tenants.ErrConflict if the person has a second factor.
func (db Factors) StartSecondFactor(ctx context.Context, user uuid.UUID, sealed []byte, at time.Time) error {
	err := db.inUser(ctx, user, func(tx *gorm.DB) error {
		return changedOne(tx.Exec(`INSERT INTO second_factors (user_id, sealed, created_at) VALUES (?, ?, ?)
			ON CONFLICT (user_id) DO UPDATE SET sealed = excluded.sealed, created_at = excluded.created_at, last_step = 0
			WHERE second_factors.confirmed_at IS NULL`, user, sealed, at), tenants.ErrConflict)
	})
	return batchdb.Wrapf(err, "start second factor")
}

// ConfirmSecondFactor turns on a second factor, stores the hashes of the recovery codes and ends all logins
// of the person except one, because they were opened without a code. It returns tenants.ErrConflict unless
// the sealed secret is pending.
func (db Factors) ConfirmSecondFactor(ctx context.Context, user tenants.User, keep uuid.UUID, factor tenants.SecondFactor, hashes [][]byte, notices ...tenants.Mail) error {
	err := db.inUser(ctx, user.ID, func(tx *gorm.DB) error {
		err := changedOne(tx.Exec("UPDATE second_factors SET confirmed_at = ?, used_at = ?, last_step = ? WHERE user_id = ? AND confirmed_at IS NULL AND sealed = ?",
			factor.ConfirmedAt, factor.ConfirmedAt, factor.LastStep, user.ID, factor.Sealed), tenants.ErrConflict)
		if err != nil {
			return err
		}
		if err := errors.Join(setRecoveryCodes(tx, user.ID, hashes), endLogins(tx, user.ID, "id <> ?", keep)); err != nil {
			return err
		}
		return changedFactor(tx, user.ID, tenants.Change{Action: tenants.SecondFactorOn, Target: user.Email}, notices)
	})
	return batchdb.Wrapf(err, "confirm second factor")
}

// UseStep accepts the code of a time step, once. It returns tenants.ErrWrongLogin if the code of this or a
// later step was accepted before.
func (db Factors) UseStep(ctx context.Context, user uuid.UUID, step int64, at time.Time) error {
	err := db.inUser(ctx, user, func(tx *gorm.DB) error {
		return changedOne(tx.Exec("UPDATE second_factors SET last_step = ?, used_at = ? WHERE user_id = ? AND last_step < ? AND confirmed_at IS NOT NULL",
			step, at, user, step), tenants.ErrWrongLogin)
	})
	return batchdb.Wrapf(err, "use code")
}

// UseRecoveryCode uses up a recovery code, or returns tenants.ErrWrongLogin.
func (db Factors) UseRecoveryCode(ctx context.Context, user tenants.User, hash []byte, at time.Time, notices ...tenants.Mail) error {
	err := db.inUser(ctx, user.ID, func(tx *gorm.DB) error {
		if err := changedOne(tx.Exec("DELETE FROM recovery_codes WHERE user_id = ? AND hash = ?", user.ID, hash), tenants.ErrWrongLogin); err != nil {
			return err
		}
		return errors.Join(batchdb.Write(tx, "UPDATE second_factors SET used_at = ? WHERE user_id = ?", at, user.ID),
			changedFactor(tx, user.ID, tenants.Change{Action: tenants.RecoveryCodeUsed, Target: user.Email}, notices))
	})
	return batchdb.Wrapf(err, "use recovery code")
}

// ReplaceRecoveryCodes stores the hashes of new recovery codes in place of the previous ones.
func (db Factors) ReplaceRecoveryCodes(ctx context.Context, user tenants.User, hashes [][]byte, notices ...tenants.Mail) error {
	err := db.inUser(ctx, user.ID, func(tx *gorm.DB) error {
		return errors.Join(setRecoveryCodes(tx, user.ID, hashes), changedFactor(tx, user.ID, tenants.Change{Action: tenants.RecoveryCodesChanged, Target: user.Email}, notices))
	})
	return batchdb.Wrapf(err, "replace recovery codes")
}

// RemoveSecondFactor deletes the second factor of an app, and ends all logins of the person except one.
// Recovery codes stay for someone with a passkey. It returns tenants.ErrNotFound.
func (db Factors) RemoveSecondFactor(ctx context.Context, user tenants.User, keep uuid.UUID, notices ...tenants.Mail) error {
	err := db.inUser(ctx, user.ID, func(tx *gorm.DB) error {
		if err := changedOne(tx.Exec("DELETE FROM second_factors WHERE user_id = ? AND confirmed_at IS NOT NULL", user.ID), tenants.ErrNotFound); err != nil {
			return err
		}
		if err := dropUnneededCodes(tx, user.ID); err != nil {
			return err
		}
		if err := endLogins(tx, user.ID, "id <> ?", keep); err != nil {
			return err
		}
		return changedFactor(tx, user.ID, tenants.Change{Action: tenants.SecondFactorOff, Target: user.Email}, notices)
	})
	return batchdb.Wrapf(err, "remove second factor")
}

// SecondFactorUsers returns the people with a second factor, for the worker that reseals secrets.
func (db Factors) SecondFactorUsers(ctx context.Context) ([]uuid.UUID, error) {
	users, err := batchdb.Scan[[]uuid.UUID](ctx, db.asWorker, "SELECT user_id FROM second_factors ORDER BY user_id")
	return users, batchdb.Wrapf(err, "users with a second factor")
}

// ResealSecondFactor replaces a sealed secret, unless it has been replaced already.
func (db Factors) ResealSecondFactor(ctx context.Context, user uuid.UUID, old, sealed []byte) error {
	err := batchdb.Exec(ctx, db.user(user), "UPDATE second_factors SET sealed = ? WHERE user_id = ? AND sealed = ?", sealed, user, old)
	return batchdb.Wrapf(err, "reseal second factor")
}

func setRecoveryCodes(tx *gorm.DB, user uuid.UUID, hashes [][]byte) error {
	err := batchdb.Write(tx, "DELETE FROM recovery_codes WHERE user_id = ?", user)
	for _, hash := range hashes {
		err = errors.Join(err, batchdb.Write(tx, "INSERT INTO recovery_codes (user_id, hash) VALUES (?, ?)", user, hash))
	}
	return err
}

// changedFactor records a change of a person's second factors, and notifies them.
func changedFactor(tx *gorm.DB, user uuid.UUID, change tenants.Change, notices []tenants.Mail) error {
	return errors.Join(auditPerson(tx, user, change), queueMails(tx, notices))
}

// changedOne returns the error of a statement, or the error none if it changed no row.
func changedOne(done *gorm.DB, none error) error {
	if done.Error == nil && done.RowsAffected == 0 {
		return none
	}
	return done.Error
}

// FactorsOf returns a person's second factors.
func (db Factors) FactorsOf(ctx context.Context, user uuid.UUID) (tenants.Factors, error) {
	found, err := batchdb.Read(ctx, db.user(user), func(tx *gorm.DB) (tenants.Factors, error) { return factorsOf(tx, user) })
	return found, batchdb.Wrapf(err, "factors")
}

// Passkeys returns the passkeys of a person, the oldest first.
func (db Factors) Passkeys(ctx context.Context, user uuid.UUID) ([]tenants.Passkey, error) {
	passkeys, err := batchdb.Read(ctx, db.user(user), func(tx *gorm.DB) ([]tenants.Passkey, error) { return passkeysOf(tx, user) })
	return passkeys, batchdb.Wrapf(err, "passkeys")
}

// PasskeyOwner returns a person with their passkeys, or tenants.ErrNotFound.
func (db Factors) PasskeyOwner(ctx context.Context, user uuid.UUID) (tenants.User, []tenants.Passkey, error) {
	var found tenants.User
	var passkeys []tenants.Passkey
	err := db.inUser(ctx, user, func(tx *gorm.DB) (err error) {
		if found, err = userWhere(tx, "id = ?", user); err != nil {
			return err
		}
		passkeys, err = passkeysOf(tx, user)
		return err
	})
	return found, passkeys, batchdb.Wrapf(err, "owner of passkeys")
}

// AddPasskey stores a passkey that has answered a challenge, and ends all logins of the person except one,
// because they were opened without it. For the person's first second factor, it also stores the hashes of
// recovery codes, and returns true. It returns tenants.ErrPasskey if the challenge was answered before, and
// tenants.ErrConflict if the passkey exists already.
func (db Factors) AddPasskey(ctx context.Context, user tenants.User, keep uuid.UUID, passkey tenants.Passkey, challenge []byte, hashes [][]byte, notices ...tenants.Mail) (isFirst bool, err error) {
	err = db.inUser(ctx, user.ID, func(tx *gorm.DB) error {
		if err := answerOnce(tx, user.ID, challenge, passkey.CreatedAt); err != nil {
			return err
		}
		before, err := factorsOf(tx, user.ID)
		if err != nil {
			return err
		}
		row := struct {
			tenants.Passkey

			UserID uuid.UUID
		}{passkey, user.ID}
		row.Name = storable(row.Name)
		if err = tx.Table("passkeys").Create(&row).Error; errors.Is(err, gorm.ErrDuplicatedKey) {
			return tenants.ErrConflict
		}
		if err != nil {
			return err
		}
		if isFirst = !before.AreOn(); isFirst {
			if err := setRecoveryCodes(tx, user.ID, hashes); err != nil {
				return err
			}
		}
		if err := endLogins(tx, user.ID, "id <> ?", keep); err != nil {
			return err
		}
		return changedFactor(tx, user.ID, tenants.Change{Action: tenants.PasskeyAdded, Target: passkey.ID.String(), After: passkey.Fields()}, notices)
	})
	return isFirst, batchdb.Wrapf(err, "add passkey")
}

// UsePasskey records that a passkey has answered a challenge. It returns tenants.ErrPasskey if the challenge
// was answered before, or if the passkey has been used, removed or marked as copied in the meantime.
func (db Factors) UsePasskey(ctx context.Context, user uuid.UUID, passkey tenants.Passkey, challenge []byte) error {
	err := db.inUser(ctx, user, func(tx *gorm.DB) error {
		if err := answerOnce(tx, user, challenge, passkey.UsedAt); err != nil {
			return err
		}
		return changedOne(tx.Exec(`UPDATE passkeys SET sign_count = ?, backed_up = ?, used_at = ?
			WHERE user_id = ? AND id = ? AND copied_at IS NULL AND (sign_count < ? OR sign_count = 0)`,
			passkey.SignCount, passkey.BackedUp, passkey.UsedAt, user, passkey.ID, passkey.SignCount), tenants.ErrPasskey)
	})
	return batchdb.Wrapf(err, "use passkey")
}

// NotePasskeyCopied disables a passkey after the use of a copy.
func (db Factors) NotePasskeyCopied(ctx context.Context, user uuid.UUID, passkey tenants.Passkey, at time.Time, notices ...tenants.Mail) error {
	err := db.inUser(ctx, user, func(tx *gorm.DB) error {
		noted := tx.Exec("UPDATE passkeys SET copied_at = ? WHERE user_id = ? AND id = ? AND copied_at IS NULL", at, user, passkey.ID)
		if noted.Error != nil || noted.RowsAffected == 0 {
			return noted.Error
		}
		return changedFactor(tx, user, tenants.Change{Action: tenants.PasskeyCopied, Target: passkey.ID.String(), After: passkey.Fields()}, notices)
	})
	return batchdb.Wrapf(err, "note copied passkey")
}

// RenamePasskey renames a passkey, or returns tenants.ErrNotFound.
func (db Factors) RenamePasskey(ctx context.Context, user, id uuid.UUID, name string) error {
	err := db.inUser(ctx, user, func(tx *gorm.DB) error {
		before, err := findPasskey(tx, user, id)
		if err != nil || before.Name == name {
			return err
		}
		return errors.Join(batchdb.Write(tx, "UPDATE passkeys SET name = ? WHERE user_id = ? AND id = ?", storable(name), user, id),
			auditPerson(tx, user, tenants.Change{Action: tenants.PasskeyRenamed, Target: id.String(), Before: before.Fields(), After: tenants.Fields{"name": name}}))
	})
	return batchdb.Wrapf(err, "rename passkey")
}

// RemovePasskey deletes a passkey and ends all logins of the person except one. With the last second factor
// it also deletes the recovery codes. It returns tenants.ErrNotFound.
func (db Factors) RemovePasskey(ctx context.Context, user, keep, id uuid.UUID, notices ...tenants.Mail) error {
	err := db.inUser(ctx, user, func(tx *gorm.DB) error {
		before, err := findPasskey(tx, user, id)
		if err != nil {
			return err
		}
		if err := batchdb.Write(tx, "DELETE FROM passkeys WHERE user_id = ? AND id = ?", user, id); err != nil {
			return err
		}
		if err := dropUnneededCodes(tx, user); err != nil {
			return err
		}
		if err := endLogins(tx, user, "id <> ?", keep); err != nil {
			return err
		}
		return changedFactor(tx, user, tenants.Change{Action: tenants.PasskeyRemoved, Target: id.String(), Before: before.Fields()}, notices)
	})
	return batchdb.Wrapf(err, "remove passkey")
}

// answerOnce records that a challenge was answered, or returns tenants.ErrPasskey if it was answered before.
// It deletes expired ones.
func answerOnce(tx *gorm.DB, user uuid.UUID, challenge []byte, at time.Time) error {
	const old = 2 * tenants.PasskeyAge
	err := batchdb.Write(tx, "DELETE FROM passkey_challenges WHERE user_id = ? AND used_at < ?", user, at.Add(-old))
	return cmp.Or(err, changedOne(tx.Exec("INSERT INTO passkey_challenges (user_id, hash, used_at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING", user, challenge, at), tenants.ErrPasskey))
}

// dropUnneededCodes removes the recovery codes of a person without a second factor.
func dropUnneededCodes(tx *gorm.DB, user uuid.UUID) error {
	factors, err := factorsOf(tx, user)
	if err != nil || factors.AreOn() {
		return err
	}
	return setRecoveryCodes(tx, user, nil)
}

func factorsOf(tx *gorm.DB, user uuid.UUID) (tenants.Factors, error) {
	return batchdb.Query[tenants.Factors](tx, `SELECT EXISTS (SELECT FROM second_factors WHERE user_id = ? AND confirmed_at IS NOT NULL) AS app,
		(SELECT count(*) FROM passkeys WHERE user_id = ?) AS passkeys,
		(SELECT count(*) FROM recovery_codes WHERE user_id = ?) AS "left"`, user, user, user)
}

func passkeysOf(tx *gorm.DB, user uuid.UUID) ([]tenants.Passkey, error) {
	return list[tenants.Passkey](tx.Table("passkeys").Where("user_id = ?", user).Order("created_at, id"))
}

func findPasskey(tx *gorm.DB, user, id uuid.UUID) (tenants.Passkey, error) {
	return find[tenants.Passkey](tx.Table("passkeys").Where("user_id = ? AND id = ?", user, id))
}
