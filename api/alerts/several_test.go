package alerts_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"palimpsest/api/alerts"
	"palimpsest/tenants"
)

var errPlanned = errors.New("planned failure")

// facts are alerts on a real database, except for those that a test sets.
type facts struct {
	alerts.Alerts

	exchanges, failed int64
	unknown           tenants.WorkspaceID // whose channels cannot be read
}

func (f *facts) RecentFailures(context.Context, tenants.WorkspaceID, time.Time) (exchanges, failures int64, err error) {
	return f.exchanges, f.failed, nil
}

func (f *facts) AlertChannels(ctx context.Context, workspace tenants.WorkspaceID) ([]tenants.AlertChannel, error) {
	if workspace == f.unknown {
		return nil, errPlanned
	}
	return f.Alerts.AlertChannels(ctx, workspace)
}

// keys are API keys with their spend.
type keys struct {
	list  []tenants.APIKey
	spent map[string][2]int64 // in the day and in the month, by name; missing: it cannot be read
}

func (k *keys) APIKeys(context.Context, tenants.WorkspaceID) ([]tenants.APIKey, error) {
	return k.list, nil
}

func (k *keys) Budgets(context.Context, tenants.WorkspaceID) ([]tenants.Budget, error) {
	return nil, nil
}

func (k *keys) Spend(_ context.Context, _ tenants.WorkspaceID, who tenants.Spender, _, _ time.Time) (inDay, inMonth int64, err error) {
	for _, one := range k.list {
		if spent, known := k.spent[one.Name]; one.ID.String() == who.ID && known {
			return spent[0], spent[1], nil
		}
	}
	return 0, 0, errPlanned
}

// budgeted returns a key with budgets in millionths of a dollar.
func budgeted(name string, day, month int64) tenants.APIKey {
	return tenants.APIKey{ID: uuid.New(), Name: name, Limits: tenants.Limits{Quota: tenants.Quota{DayMicroUSD: day, MonthMicroUSD: month}}}
}

// A threshold is met at its millionth of a dollar, also of a budget that a hundred does not divide.
func TestBudgetThresholdsAreExact(t *testing.T) {
	t.Parallel()
	spent := &keys{}
	b := setup(t, func(config *alerts.Config) {
		config.Store.Keys, config.Store.Budgets, config.Store.Spend = spent, spent.Budgets, spent.Spend
	})
	b.webhook(t, "https://example.com", tenants.AlertBudget)
	var want []string
	spent.spent = map[string][2]int64{}
	for _, c := range []struct {
		budget, spent int64
		percent       int // 0 if below all
	}{
		{150, 74, 0}, {150, 75, 50}, {150, 119, 50}, {150, 120, 80}, {150, 149, 80}, {150, 150, 100}, {150, 151, 100},
		{199, 98, 0}, {199, 99, 50}, {199, 198, 80}, {199, 199, 100}, {1, 1, 100}, {9e18, 4_499_999_999_999_999_999, 0}, {9e18, 45e17, 50},
	} {
		name := fmt.Sprintf("%d of %d", c.spent, c.budget)
		spent.list = append(spent.list, budgeted(name+" today", c.budget, 0), budgeted(name+" this month", 0, c.budget))
		spent.spent[name+" today"], spent.spent[name+" this month"] = [2]int64{c.spent, 0}, [2]int64{0, c.spent}
		if c.percent > 0 {
			want = append(want, fmt.Sprintf("API key %s today has used %d %% of its daily budget", name, c.percent), fmt.Sprintf("API key %s this month has used %d %% of its monthly budget", name, c.percent))
		}
	}
	b.told(t, "all budgets", want...)
}

// Each of two budgets is told, whichever key stands first, beside keys without a budget, revoked ones, and keys
// whose spend cannot be read; the failure is reported.
func TestEveryBudgetIsLookedAt(t *testing.T) {
	t.Parallel()
	spent := &keys{}
	b := setup(t, func(config *alerts.Config) {
		config.Store.Keys, config.Store.Budgets, config.Store.Spend = spent, spent.Budgets, spent.Spend
	})
	b.webhook(t, "https://example.com", tenants.AlertBudget)
	revoked, at := budgeted("revoked", 10, 10), b.clock()
	revoked.RevokedAt = &at
	for day := range 2 {
		spent.spent = map[string][2]int64{"both": {100, 1000}, "month": {0, 1000}, "revoked": {10, 10}}
		spent.list = []tenants.APIKey{budgeted("without", 0, 0), revoked, budgeted("unreadable", 10, 10), budgeted("both", 100, 1000), budgeted("month", 100, 1000)}
		if day == 1 {
			slices.Reverse(spent.list)
		}
		before := len(b.titles(t))
		if err := b.Pass(tenants.OwnWork(t.Context())); !errors.Is(err, errPlanned) {
			t.Errorf("a spend that cannot be read: %v", err)
		}
		titles := b.titles(t)[before:]
		slices.Sort(titles)
		want := []string{"API key both has used 100 % of its daily budget", "API key both has used 100 % of its monthly budget", "API key month has used 100 % of its monthly budget"}
		if !slices.Equal(titles, want) {
			t.Errorf("order %d: alerts %q, want %q", day, titles, want)
		}
	}
}

