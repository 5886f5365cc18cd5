package main

import (
	"time"

	"palimpsest/api"
	"palimpsest/pipeline/jobs/jobsdb"
	"palimpsest/tenants/identity"
	"palimpsest/tenants/mail"
	"palimpsest/tenants/tenantsdb"
	"palimpsest/web/devmail"
)

// outbox has mails sent in the background, or kept where there is no mail server.
func (p *program) outbox(db *tenantsdb.DB, people *identity.Service, work *jobsdb.Runner, metrics *api.Metrics) (*mail.Outbox, error) {
	people.SetMails(identity.Mails{PublicURL: p.reachable(), RequireVerified: p.config.RequireVerifiedEmail})
	config := mail.Config{Store: db, Writer: people, Observe: metrics.Mailed, Log: p.log, Now: time.Now}
	if p.config.SMTPURL != "" {
		sender, err := mail.NewSMTP(p.config.SMTPURL, p.config.MailFrom, nil)
		if err != nil {
			return nil, err
		}
		config.Sender = sender
	}
	outbox := mail.NewOutbox(config)
	work.Every("mail", mail.Every, mail.Timeout, outbox.Pass)
	return outbox, nil
}

// shown returns what shows the mails that nobody is sent; nil where they are.
func (p *program) shown(outbox *mail.Outbox) devmail.Outbox {
	if p.config.SMTPURL != "" {
		return nil
	}
	return outbox
}
