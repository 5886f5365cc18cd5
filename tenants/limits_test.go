package tenants_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"palimpsest/tenants"
)

func TestLimitsThatCannotHoldNameTheirField(t *testing.T) {
	t.Parallel()
	many := strings.Split(strings.Repeat("a ", 51), " ")[:51]
	for field, limits := range map[string]tenants.Limits{
		"allowed_models":      {Models: []string{""}},
		"allowed_endpoints":   {Endpoints: []string{"v1/messages"}},
		"requests_per_minute": {Quota: tenants.Quota{RequestsPerMinute: -1}},
		"tokens_per_minute":   {Quota: tenants.Quota{TokensPerMinute: 1_000_000_001}},
		"concurrency":         {Quota: tenants.Quota{Concurrency: 100_001}},
		"budget_day_usd":      {Quota: tenants.Quota{DayMicroUSD: -1}},
		"budget_month_usd":    {Quota: tenants.Quota{MonthMicroUSD: 1 << 60}},
	} {
		var invalid tenants.Invalid
		if err := limits.Validate(); !errors.As(err, &invalid) || invalid.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
	if err := (tenants.Limits{Models: many}).Validate(); err == nil {
		t.Error("51 models are taken")
	}
	full := tenants.Limits{Models: []string{"claude-*"}, Endpoints: []string{"/v1/*"}, Quota: tenants.Quota{RequestsPerMinute: 1, TokensPerMinute: 1, Concurrency: 1, DayMicroUSD: 10_000, MonthMicroUSD: 10_000_000_000_000}}
	if err := errors.Join(full.Validate(), tenants.Limits{}.Validate()); err != nil {
		t.Error(err)
	}
}

func TestPatternsMatchWhatTheyName(t *testing.T) {
	t.Parallel()
	for pattern, models := range map[string][2][]string{
		"claude-*":    {{"claude-", "claude-opus-4-5", "Claude-X"}, {"claude", "my-claude-1"}},
		"*-mini":      {{"gpt-5-mini", "-mini"}, {"gpt-5-mini-2"}},
		"gpt-*-mini*": {{"gpt-5-mini", "gpt-5-mini-2026"}, {"gpt-mini", "gpt-5"}},
		"*":           {{"", "x"}, nil},
		"gpt-5.5":     {{"gpt-5.5"}, {"gpt-5x5", "gpt-5.5-mini", ""}},
		"a*b*a":       {{"aba", "axxbxxa", "abba"}, {"ab", "aa", "ba"}},
		"**":          {{"anything"}, nil},
	} {
		limits := tenants.Limits{Models: []string{"other", pattern}}
		for _, model := range models[0] {
			if err := limits.CheckModel(model, true); err != nil {
				t.Errorf("%s refuses %q: %v", pattern, model, err)
			}
		}
		for _, model := range models[1] {
			if err := limits.CheckModel(model, true); err == nil {
				t.Errorf("%s allows %q", pattern, model)
			}
		}
	}
}

// A provider may take a path with ".." or "//" for another one than its pattern names.
func TestEndpointsAreNotReachedInAnotherForm(t *testing.T) {
	t.Parallel()
	limits := tenants.Limits{Endpoints: []string{"/v1/messages*"}}
	for path, allowed := range map[string]bool{
		"/v1/messages": true, "/v1/messages/": true, "/v1/messages/count_tokens": true,
		"/v1/messages/../files": false, "/v1/messages/./batches": false, "/v1/messages//batches": false, "/v1//messages": false, "/v1/files": false,
	} {
		if err := limits.CheckEndpoint(path); (err == nil) != allowed {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// Dollars are rounded to millionths: 8.2 times a million is a little less than 8,200,000.
func TestDollarsAreExactMillionths(t *testing.T) {
	t.Parallel()
	for dollars, want := range map[float64]int64{8.2: 8_200_000, 16.4: 16_400_000, 1.005: 1_005_000, 0.000001: 1, 0: 0} {
		if got, err := tenants.MicroUSD("budget_day_usd", dollars); got != want || err != nil {
			t.Errorf("%v: %d, %v, want %d", dollars, got, err, want)
		}
	}
	for _, dollars := range []float64{0.0000009, math.NaN()} {
		if _, err := tenants.MicroUSD("budget_day_usd", dollars); err == nil {
			t.Errorf("%v is a budget", dollars)
		}
	}
}

func TestAddressesAreComparedAsNetworks(t *testing.T) {
	t.Parallel()
	networks, err := tenants.ParseAddresses([]string{"10.1.2.3/8", "203.0.113.7", "2001:db8::/32", "::ffff:192.0.2.1"})
	if err != nil {
		t.Fatal(err)
	}
	limits := tenants.Limits{Addresses: networks}
	if got := strings.Join(limits.AddressList(), " "); got != "10.0.0.0/8 203.0.113.7 2001:db8::/32 192.0.2.1" {
		t.Errorf("read as %s", got)
	}
	for address, allowed := range map[string]bool{
		"10.200.0.1": true, "::ffff:10.0.0.1": true, "203.0.113.7": true, "2001:db8::5": true, "2001:db8::5%eth0": true, "192.0.2.1": true,
		"11.0.0.1": false, "203.0.113.8": false, "::1": false, "": false, "not an address": false,
	} {
		if err := limits.CheckAddress(address); (err == nil) != allowed {
			t.Errorf("%q: %v", address, err)
		}
	}
	for _, wrong := range []string{"10.0.0.0/40", "example.com", "", "::ffff:10.0.0.0/104"} {
		if _, err := tenants.ParseAddresses([]string{wrong}); err == nil {
			t.Errorf("%q is taken", wrong)
		}
	}
}

func TestABudgetRefusesWhatHasNoPriceUnlessTold(t *testing.T) {
	t.Parallel()
	budget := tenants.Limits{Quota: tenants.Quota{MonthMicroUSD: 1}}
	open := budget
	open.AllowUnpriced = true
	for name, test := range map[string]struct {
		limits        tenants.Limits
		priced, relay bool
	}{
		"without a budget": {tenants.Limits{}, true, true}, "with one": {budget, false, false}, "told to": {open, true, true},
		"with another's": {tenants.Limits{Shared: true}, false, false},
	} {
		if err := test.limits.CheckModel("llama", false); (err == nil) != test.priced {
			t.Errorf("%s, a model: %v", name, err)
		}
		if err := test.limits.CheckRelay("/v1/images", false); (err == nil) != test.relay {
			t.Errorf("%s, a relay: %v", name, err)
		}
		if err := test.limits.CheckRelay("/v1/files", true); err != nil {
			t.Errorf("%s, a relay that is free: %v", name, err)
		}
		if err := test.limits.CheckModel("gpt", true); err != nil {
			t.Errorf("%s, a price: %v", name, err)
		}
	}
}

func TestAuditShowsWhatAKeyIsHeldTo(t *testing.T) {
	t.Parallel()
	networks, err := tenants.ParseAddresses([]string{"10.0.0.0/8"})
	if err != nil {
		t.Fatal(err)
	}
	until := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	fields := tenants.APIKey{APIKeyTimes: tenants.APIKeyTimes{OldUntil: &until}, Limits: tenants.Limits{
		Models: []string{"a", "b*"}, Addresses: networks, LockOverrides: true, NoStore: true, Quota: tenants.Quota{Concurrency: 3, DayMicroUSD: 1_234_500},
	}}.Fields()
	for name, want := range map[string]string{
		"allowed_models": "a,b*", "allowed_ips": "10.0.0.0/8", "lock_overrides": "yes", "no_store": "yes", "concurrency": "3", "budget_day_usd": "1.2345",
		"budget_month_usd": "", "requests_per_minute": "", "old_secret_until": "2026-01-02T03:04:05Z",
	} {
		if fields[name] != want {
			t.Errorf("%s is %q, want %q", name, fields[name], want)
		}
	}
	for micro, want := range map[int64]string{0: "0.00", 1: "0.000001", 7_500_000: "7.50", 1_000_000: "1.00", 10_000: "0.01"} {
		if got := tenants.USD(micro); got != want {
			t.Errorf("%d: %s, want %s", micro, got, want)
		}
	}
}

func TestNobodyHandsOutMoreThanTheyMay(t *testing.T) {
	t.Parallel()
	for role, most := range map[tenants.Role][]tenants.Scope{
		tenants.Owner:   {tenants.ScopeProxy, tenants.ScopeRecall, tenants.ScopeRead, tenants.ScopeManage},
		tenants.Admin:   {tenants.ScopeProxy, tenants.ScopeRecall, tenants.ScopeRead, tenants.ScopeManage},
		tenants.Regular: {tenants.ScopeProxy, tenants.ScopeRecall, tenants.ScopeRead},
		tenants.Viewer:  {tenants.ScopeRecall, tenants.ScopeRead},
		tenants.Billing: {},
	} {
		if !tenants.MayGrant(role.May, most) {
			t.Errorf("%s may not grant %v", role, most)
		}
		if len(most) < 4 && tenants.MayGrant(role.May, []tenants.Scope{tenants.ScopeProxy, tenants.ScopeManage}) {
			t.Errorf("%s may grant manage", role)
		}
		key := tenants.APIKey{Scopes: []tenants.Scope{tenants.ScopeProxy, tenants.ScopeRecall, tenants.ScopeRead, tenants.ScopeManage}}
		if backed := key.Backed(role); !slices.Equal(backed, most) {
			t.Errorf("a key of %s may use %v", role, backed)
		}
	}
}

// What is relayed may be about any model, whatever the method.
func TestLimitOnModelsRefusesEveryRelay(t *testing.T) {
	t.Parallel()
	limits := tenants.Limits{Models: []string{"claude-*"}}
	for _, free := range []bool{false, true} {
		forbidden, is := errors.AsType[tenants.Forbidden](limits.CheckRelay("/v1/files/x", free))
		if !is || forbidden.Code != "endpoint_not_allowed" {
			t.Errorf("free %v: %v", free, forbidden)
		}
	}
}
