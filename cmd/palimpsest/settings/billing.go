package settings

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"palimpsest/billing"
)

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
