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
	lease    = 10 * time.Minute // in which a pass that took mails has sent them, or died
	minPause = time.Minute      // before a mail is tried again …
	maxPause = 6 * time.Hour    // … doubled each time, up to this

	// GiveUpAfter is how old a mail gets before it is not tried again.
	GiveUpAfter = 3 * 24 * time.Hour
)

// Every is how often waiting mails are looked for where nothing says that there are any,
// Timeout how long one pass may take.
const (
	Every   = 30 * time.Second
	Timeout = 5 * time.Minute
)

// The outcomes of a try to send a mail.
const (
	Sent    = "sent"
	Failed  = "failed"   // and will be tried again
	Refused = "refused"  // permanently rejected, by us or by the server
	GivenUp = "given_up" // too old
	Kept    = "kept"     // there is no server
)

// Store keeps the mails that wait.
type Store interface {
	// TakeMails returns mails that are due, which no one else gets before until.
	TakeMails(ctx context.Context, at, until time.Time, limit int) ([]tenants.WaitingMail, error)
	// KeepMails returns those that are due, which nobody gets again.
	KeepMails(ctx context.Context, at time.Time) ([]tenants.WaitingMail, error)
	// Mails returns all, the newest first.
	Mails(ctx context.Context, limit int) ([]tenants.WaitingMail, error)
	DelayMail(ctx context.Context, id uuid.UUID, until time.Time) error
	DropMail(ctx context.Context, id uuid.UUID) error
	DropMails(ctx context.Context, before time.Time) error
}

// Config is what an Outbox works with.
type Config struct {
	Store   Store
	Answer  func(ctx context.Context) error // writes the mails that people ask for by their address
	Sender  tenants.MailSender              // nil: mails are kept
	ReadAt  func() string                   // returns the address where mails are read that are kept; empty: nowhere
	Observe func(outcome string)
	Log     *slog.Logger
	Now     func() time.Time
}

// Outbox sends the mails that wait.
type Outbox struct{ config Config }

// NewOutbox returns an Outbox.
func NewOutbox(config Config) *Outbox {
	if config.Observe == nil {
		config.Observe = func(string) {}
	}
	return &Outbox{config: config}
}

// Pass writes the mails that were asked for and sends what is due. What cannot be sent
// waits for a later pass, or is abandoned; neither is an error.
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

// Kept returns the mails that nobody was sent, the newest first, those that were asked
// for just now among them.
func (o *Outbox) Kept(ctx context.Context) ([]tenants.WaitingMail, error) {
	if err := o.Pass(ctx); err != nil {
		return nil, err
	}
	return o.config.Store.Mails(ctx, batch)
}

// keep keeps what would be sent.
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

// try sends one mail and says what becomes of it. An error is the store's.
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
