package main

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"palimpsest/api/alerts"
	"palimpsest/pipeline/jobs"
	"palimpsest/tenants"
	"palimpsest/tenants/identity"
	"palimpsest/tenants/mail"
	"palimpsest/tenants/tenantsdb"
	"palimpsest/tenants/vault"
)

// newAlerts creates the alert service of workspaces, and schedules the evaluation of its rules and the
// delivery of its alerts in the background.
func newAlerts(b base) (*alerts.Service, error) {
	config := alerts.Config{
		Store: alerts.Store{Alerts: b.db.Alerts, Keys: b.db.APIKeys, Budgets: b.db.Data.Budgets, Spend: b.db.Data.Spend, UsageReader: b.db.Usage, Workspaces: b.db.Workspaces, Transactor: b.db}, Sealer: b.vault, Queue: b.work, Mailer: keptMails{b.db}, Health: b.health.parts.LatestChecks,
		Guard: b.Guard, PublicURL: b.Reachable(), Log: b.Log, Now: b.Now,
	}
	if b.Config.Accounts.SMTPURL != "" {
		sender, err := mail.NewSMTP(b.Config.Accounts.SMTPURL, b.Config.Accounts.MailFrom, nil)
		if err != nil {
			return nil, fmt.Errorf("SMTP_URL: %w", err)
		}
		config.Mailer, config.HasMail = sender, true
	}
	service := alerts.New(config)
	b.work.Every("alerts", alerts.Every, alerts.Timeout, service.Pass)
	b.work.Handle(alerts.JobDeliver, jobs.Limits{Timeout: alerts.DeliverTimeout, Attempts: alerts.DeliverAttempts}, service.Deliver)
	return service, nil
}

// keptMails stores a mail with the unsent ones when no mail server is configured.
type keptMails struct{ db *tenantsdb.DB }

// Send implements alerts.Mailer.
func (k keptMails) Send(ctx context.Context, _ uuid.UUID, mail tenants.Mail) error {
	return k.db.Mail.QueueMail(ctx, nil, mail)
}

// Interface guards.
var (
	_ alerts.Alerts  = tenantsdb.Alerts{}
	_ tenants.Sealer = (*vault.Vault)(nil)
)

// newOutbox schedules the sending of mails in the background. Without a mail server it keeps the mails, and
// returns a function that reads them, newest first.
func newOutbox(b base, people *identity.Service) (func(context.Context) ([]tenants.WaitingMail, error), error) {
	people.SetMails(identity.Mails{PublicURL: b.Reachable(), RequireVerified: b.Config.Accounts.RequireVerifiedEmail})
	config := mail.Config{Store: b.db.Mail, Answer: people.AnswerRequests, Observe: b.metrics.Mailed, Log: b.Log, Now: b.Now}
	if b.Config.Accounts.SMTPURL == "" {
		config.ReadAt = b.MailsAt
		kept := mail.NewOutbox(config)
		b.work.Every("mail", mail.Every, mail.Timeout, kept.Pass)
		return kept.Kept, nil
	}
	sender, err := mail.NewSMTP(b.Config.Accounts.SMTPURL, b.Config.Accounts.MailFrom, nil)
	if err != nil {
		return nil, fmt.Errorf("SMTP_URL: %w", err)
	}
	config.Sender = sender
	b.work.Every("mail", mail.Every, mail.Timeout, mail.NewOutbox(config).Pass)
	return nil, nil //nolint:nilnil // mails are sent, so there is nothing to show
}
