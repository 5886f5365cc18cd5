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

// Factors stores second factors and passkeys.
type Factors struct{ *core }

// SecondFactor returns a person's second factor, confirmed or not, or
// tenants.ErrNotFound.
func (db Factors) SecondFactor(ctx context.Context, user uuid.UUID) (tenants.SecondFactor, error) {
	var found secondFactorRow
	err := db.inUser(ctx, user, func(tx *gorm.DB) error {
		return tx.Table("second_factors f").
			Select(`f.user_id, f.sealed, f.created_at, f.confirmed_at, f.used_at, f.last_step,
				(SELECT count(*) FROM recovery_codes c WHERE c.user_id = f.user_id) AS codes`).
			Where("f.user_id = ?", user).Take(&found).Error
	})
	if err != nil {
		return tenants.SecondFactor{}, fmt.Errorf("second factor: %w", kind(err))
	}
	return found.toSecondFactor(), nil
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
		if err := setRecoveryCodes(tx, user.ID, hashes); err != nil {
			return err
		}
		if err := endLogins(tx, user.ID, "id <> ?", keep); err != nil {
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
		if err := tx.Exec("UPDATE second_factors SET used_at = ? WHERE user_id = ?", at, user.ID).Error; err != nil {
			return err
		}
		return changedFactor(tx, user.ID, tenants.Change{Action: tenants.RecoveryCodeUsed, Target: user.Email}, notices)
	})
	return batchdb.Wrapf(err, "use recovery code")
}

// ReplaceRecoveryCodes stores the hashes of new recovery codes in place of the previous ones.
func (db Factors) ReplaceRecoveryCodes(ctx context.Context, user tenants.User, hashes [][]byte, notices ...tenants.Mail) error {
	err := db.inUser(ctx, user.ID, func(tx *gorm.DB) error {
		if err := setRecoveryCodes(tx, user.ID, hashes); err != nil {
			return err
		}
		return changedFactor(tx, user.ID, tenants.Change{Action: tenants.RecoveryCodesChanged, Target: user.Email}, notices)
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
	var users []uuid.UUID
	err := db.asWorker(ctx, func(tx *gorm.DB) error {
		return tx.Table("second_factors").Order("user_id").Pluck("user_id", &users).Error
	})
	return users, batchdb.Wrapf(err, "users with a second factor")
}

// ResealSecondFactor replaces a sealed secret, unless it has been replaced already.
func (db Factors) ResealSecondFactor(ctx context.Context, user uuid.UUID, old, sealed []byte) error {
	err := db.inUser(ctx, user, func(tx *gorm.DB) error {
		return tx.Exec("UPDATE second_factors SET sealed = ? WHERE user_id = ? AND sealed = ?", sealed, user, old).Error
	})
	return batchdb.Wrapf(err, "reseal second factor")
}

func setRecoveryCodes(tx *gorm.DB, user uuid.UUID, hashes [][]byte) error {
	if err := tx.Exec("DELETE FROM recovery_codes WHERE user_id = ?", user).Error; err != nil {
		return err
	}
	for _, hash := range hashes {
		if err := tx.Exec("INSERT INTO recovery_codes (user_id, hash) VALUES (?, ?)", user, hash).Error; err != nil {
			return err
		}
	}
	return nil
}

// changedFactor records a change of a person's second factors, and notifies them.
func changedFactor(tx *gorm.DB, user uuid.UUID, change tenants.Change, notices []tenants.Mail) error {
	if err := auditPerson(tx, user, change); err != nil {
		return err
	}
	for _, notice := range notices {
		if err := queueMail(tx, notice); err != nil {
			return err
		}
	}
	return nil
}

// changedOne returns the error of a statement, or the error none if it changed no row.
func changedOne(done *gorm.DB, none error) error {
	if done.Error == nil && done.RowsAffected == 0 {
		return none
	}
	return done.Error
}

type secondFactorRow struct {
	UserID      uuid.UUID
	Sealed      []byte
	CreatedAt   time.Time
	ConfirmedAt *time.Time
	UsedAt      *time.Time
	LastStep    int64
	Codes       int
}

func (r secondFactorRow) toSecondFactor() tenants.SecondFactor {
	return tenants.SecondFactor{
		User: r.UserID, Sealed: r.Sealed, CreatedAt: r.CreatedAt, ConfirmedAt: moment(r.ConfirmedAt), UsedAt: moment(r.UsedAt),
		LastStep: r.LastStep, Left: r.Codes,
	}
}
