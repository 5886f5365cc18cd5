package mail

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"palimpsest/tenants"
)

const (
	batch    = 50               // mails of one pass
	lease    = 10 * time.Minute // a pass that took mails has sent them by then, or died
	minPause = time.Minute      // before a retry …
	maxPause = 6 * time.Hour    // … doubled each time, up to this

	// GiveUpAfter is the age at which a mail is abandoned.
	GiveUpAfter = 3 * 24 * time.Hour
)

// Every is the interval between checks for waiting mails without a notification. Timeout bounds one pass.
const (
	Every   = 30 * time.Second
	Timeout = 5 * time.Minute
)

// The outcomes of sending a mail.
const (
	Sent    = "sent"
	Failed  = "failed"   // will be retried
	Refused = "refused"  // permanently rejected, by us or by the server
	GivenUp = "given_up" // too old
	Kept    = "kept"     // there is no server
)

// Store stores waiting mails.
type Store interface {
	// TakeMails returns due mails and reserves them until a time.
	TakeMails(ctx context.Context, at, until time.Time, limit int) ([]tenants.WaitingMail, error)
	// KeepMails returns due mails and takes them out of the queue.
	KeepMails(ctx context.Context, at time.Time) ([]tenants.WaitingMail, error)
	// Mails returns all, the newest first.
	Mails(ctx context.Context, limit int) ([]tenants.WaitingMail, error)
	DelayMail(ctx context.Context, id uuid.UUID, until time.Time) error
	DropMail(ctx context.Context, id uuid.UUID) error
	DropMails(ctx context.Context, before time.Time) error
}

// Config holds the dependencies of an Outbox.
type Config struct {
	Store   Store
	Answer  func(ctx context.Context) error // writes the mails for requests by address
	Sender  tenants.MailSender              // nil: mails are kept
	ReadAt  func() string                   // returns the URL where kept mails are read; "" if absent
	Observe func(outcome string)
	Log     *slog.Logger
	Now     func() time.Time
}

// Outbox sends waiting mails.
type Outbox struct{ config Config }

// NewOutbox returns an Outbox.
func NewOutbox(config Config) *Outbox {
	if config.Observe == nil {
		config.Observe = func(string) {}
	}
	return &Outbox{config: config}
}

// Pass writes the requested mails and sends due ones. A mail that fails waits for a later pass or is
// abandoned; neither is an error.
func (o *Outbox) Pass(ctx context.Context) error {
	written := o.config.Answer(ctx)
	if o.config.Sender == nil {
		return errors.Join(written, o.keep(ctx))
	}
	for {
		now := o.config.Now()
		mails, err := o.config.Store.TakeMails(ctx, now, now.Add(lease), batch)
		if err != nil || len(mails) == 0 {
			return errors.Join(written, err)
		}
		for _, mail := range mails {
			if err := o.try(ctx, mail); err != nil {
				return errors.Join(written, err)
			}
		}
	}
}

// Kept returns the unsent mails, the newest first, including the ones that were just requested.
func (o *Outbox) Kept(ctx context.Context) ([]tenants.WaitingMail, error) {
	if err := o.Pass(ctx); err != nil {
		return nil, err
	}
	return o.config.Store.Mails(ctx, batch)
}

// keep stores the mails that would be sent.
func (o *Outbox) keep(ctx context.Context) error {
	now := o.config.Now()
	mails, err := o.config.Store.KeepMails(ctx, now)
	for _, mail := range mails {
		o.config.Observe(Kept)
		if address := o.readAt(); address != "" {
			o.config.Log.InfoContext(ctx, "mail is kept, as SMTP_URL is not set; read it on this machine", "url", address, "mail", mail.ID, "to", mail.To, "subject", mail.Subject)
		} else {
			o.config.Log.WarnContext(ctx, "mail is not sent; set SMTP_URL", "mail", mail.ID, "to", mail.To, "subject", mail.Subject)
		}
	}
	return errors.Join(err, o.config.Store.DropMails(ctx, now.Add(-GiveUpAfter)))
}

func (o *Outbox) readAt() string {
	if o.config.ReadAt == nil {
		return ""
	}
	return o.config.ReadAt()
}

// try sends one mail and records its outcome. An error comes from the store.
func (o *Outbox) try(ctx context.Context, mail tenants.WaitingMail) error {
	if mail.Shut {
		o.config.Observe(GivenUp)
		o.config.Log.ErrorContext(ctx, "mail does not open and was dropped: the master key that sealed it is not set any more", "mail", mail.ID, "subject", mail.Subject)
		return o.config.Store.DropMail(ctx, mail.ID)
	}
	err := o.config.Sender.Send(ctx, mail.ID, mail.Mail)
	now := o.config.Now()
	switch {
	case err == nil:
		o.config.Observe(Sent)
		return o.config.Store.DropMail(ctx, mail.ID)
	case errors.Is(err, errRefused):
		o.config.Observe(Refused)
		o.config.Log.ErrorContext(ctx, "mail is refused and was dropped", "mail", mail.ID, "subject", mail.Subject, "error", err)
		return o.config.Store.DropMail(ctx, mail.ID)
	case now.Sub(mail.CreatedAt) >= GiveUpAfter:
		o.config.Observe(GivenUp)
		o.config.Log.ErrorContext(ctx, "mail was dropped after its last attempt: check the mail server and the address", "mail", mail.ID, "subject", mail.Subject, "attempts", mail.Attempts, "error", err)
		return o.config.Store.DropMail(ctx, mail.ID)
	default:
		o.config.Observe(Failed)
		pause := min(minPause<<min(mail.Attempts-1, 16), maxPause)
		o.config.Log.WarnContext(ctx, "mail could not be sent and is tried again", "mail", mail.ID, "attempts", mail.Attempts, "in", pause.String(), "error", err)
		return o.config.Store.DelayMail(ctx, mail.ID, now.Add(pause))
	}
}

// Interface guard.
var _ tenants.MailSender = (*SMTP)(nil)
