package main

import (
	"context"
	"fmt"

	"palimpsest/tenants"
	"palimpsest/tenants/identity"
	"palimpsest/tenants/mail"
)

// newOutbox schedules the sending of mails in the background. Without a mail server it keeps the mails, and
// returns a function that reads them, newest first.
func newOutbox(b base, people *identity.Service) (func(context.Context) ([]tenants.WaitingMail, error), error) {
	people.SetMails(identity.Mails{PublicURL: b.reachable(), RequireVerified: b.config.RequireVerifiedEmail})
	config := mail.Config{Store: b.db.Mail, Answer: people.AnswerRequests, Observe: b.metrics.Mailed, Log: b.log, Now: b.now}
	if b.config.SMTPURL == "" {
		config.ReadAt = b.mailsAt
		kept := mail.NewOutbox(config)
		b.work.Every("mail", mail.Every, mail.Timeout, kept.Pass)
		return kept.Kept, nil
	}
	sender, err := mail.NewSMTP(b.config.SMTPURL, b.config.MailFrom, nil)
	if err != nil {
		return nil, fmt.Errorf("SMTP_URL: %w", err)
	}
	config.Sender = sender
	b.work.Every("mail", mail.Every, mail.Timeout, mail.NewOutbox(config).Pass)
	return nil, nil //nolint:nilnil // mails are sent, so there is nothing to show
}
