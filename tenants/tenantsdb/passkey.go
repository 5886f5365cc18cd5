package tenantsdb

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"palimpsest/pipeline/batchdb"
	"palimpsest/tenants"
)

// FactorsOf returns a person's second factors.
func (db Factors) FactorsOf(ctx context.Context, user uuid.UUID) (tenants.Factors, error) {
	var found tenants.Factors
	err := db.inUser(ctx, user, func(tx *gorm.DB) (err error) {
		found, err = factorsOf(tx, user)
		return err
	})
	return found, batchdb.Wrapf(err, "factors")
}

// Passkeys returns the passkeys of a person, the oldest first.
func (db Factors) Passkeys(ctx context.Context, user uuid.UUID) ([]tenants.Passkey, error) {
	var passkeys []tenants.Passkey
	err := db.inUser(ctx, user, func(tx *gorm.DB) (err error) {
		passkeys, err = passkeysOf(tx, user)
		return err
	})
	return passkeys, batchdb.Wrapf(err, "passkeys")
}

// PasskeyOwner returns a person with their passkeys, or tenants.ErrNotFound.
func (db Factors) PasskeyOwner(ctx context.Context, user uuid.UUID) (tenants.User, []tenants.Passkey, error) {
	var found userRow
	var passkeys []tenants.Passkey
	err := db.inUser(ctx, user, func(tx *gorm.DB) (err error) {
		if err := tx.Table("users").Select("id, email, created_at, verified_at").Where("id = ?", user).Take(&found).Error; err != nil {
			return err
		}
		passkeys, err = passkeysOf(tx, user)
		return err
	})
	if err != nil {
		return tenants.User{}, nil, fmt.Errorf("owner of passkeys: %w", kind(err))
	}
	return found.toUser(), passkeys, nil
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
		err = tx.Exec(`INSERT INTO passkeys (user_id, id, name, credential, public_key, sign_count, transports, backup_eligible, backed_up, created_at)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, user.ID, passkey.ID, storable(passkey.Name), passkey.Credential, passkey.PublicKey, passkey.SignCount,
			storable(strings.Join(passkey.Transports, ",")), passkey.BackupEligible, passkey.BackedUp, passkey.CreatedAt).Error
		if isDuplicate(err) || errors.Is(err, gorm.ErrDuplicatedKey) {
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
		if err := tx.Exec("UPDATE passkeys SET name = ? WHERE user_id = ? AND id = ?", storable(name), user, id).Error; err != nil {
			return err
		}
		return auditPerson(tx, user, tenants.Change{
			Action: tenants.PasskeyRenamed, Target: id.String(), Before: before.Fields(), After: tenants.Fields{"name": name},
		})
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
		if err := tx.Exec("DELETE FROM passkeys WHERE user_id = ? AND id = ?", user, id).Error; err != nil {
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
	if err := tx.Exec("DELETE FROM passkey_challenges WHERE user_id = ? AND used_at < ?", user, at.Add(-old)).Error; err != nil {
		return err
	}
	return changedOne(tx.Exec("INSERT INTO passkey_challenges (user_id, hash, used_at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING", user, challenge, at), tenants.ErrPasskey)
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
	var found tenants.Factors
	err := tx.Raw(`SELECT EXISTS (SELECT FROM second_factors WHERE user_id = ? AND confirmed_at IS NOT NULL) AS app,
		(SELECT count(*) FROM passkeys WHERE user_id = ?) AS passkeys,
		(SELECT count(*) FROM recovery_codes WHERE user_id = ?) AS "left"`, user, user, user).Scan(&found).Error
	return found, err
}

const passkeyColumns = "id, name, credential, public_key, sign_count, transports, backup_eligible, backed_up, created_at, used_at, copied_at" //nolint:gosec // names of columns

func passkeysOf(tx *gorm.DB, user uuid.UUID) ([]tenants.Passkey, error) {
	var rows []passkeyRow
	err := tx.Table("passkeys").Select(passkeyColumns).Where("user_id = ?", user).Order("created_at, id").Find(&rows).Error
	return each(rows, (*passkeyRow).toPasskey), err
}

func findPasskey(tx *gorm.DB, user, id uuid.UUID) (tenants.Passkey, error) {
	var row passkeyRow
	err := tx.Table("passkeys").Select(passkeyColumns).Where("user_id = ? AND id = ?", user, id).Take(&row).Error
	return row.toPasskey(), kind(err)
}

type passkeyRow struct {
	ID             uuid.UUID
	Name           string
	Credential     []byte
	PublicKey      []byte
	SignCount      uint32
	Transports     string
	BackupEligible bool
	BackedUp       bool
	CreatedAt      time.Time
	UsedAt         *time.Time
	CopiedAt       *time.Time
}

func (r passkeyRow) toPasskey() tenants.Passkey {
	passkey := tenants.Passkey{
		ID: r.ID, Name: r.Name, Credential: r.Credential, PublicKey: r.PublicKey, SignCount: r.SignCount, CreatedAt: r.CreatedAt,
		UsedAt: moment(r.UsedAt), CopiedAt: moment(r.CopiedAt), BackupEligible: r.BackupEligible, BackedUp: r.BackedUp,
	}
	if r.Transports != "" {
		passkey.Transports = strings.Split(r.Transports, ",")
	}
	return passkey
}
