package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"palimpsest/api"
	"palimpsest/api/alerts"
	"palimpsest/pipeline/jobs"
	"palimpsest/pipeline/jobs/jobsdb"
	"palimpsest/tenants"
	"palimpsest/tenants/identity"
	"palimpsest/tenants/mail"
	"palimpsest/tenants/tenantsdb"
	"palimpsest/tenants/vault"
	"palimpsest/web/devmail"
)

// outgoing makes what sends mails and alerts.
func (p *program) outgoing(db *tenantsdb.DB, safe *vault.Vault, people *identity.Service, work *jobsdb.Runner, metrics *api.Metrics) (devmail.Outbox, *alerts.Service, error) {
	mails, mailErr := p.outbox(db, people, work, metrics)
	alerting, alertErr := p.alerts(db, safe, work)
	return mails, alerting, errors.Join(mailErr, alertErr)
}

// alerts makes what tells people of a workspace what needs them, and has its rules looked at
// and its alerts delivered in the background.
func (p *program) alerts(db *tenantsdb.DB, safe *vault.Vault, work *jobsdb.Runner) (*alerts.Service, error) {
	config := alerts.Config{
		Store: alerts.Store{Alerts: db.Alerts, Keys: db.APIKeys, UsageReader: db.Usage, Workspaces: db.Workspaces, Transactor: db}, Sealer: safe, Queue: work, Mailer: keptMails{db}, Health: p.latestChecks,
		AllowPrivate: p.config.AllowPrivateUpstreams, PublicURL: p.reachable(), Log: p.log, Now: p.now,
	}
	if p.config.SMTPURL != "" {
		sender, err := mail.NewSMTP(p.config.SMTPURL, p.config.MailFrom, nil)
		if err != nil {
			return nil, fmt.Errorf("SMTP_URL: %w", err)
		}
		config.Mailer, config.HasMail = sender, true
	}
	service := alerts.New(config)
	work.Every("alerts", alerts.Every, alerts.Timeout, service.Pass)
	work.Handle(alerts.JobDeliver, jobs.Limits{Timeout: alerts.DeliverTimeout, Attempts: alerts.DeliverAttempts}, service.Deliver)
	return service, nil
}

// keptMails keeps mails with the others that are not sent where there is no mail server.
type keptMails struct{ db *tenantsdb.DB }

// Send implements alerts.Mailer.
func (k keptMails) Send(ctx context.Context, _ uuid.UUID, mail tenants.Mail) error {
	return k.db.Mail.QueueMail(ctx, mail)
}

// Interface guards.
var (
	_ alerts.Alerts  = tenantsdb.Alerts{}
	_ tenants.Sealer = (*vault.Vault)(nil)
)
