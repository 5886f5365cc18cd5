package tenantsdb_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"palimpsest/tenants"
)

// costsOf returns what some rows cost, by their labels.
func costsOf(t *testing.T, b bundle, by tenants.Dimension, filter tenants.UsageFilter) map[string]int64 {
	t.Helper()
	rows, err := b.Usage.Usage(tenants.OwnWork(t.Context()), b.workspace, by, filter)
	if err != nil {
		t.Fatal(err)
	}
	costs := map[string]int64{}
	for _, row := range rows {
		costs[row.Label+" "+row.Name] += row.CostMicroUSD
	}
	return costs
}

func wantCosts(t *testing.T, what string, got, want map[string]int64) {
	t.Helper()
	for label, cost := range want {
		if got[label] != cost {
			t.Errorf("%s: %q cost %d, want %d", what, label, got[label], cost)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// What people and projects spent adds up to the whole, before sums are folded and after, and in a range that
// is no whole day.
func TestUsageIsSplitByPersonAndByTag(t *testing.T) {
	t.Parallel()
	b := setup(t)
	eve := b.join(t, "eve@example.com", tenants.Regular).ID
	own, _ := b.addKey(t, b.workspace)
	hers, _ := b.addKey(t, b.workspace)
	made, _ := b.addKey(t, b.workspace)
	b.disown(t, hers.ID, eve)
	b.disown(t, made.ID, hers.ID) // her key made it
	var batch []tenants.Exchange
	for i, one := range []struct {
		key  uuid.UUID
		tags tenants.Tags
		at   time.Duration
	}{
		{own.ID, tenants.Tags{"project": "shop", "team": "web"}, 0},
		{hers.ID, tenants.Tags{"project": "shop"}, 26 * time.Hour},
		{made.ID, tenants.Tags{"project": "search"}, time.Hour},
		{own.ID, nil, 2 * time.Hour},
		{uuid.New(), nil, 3 * time.Hour}, // a key that is gone
	} {
		exchange := b.exchange(day().Add(one.at))
		exchange.Request.APIKey, exchange.Request.Tags, exchange.Cost.CostMicroUSD = one.key, one.tags, int64(1)<<i
		batch = append(batch, exchange)
	}
	all := between(0, 48*time.Hour)
	check := func(when string) {
		ada := b.user.ID.String() + " ada@example.com"
		wantCosts(t, when+", by person", costsOf(t, b, tenants.ByMember, all), map[string]int64{ada: 1 + 8, eve.String() + " eve@example.com": 2 + 4, " ": 16})
		wantCosts(t, when+", by project", costsOf(t, b, tenants.ByProject, all), map[string]int64{"shop shop": 3, "search search": 4, " ": 8 + 16})
		wantCosts(t, when+", by team", costsOf(t, b, "tag:team", all), map[string]int64{"web web": 1, " ": 2 + 4 + 8 + 16})
		hers := all
		hers.Member = eve
		wantCosts(t, when+", hers by project", costsOf(t, b, tenants.ByProject, hers), map[string]int64{"shop shop": 2, "search search": 4})
		wantCosts(t, when+", hers by person", costsOf(t, b, tenants.ByMember, hers), map[string]int64{eve.String() + " eve@example.com": 6})
		wantCosts(t, when+", in the first hours", costsOf(t, b, tenants.ByProject, between(time.Hour, 3*time.Hour)), map[string]int64{"search search": 4, " ": 8})
	}
	b.record(t, b.workspace, batch[:3]...)
	if err := b.Usage.FoldSums(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.record(t, b.workspace, batch[3:]...)
	check("half folded")
	if err := b.Usage.FoldSums(t.Context()); err != nil {
		t.Fatal(err)
	}
	check("folded")
	narrowed := all
	narrowed.Client = "codex"
	for _, by := range []tenants.Dimension{"tag:Team", "tag:", "week", "tag:team"} {
		if _, err := b.Usage.Usage(tenants.OwnWork(t.Context()), b.workspace, by, narrowed); err == nil {
			t.Errorf("usage by %q of a client", by)
		}
	}
}
