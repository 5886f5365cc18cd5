package tenantsdb

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"palimpsest/tenants"
)

// mailWorker is what works with mails: it sees those of everybody.
const mailWorker = "mail"

// QueueMail has a mail sent. It takes part in the transaction of Together where ctx
// is of one: the mail is sent if and only if that is committed.
func (db *DB) QueueMail(ctx context.Context, mail tenants.Mail) error {
	if common, ok := ctx.Value(commonKey{}).(common); ok {
		return queueMail(common.tx, mail)
	}
	return db.transaction(ctx, forWorker, mailWorker, func(tx *gorm.DB) error { return queueMail(tx, mail) })
}

// queueMail has a mail sent if and only if the transaction is committed. The rest of
// the transaction sees no more mails than it did before.
func queueMail(tx *gorm.DB, mail tenants.Mail) error {
	return asMailWorker(tx, func() error {
		err := tx.Exec("INSERT INTO mails (id, recipient, subject, body) VALUES (?, ?, ?, ?)",
			uuid.Must(uuid.NewV7()), storable(mail.To), storable(mail.Subject), storable(mail.Text)).Error
		if err != nil {
			return fmt.Errorf("queue mail: %w", err)
		}
		return nil
	})
}

// asMailWorker runs fn in a transaction that also sees mails, and ends that again.
func asMailWorker(tx *gorm.DB, fn func() error) error {
	var before string
	if err := tx.Raw("SELECT coalesce(current_setting(?, true), '')", forWorker).Scan(&before).Error; err != nil {
		return err
	}
	if err := workFor(tx, forWorker, mailWorker); err != nil {
		return err
	}
	if err := fn(); err != nil {
		return err
	}
	return workFor(tx, forWorker, before)
}
