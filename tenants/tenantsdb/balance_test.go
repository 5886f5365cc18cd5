package tenantsdb_test

import (
	"reflect"
	"testing"
	"time"

	"palimpsest/tenants"
)

// C11: what was missed, by cause, over a span of time.
func TestBalanceAddsUpOneWorkspaceInASpan(t *testing.T) {
	t.Parallel()
	b := setup(t)
	record := func(at time.Time, projection int, net int64, cause string, missed int) {
		exchange := b.exchange(at)
		exchange.Prompt.Projection, exchange.Cost.NetMicroUSD, exchange.Tokens.MissCause, exchange.Tokens.MissedTokens = projection, net, cause, missed
		b.record(t, b.workspace, exchange)
	}
	record(day(), 0, 0, "cold_start", 0)
	record(day().Add(time.Minute), 1, -5000, "prefix_change_ours", 4000)
	record(day().Add(time.Hour), 1, 700, "", 0)
	record(day().Add(2*time.Hour), 2, -900, "prefix_change_ours", 1000)
	record(day().Add(3*time.Hour), 2, 100, "ttl_expiry", 6000)
	record(day().Add(24*time.Hour), 2, 9999, "provider", 7)
	_, other := b.signUp(t, "eve@example.com")
	b.record(t, other, b.exchange(day()))

	got, err := b.Usage.Balance(tenants.OwnWork(t.Context()), b.workspace, between(0, 24*time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	want := tenants.Balance{Edited: 4, CostMicroUSD: 5 * 1234, NetMicroUSD: -5100, Misses: []tenants.Misses{
		{Cause: "ttl_expiry", Count: 1, Tokens: 6000}, {Cause: "prefix_change_ours", Count: 2, Tokens: 5000}, {Cause: "cold_start", Count: 1, Tokens: 0},
	}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("balance %+v\nwant    %+v", got, want)
	}
	if none, err := b.Usage.Balance(tenants.OwnWork(t.Context()), b.workspace, between(-time.Hour, 0)); err != nil || !reflect.DeepEqual(none, tenants.Balance{Misses: []tenants.Misses{}}) && none.Misses != nil {
		t.Errorf("before anything happened: %+v (%v)", none, err)
	}
}
