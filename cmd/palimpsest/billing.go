package main

import (
	"context"
	"time"

	"palimpsest/tenants"

	"github.com/google/uuid"

	"palimpsest/api"
	"palimpsest/billing"
	"palimpsest/billing/billingdb"
	"palimpsest/pipeline/jobs"
	"palimpsest/pipeline/jobs/jobsdb"
	"palimpsest/tenants/tenantsdb"
)

// jobNotice reads a workspace's state at Stripe. Its lane is the notice that it is for.
const jobNotice jobs.Kind = "billing_notice"

// noticeAttempts is how often that is tried: for an hour and a half, if Stripe is down.
const noticeAttempts = 12

// billing makes what sells plans, and restrains the traffic of those who owe; where
// billing is off it does neither.
func (p *program) billing(db *tenantsdb.DB, work *jobsdb.Runner, settings *api.Settings) *billing.Service {
	config := p.config.Billing
	config.PublicURL = p.reachable()
	store := billingdb.New(db)
	service := billing.New(config, billing.Deps{
		Store: store, Mail: db.Mail.QueueMail, Log: p.log, Now: p.now,
		Enqueue: func(ctx context.Context, workspace tenants.WorkspaceID, notice uuid.UUID) error {
			return work.Enqueue(ctx, workspace, jobs.Job{Kind: jobNotice, Workspace: workspace, Lane: notice})
		},
	})
	if service.IsOn() {
		settings.WithPlans(store)
		work.Handle(jobNotice, jobs.Limits{Attempts: noticeAttempts, Timeout: 2 * time.Minute}, service.Handle)
		work.Every("billing", billing.Every, billing.Timeout, service.Pass)
		work.Every("subscription_ends", billing.Every, billing.Timeout, service.EndPass)
	}
	return service
}
