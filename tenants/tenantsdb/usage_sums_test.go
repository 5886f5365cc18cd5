package tenantsdb_test

import (
	"testing"
	"time"

	"palimpsest/tenants"
)

// Each sum of usage is of its own column, and two models of one batch are kept apart. A value of the
// second model is 1000 times that of the first.
func TestEverySumIsOfItsOwnColumn(t *testing.T) {
	t.Parallel()
	b := setup(t)
	want := map[string]tenants.Usage{}
	var batch []tenants.Exchange
	for model, factor := range map[string]int{"claude-small": 1, "claude-large": 1000} {
		exchange, times := b.exchange(day()), int64(factor)
		exchange.Request.Model, exchange.Prompt.TokensBefore, exchange.Prompt.TokensAfter = model, 2*factor, 3*factor
		exchange.Tokens = tenants.ExchangeTokens{Input: 5 * factor, CacheRead: 7 * factor, CacheWrite: 11 * factor, Output: 13 * factor}
		exchange.Cost = tenants.ExchangeCost{CostMicroUSD: 17 * times, NetMicroUSD: -19 * times, UnreadMicroUSD: 23 * times, RewrittenMicroUSD: 29 * times}
		own := b.exchange(day())
		own.Request.Model, own.Request.Class, own.Prompt.TokensBefore, own.Prompt.TokensAfter = model, "summary", 0, 0
		own.Tokens, own.Cost = tenants.ExchangeTokens{}, tenants.ExchangeCost{CostMicroUSD: 31 * times}
		batch = append(batch, exchange, own)
		want[model] = tenants.Usage{
			UsageTokens: tenants.UsageTokens{TokensBefore: 2 * times, TokensAfter: 3 * times, Input: 5 * times, CacheRead: 7 * times, CacheWrite: 11 * times, Output: 13 * times},
			UsageCost:   tenants.UsageCost{CostMicroUSD: 48 * times, NetMicroUSD: -19 * times, UnreadMicroUSD: 23 * times, RewrittenMicroUSD: 29 * times, OwnMicroUSD: 31 * times},
		}
	}
	b.record(t, b.workspace, batch...)
	rows, err := b.Usage.Usage(tenants.OwnWork(t.Context()), b.workspace, tenants.ByModel, between(0, 24*time.Hour))
	if err != nil || len(rows) != 2 {
		t.Fatalf("%+v, %v", rows, err)
	}
	for _, row := range rows {
		if one := want[row.Label]; row.UsageTokens != one.UsageTokens || row.UsageCost != one.UsageCost {
			t.Errorf("%s: %+v and %+v, want %+v and %+v", row.Label, row.UsageTokens, row.UsageCost, one.UsageTokens, one.UsageCost)
		}
	}
	totals, err := b.Usage.Totals(tenants.OwnWork(t.Context()), b.workspace, between(0, 24*time.Hour))
	if cost := (tenants.UsageCost{CostMicroUSD: 48_048, NetMicroUSD: -19_019, UnreadMicroUSD: 23_023, RewrittenMicroUSD: 29_029, OwnMicroUSD: 31_031}); err != nil || totals.UsageCost != cost {
		t.Errorf("together %+v, %v, want %+v", totals.UsageCost, err, cost)
	}
}