// The share of failures is met exactly, of 20 requests or more.
func TestErrorRateIsExact(t *testing.T) {
	t.Parallel()
	known := &facts{}
	b := setup(t, func(config *alerts.Config) { known.Alerts, config.Store.Alerts = config.Store.Alerts, known })
	b.webhook(t, "https://example.com", tenants.AlertErrorRate)
	var want []string
	for _, c := range []struct {
		exchanges, failed int64
		percent           int
		title             string // "" if absent
	}{
		{20, 5, 25, "25 % of requests fail"}, {20, 4, 25, ""}, {19, 19, 25, ""}, {20, 20, 100, "100 % of requests fail"}, {20, 19, 100, ""},
		{399, 100, 25, "25 % of requests fail"}, {401, 100, 25, ""}, {0, 0, 1, ""}, {100, 1, 1, "1 % of requests fail"},
	} {
		known.exchanges, known.failed = 0, 0
		b.told(t, "none fails", want...)
		b.advance(25 * time.Hour)
		known.exchanges, known.failed = c.exchanges, c.failed
		b.settings(t, func(s *tenants.AlertSettings) { s.ErrorPercent = c.percent })
		if c.title != "" {
			want = append(want, c.title)
		}
		b.told(t, fmt.Sprintf("%d of %d at %d %%", c.failed, c.exchanges, c.percent), want...)
	}
}

// A workspace that cannot be looked at keeps no other from its alerts, and is reported.
func TestWorkspaceThatFailsStopsNoOther(t *testing.T) {
	t.Parallel()
	known := &facts{exchanges: 20, failed: 20}
	b := setup(t, func(config *alerts.Config) { known.Alerts, config.Store.Alerts = config.Store.Alerts, known })
	first := b.owner
	b.webhook(t, "https://example.com", tenants.AlertErrorRate)
	user, workspace, err := b.Accounts.SignUp(t.Context(), "eve@example.com", "", "southbeam")
	if err != nil {
		t.Fatal(err)
	}
	second := tenants.Principal{User: user, Workspace: workspace, Role: tenants.Owner}
	b.owner = second
	b.webhook(t, "https://example.com", tenants.AlertErrorRate)
	for _, pair := range [][2]tenants.Principal{{first, second}, {second, first}} {
		failing, other := pair[0], pair[1]
		b.advance(25 * time.Hour)
		known.unknown = failing.Workspace.ID
		b.owner = other
		before := len(b.titles(t))
		if err := b.Pass(tenants.OwnWork(t.Context())); !errors.Is(err, errPlanned) || !strings.Contains(err.Error(), failing.Workspace.ID.String()) {
			t.Errorf("%v does not name %s", err, failing.Workspace.ID)
		}
		if titles := b.titles(t)[before:]; !slices.Equal(titles, []string{"100 % of requests fail"}) {
			t.Errorf("the other workspace is alerted to %q", titles)
		}
	}
}

// Of two channels only that of an operator hears of the installation, whichever is older.
func TestInstallationIsToldToOperatorsChannelsOnly(t *testing.T) {
	t.Parallel()
	for _, operatorFirst := range []bool{true, false} {
		b := setup(t)
		b.health = []tenants.Check{{Name: "Bucket", Text: "does not answer"}, {Name: "Redis", OK: true}, {Name: "Mail", Text: "is late"}}
		channels := make([]tenants.AlertChannel, 2)
		for i := range channels {
			b.advance(time.Second)
			channels[i], _ = b.webhook(t, "https://example.com", tenants.AlertInstallation)
		}
		operators, others := channels[0], channels[1]
		if !operatorFirst {
			operators, others = others, operators
		}
		if _, err := b.database.Owner(t).Exec(t.Context(), "UPDATE alert_channels SET set_by = $1 WHERE id = $2", uuid.New(), others.ID); err != nil {
			t.Fatal(err)
		}
		b.pass(t)
		deliveries := b.deliveries(t)
		if len(deliveries) != 2 || deliveries[0].Channel != operators.ID || deliveries[1].Channel != operators.ID {
			t.Errorf("the operator's channel is first %t: %+v", operatorFirst, deliveries)
		}
	}
}
