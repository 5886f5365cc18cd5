package main

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

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
		Store: store, Log: p.log, Now: time.Now,
		Enqueue: func(ctx context.Context, workspace, notice uuid.UUID) error {
			return work.Enqueue(ctx, workspace, jobs.Job{Kind: jobNotice, Workspace: workspace, Lane: notice})
		},
	})
	if service.IsOn() {
		settings.WithPlans(store)
		work.Handle(jobNotice, jobs.Limits{Attempts: noticeAttempts, Timeout: 2 * time.Minute}, service.Handle)
		work.Every("billing", billing.Every, billing.Timeout, service.Pass)
	}
	return service
}

// billingSettings lists the settings of billing.
func billingSettings() []setting {
	text := func(field func(*billing.Config) *string) func(*Config, string) error {
		return func(config *Config, value string) error { *field(&config.Billing) = value; return nil }
	}
	prices := func(field func(*billing.Catalog) *[]string) func(*Config, string) error {
		return func(config *Config, value string) error {
			list := strings.Split(value, ",")
			for i := range list {
				list[i] = strings.TrimSpace(list[i])
			}
			if slices.Contains(list, "") {
				return errors.New("must be a price of Stripe, or several separated by commas; the first is sold")
			}
			*field(&config.Billing.Catalog) = list
			return nil
		}
	}
	return []setting{
		{"STRIPE_API_KEY", text(func(c *billing.Config) *string { return &c.APIKey })},
		{"STRIPE_WEBHOOK_SECRET", text(func(c *billing.Config) *string { return &c.WebhookSecret })},
		{"STRIPE_API_BASE", text(func(c *billing.Config) *string { return &c.APIBase })},
		{"STRIPE_PRO_PRICE", prices(func(c *billing.Catalog) *[]string { return &c.Pro.Plan })},
		{"STRIPE_PRO_USAGE_PRICE", text(func(c *billing.Config) *string { return &c.Catalog.Pro.Usage })},
		{"STRIPE_TEAM_PRICE", prices(func(c *billing.Catalog) *[]string { return &c.Team.Plan })},
		{"STRIPE_TEAM_USAGE_PRICE", text(func(c *billing.Config) *string { return &c.Catalog.Team.Usage })},
		{"STRIPE_METER", text(func(c *billing.Config) *string { return &c.Meter })},
		{"STRIPE_METER_EVENT", text(func(c *billing.Config) *string { return &c.MeterEvent })},
		{"STRIPE_TRIAL_DAYS", func(c *Config, value string) (err error) {
			if c.Billing.TrialDays, err = strconv.Atoi(value); err != nil {
				return errors.New("must be a whole number of days")
			}
			return nil
		}},
		{"STRIPE_TAX", func(c *Config, value string) (err error) {
			if c.Billing.Tax, err = strconv.ParseBool(value); err != nil {
				return errors.New("must be true or false")
			}
			return nil
		}},
		{"PALIMPSEST_BILLING_GRACE", func(c *Config, value string) (err error) {
			if c.Billing.Grace, err = time.ParseDuration(value); err != nil {
				return errors.New("must be a duration such as 336h")
			}
			return nil
		}},
	}
}
