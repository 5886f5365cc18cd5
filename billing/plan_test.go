package billing_test

import (
	"strings"
	"testing"
	"time"

	"palimpsest/billing"
	"palimpsest/billing/stripetest"
)

func TestAmountsAreWrittenAsTheirCurrencyIs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		smallest int64
		currency string
		want     string
	}{
		{2000, "usd", "20.00 USD"}, {5, "eur", "0.05 EUR"}, {0, "usd", "0.00 USD"}, {1500, "jpy", "1500 JPY"},
		{1234, "kwd", "1.234 KWD"}, {-250, "usd", "−2.50 USD"},
	} {
		if got := billing.Amount(c.smallest, c.currency); got != c.want {
			t.Errorf("Amount(%d, %s) = %s, want %s", c.smallest, c.currency, got, c.want)
		}
	}
}

func TestForecastNeedsAQuarterOfThePeriod(t *testing.T) {
	t.Parallel()
	from := time.Date(2026, 4, 1, 0, 0, 0, 0, time.UTC)
	overview := billing.Overview{Used: 1000, From: from, To: from.AddDate(0, 0, 30)}
	if _, ok := overview.Forecast(from.AddDate(0, 0, 7)); ok {
		t.Error("a guess after a week of a month")
	}
	if got, ok := overview.Forecast(from.AddDate(0, 0, 10)); !ok || got != 3000 {
		t.Errorf("%d, %v, want 3000", got, ok)
	}
	if _, ok := overview.Forecast(from.AddDate(0, 0, 31)); ok {
		t.Error("a guess about the past")
	}
	if _, ok := (billing.Overview{}).Forecast(from); ok {
		t.Error("a guess about nothing")
	}
}

func TestWrongSettingIsNamed(t *testing.T) {
	t.Parallel()
	valid := func() billing.Config {
		config := config(&stripetest.Server{})
		config.Grace = time.Hour
		return config
	}
	if err := valid().Validate(); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*billing.Config){
		"STRIPE_WEBHOOK_SECRET":    func(c *billing.Config) { c.WebhookSecret = "" },
		"STRIPE_PRO_PRICE":         func(c *billing.Config) { c.Catalog = billing.Catalog{} },
		"STRIPE_METER":             func(c *billing.Config) { c.Meter = "" },
		"STRIPE_METER_EVENT":       func(c *billing.Config) { c.MeterEvent = "" },
		"STRIPE_TRIAL_DAYS":        func(c *billing.Config) { c.TrialDays = 731 },
		"PALIMPSEST_BILLING_GRACE": func(c *billing.Config) { c.Grace = -time.Second },
	} {
		config := valid()
		change(&config)
		err := config.Validate()
		if err == nil || !strings.HasPrefix(err.Error(), name+": ") || strings.Contains(err.Error(), stripetest.Key) {
			t.Errorf("%s: %v", name, err)
		}
		config.APIKey = ""
		if err := config.Validate(); err != nil {
			t.Errorf("%s where billing is off: %v", name, err)
		}
	}
}
