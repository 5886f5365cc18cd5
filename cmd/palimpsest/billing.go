package main

import (
	"context"
	"time"

	"github.com/google/uuid"

	"palimpsest/api/proxysettings"
	"palimpsest/billing"
	"palimpsest/billing/billingdb"
	"palimpsest/pipeline/jobs"
	"palimpsest/tenants"
)

// jobNotice reads a workspace's state at Stripe. Its lane is the id of the notice.
const jobNotice jobs.Kind = "billing_notice"

// noticeAttempts is how often a notice is tried: for an hour and a half, if Stripe is down.
const noticeAttempts = 12

// newBilling creates the service that sells plans and limits the traffic of accounts that owe. It does
// neither if billing is off.
func newBilling(b base, settings *proxysettings.Cache) *billing.Service {
	config := b.Config.Billing
	config.PublicURL = b.Reachable()
	store := billingdb.New(b.db)
	service := billing.New(config, billing.Deps{
		Store: store, Mail: b.db.Mail.QueueMail, Log: b.Log, Now: b.Now,
		Enqueue: func(ctx context.Context, tenant tenants.Tenant, notice uuid.UUID) error {
			return b.work.Enqueue(ctx, tenant, jobs.Job{Kind: jobNotice, Workspace: tenant.Workspace(), Lane: notice})
		},
	})
	if service.IsOn() {
		settings.WithPlans(store.Restraint)
		b.work.Handle(jobNotice, jobs.Limits{Attempts: noticeAttempts, Timeout: 2 * time.Minute}, service.Handle)
		b.work.Every("billing", billing.Every, billing.Timeout, service.Pass)
		b.work.Every("subscription_ends", billing.Every, billing.Timeout, service.EndPass)
	}
	return service
}
