package billing

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Config configures billing.
type Config struct {
	APIKey        string // Stripe's secret or restricted key; "" turns billing off
	WebhookSecret string // of the webhook endpoint: whsec_…; of several endpoints, separated by commas
	APIBase       string // base URL of Stripe's API; "" means Stripe's own
	Catalog       Catalog

	Meter      string        // Stripe's id of the meter
	MeterEvent string        // its event_name
	TrialDays  int           // of a workspace's first subscription; 0 disables trials
	Tax        bool          // Stripe computes and collects taxes
	Grace      time.Duration // from a failed payment until traffic is restrained

	// PublicURL is the product's address for people, without a trailing slash.
	PublicURL string
}

// DefaultConfig returns the settings with billing off.
func DefaultConfig() Config {
	return Config{MeterEvent: "palimpsest_exchanges", Tax: true, Grace: 14 * 24 * time.Hour}
}

// Upper limits of settings.
const (
	maxTrialDays = 730 // Stripe's own limit
	maxGrace     = 90 * 24 * time.Hour
)

// IsOn reports whether billing is on.
func (c Config) IsOn() bool { return c.APIKey != "" }

// Validate returns an error with the environment name of a wrong or missing setting if billing is on. The
// message never contains a secret.
func (c Config) Validate() error {
	if !c.IsOn() {
		return nil
	}
	switch {
	case len(c.webhookSecrets()) == 0:
		return errors.New("STRIPE_WEBHOOK_SECRET: is empty; name the signing secret of the webhook endpoint, whsec_…")
	case len(c.Catalog.sold()) == 0:
		return errors.New("STRIPE_PRO_PRICE: is empty, and STRIPE_TEAM_PRICE too; name a price of Stripe, price_…")
	case c.isMetered() && c.Meter == "":
		return errors.New("STRIPE_METER: is empty; a usage price needs the id of its meter, mtr_…")
	case c.isMetered() && c.MeterEvent == "":
		return errors.New("STRIPE_METER_EVENT: is empty; name the event_name of the meter")
	case c.TrialDays < 0 || c.TrialDays > maxTrialDays:
		return fmt.Errorf("STRIPE_TRIAL_DAYS: %d is not between 0 and %d", c.TrialDays, maxTrialDays)
	case c.Grace < 0 || c.Grace > maxGrace:
		return fmt.Errorf("PALIMPSEST_BILLING_GRACE: %s is not between 0s and %s", c.Grace, maxGrace)
	}
	return nil
}

// webhookSecrets returns the secrets of the webhook endpoints, without empty ones because anyone could sign
// with those.
func (c Config) webhookSecrets() []string {
	return strings.FieldsFunc(c.WebhookSecret, func(r rune) bool { return r == ',' || r == ' ' })
}

// isMetered reports whether usage is reported to Stripe.
func (c Config) isMetered() bool { return c.Catalog.Pro.Usage != "" || c.Catalog.Team.Usage != "" }
