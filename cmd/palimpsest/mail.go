package main

import (
	"fmt"

	"palimpsest/api"
	"palimpsest/pipeline/jobs/jobsdb"
	"palimpsest/tenants/identity"
	"palimpsest/tenants/mail"
	"palimpsest/tenants/tenantsdb"
	"palimpsest/web/devmail"
	"palimpsest/web/paths"
)

// mailsAt returns the address at which mails are read that are not sent: links in them open
// accounts, so that only the database that is this program's own has one, and no one but
// the log knows its end. It is empty where mails are not shown.
func (p *program) mailsAt() string {
	if p.mailToken == "" {
		return ""
	}
	return p.reachable() + paths.DevMail + "/" + p.mailToken
}

// outbox has mails sent in the background. Where there is no mail server they are kept,
// and it returns what shows them.
func (p *program) outbox(db *tenantsdb.DB, people *identity.Service, work *jobsdb.Runner, metrics *api.Metrics) (devmail.Outbox, error) {
	people.SetMails(identity.Mails{PublicURL: p.reachable(), RequireVerified: p.config.RequireVerifiedEmail})
	config := mail.Config{Store: db.Mail, Writer: people, Observe: metrics.Mailed, Log: p.log, Now: p.now}
	if p.config.SMTPURL == "" {
		config.ReadAt = p.mailsAt
		kept := mail.NewOutbox(config)
		work.Every("mail", mail.Every, mail.Timeout, kept.Pass)
		return kept, nil
	}
	sender, err := mail.NewSMTP(p.config.SMTPURL, p.config.MailFrom, nil)
	if err != nil {
		return nil, fmt.Errorf("SMTP_URL: %w", err)
	}
	config.Sender = sender
	work.Every("mail", mail.Every, mail.Timeout, mail.NewOutbox(config).Pass)
	return nil, nil //nolint:nilnil // mails are sent, so there is nothing to show
}
