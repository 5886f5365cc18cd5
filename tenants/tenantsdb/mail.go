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

// Mail stores mails until they are sent.
type Mail struct{ *core }

// QueueMail queues a mail. In a transaction of Together, the mail is committed with it; otherwise the tenant
// is nil.
func (db Mail) QueueMail(ctx context.Context, tenant tenants.Tenant, mail tenants.Mail) error {
	if begun, joins := tenant.(*transaction); joins {
		return queueMail(begun.tx, mail)
	}
	return db.unscoped(ctx, func(tx *gorm.DB) error { return queueMail(tx, mail) })
}

// queueMail queues a mail, which is committed with the transaction. It works in transactions of any scope.
func queueMail(tx *gorm.DB, mail tenants.Mail) error {
	mail = tenants.Mail{To: storable(mail.To), Subject: storable(mail.Subject), Text: storable(mail.Text)}
	row := mailRow{WaitingMail: tenants.WaitingMail{ID: uuid.Must(uuid.NewV7()), Mail: mail}}
	if work, err := transactionOf(tx); err != nil {
		return fmt.Errorf("queue mail: %w", err)
	} else if work.sealer != nil {
		if row.Sealed, err = work.sealer.SealAbout(tenants.AboutMail(row.ID, row.To), row.Text); err != nil {
			return fmt.Errorf("queue mail: %w", err)
		}
		row.Text = ""
	}
	return batchdb.Wrapf(errors.Join(create(tx, "mails", &row, "created_at", "attempts"), notify(tx, MailsChannel, "")), "queue mail")
}

func queueMails(tx *gorm.DB, mails []tenants.Mail) error {
	var failures []error
	for _, mail := range mails {
		failures = append(failures, queueMail(tx, mail))
	}
	return errors.Join(failures...)
}

// TakeMails returns the mails due at a time, the oldest first, and reserves them until another time.
func (db Mail) TakeMails(ctx context.Context, at, until time.Time, limit int) ([]tenants.WaitingMail, error) {
	const statement = `UPDATE mails SET attempts = attempts + 1, next_at = ? WHERE id IN (
			SELECT id FROM mails WHERE next_at <= ? ORDER BY next_at, id LIMIT ? FOR UPDATE SKIP LOCKED)
		RETURNING ` + mailColumns
	return db.mails(ctx, statement, until, at, limit)
}

// KeepMails keeps the mails due at a time unsent, and returns them.
func (db Mail) KeepMails(ctx context.Context, at time.Time) ([]tenants.WaitingMail, error) {
	return db.mails(ctx, "UPDATE mails SET next_at = 'infinity' WHERE next_at <= ? RETURNING "+mailColumns, at)
}

// Mails returns unsent mails, the newest first.
func (db Mail) Mails(ctx context.Context, limit int) ([]tenants.WaitingMail, error) {
	return db.mails(ctx, "SELECT "+mailColumns+" FROM mails ORDER BY id DESC LIMIT ?", limit)
}

// DelayMail delays the next attempt for a mail until a time.
func (db Mail) DelayMail(ctx context.Context, id uuid.UUID, until time.Time) error {
	return db.changeMails(ctx, "UPDATE mails SET next_at = ? WHERE id = ?", until, id)
}

// DropMail deletes a mail that was sent or is abandoned.
func (db Mail) DropMail(ctx context.Context, id uuid.UUID) error {
	return db.changeMails(ctx, "DELETE FROM mails WHERE id = ?", id)
}

// DropMails deletes mails older than a time.
func (db Mail) DropMails(ctx context.Context, before time.Time) error {
	return db.changeMails(ctx, "DELETE FROM mails WHERE created_at < ?", before)
}

func (db Mail) mails(ctx context.Context, statement string, values ...any) ([]tenants.WaitingMail, error) {
	rows, err := batchdb.Scan[[]mailRow](ctx, db.asWorker, statement, values...)
	return each(rows, func(row *mailRow) tenants.WaitingMail { return row.opened(db.sealer) }), batchdb.Wrapf(err, "waiting mails")
}

// ResealMails reseals the mails of older master keys with the newest one, and returns their number. It skips
// mails that do not open, since their delivery abandons them.
func (db Mail) ResealMails(ctx context.Context) (int, error) {
	if db.sealer == nil {
		return 0, nil
	}
	resealed := 0
	err := db.asWorker(ctx, func(tx *gorm.DB) error {
		rows, err := list[mailRow](tx.Table("mails").Where("sealed IS NOT NULL").Order("id").Clauses(locked()))
		if err != nil {
			return err
		}
		for _, row := range rows {
			about := tenants.AboutMail(row.ID, row.To)
			text, newest, err := db.sealer.OpenAbout(about, row.Sealed)
			if err != nil || newest {
				continue
			}
			sealed, err := db.sealer.SealAbout(about, text)
			if err != nil {
				return err
			}
			// The bytes are not the first value because gorm would expand them to a list.
			if err := batchdb.Write(tx, "UPDATE mails SET attempts = ?, sealed = ? WHERE id = ?", row.Attempts, sealed, row.ID); err != nil {
				return err
			}
			resealed++
		}
		return nil
	})
	return resealed, batchdb.Wrapf(err, "reseal waiting mails")
}

func (db Mail) changeMails(ctx context.Context, statement string, values ...any) error {
	return batchdb.Wrapf(batchdb.Exec(ctx, db.asWorker, statement, values...), "change waiting mails")
}

const mailColumns = "id, recipient, subject, body, sealed, created_at, attempts"

// mailRow is a row of mails.
type mailRow struct {
	tenants.WaitingMail

	Sealed []byte // NULL if the body contains the text
}

// opened returns the mail with its text.
func (r *mailRow) opened(sealer tenants.Sealer) tenants.WaitingMail {
	mail := r.WaitingMail
	if mail.Shut = r.Sealed != nil; !mail.Shut || sealer == nil {
		return mail
	}
	if text, _, err := sealer.OpenAbout(tenants.AboutMail(r.ID, r.To), r.Sealed); err == nil {
		mail.Text, mail.Shut = text, false
	}
	return mail
}
