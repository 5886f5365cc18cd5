package tenantsdb_test

import (
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"palimpsest/tenants"
)

func TestSpendersAreWhoseExchangesTheyAre(t *testing.T) {
	t.Parallel()
	b := setup(t)
	key, _ := b.addKey(t, b.workspace)
	another, _ := b.addKey(t, b.workspace)
	b.disown(t, another.ID, uuid.New())
	at := time.Date(2026, 11, 10, 12, 0, 0, 0, time.UTC)
	exchange := func(key uuid.UUID, at time.Time, cost int64, tags tenants.Tags) tenants.Exchange {
		return tenants.Exchange{
			ID: uuid.Must(uuid.NewV7()), Workspace: b.workspace, At: at,
			Request: tenants.ExchangeRequest{APIKey: key, Tags: tags},
			Answer:  tenants.ExchangeAnswer{Provider: tenants.ProviderAnthropic},
			Cost:    tenants.ExchangeCost{CostMicroUSD: cost},
		}
	}
	day, month := tenants.SpendSpan(at)
	project := tenants.Tags{"project": "search", "team": "a"}
	if err := b.Exchanges.RecordExchanges(t.Context(), b.workspace, []tenants.Exchange{
		exchange(key.ID, at, 1, project), exchange(key.ID, day.Add(-time.Second), 2, nil), exchange(another.ID, day, 4, project),
		exchange(another.ID, month, 8, tenants.Tags{"project": "other"}), exchange(key.ID, month.Add(-time.Second), 16, project),
	}); err != nil {
		t.Fatal(err)
	}
	for who, want := range map[tenants.Spender][2]int64{
		{Kind: tenants.KeySpends, ID: key.ID.String()}:           {1, 3},
		{Kind: tenants.MemberSpends, ID: key.CreatedBy.String()}: {1, 3},
		{Kind: tenants.MemberSpends, ID: uuid.NewString()}:       {0, 0},
		{Kind: tenants.ProjectSpends, ID: "search"}:              {5, 5},
		{Kind: tenants.WorkspaceSpends}:                          {5, 15},
	} {
		inDay, inMonth, err := b.Data.Spend(t.Context(), b.workspace, who, day, month)
		if err != nil || inDay != want[0] || inMonth != want[1] {
			t.Errorf("%s: %d in the day, %d in the month, want %v (%v)", who.Kind, inDay, inMonth, want, err)
		}
		_, other := b.signUp(t, uuid.NewString()+"@example.com")
		if inDay, inMonth, err = b.Data.Spend(t.Context(), other, who, day, month); err != nil || inDay+inMonth != 0 {
			t.Errorf("S5: of %s another workspace sees %d and %d, %v", who.Kind, inDay, inMonth, err)
		}
	}
}

func TestModelPricesAreKeptAndNoted(t *testing.T) {
	t.Parallel()
	b := setup(t)
	key := b.addProviderKey(t, b.workspace, tenants.ProviderAnthropic)
	_, other := b.signUp(t, uuid.NewString()+"@example.com")
	theirs := b.addProviderKey(t, other, tenants.ProviderAnthropic)
	set := func(prices ...tenants.ModelPrice) error {
		return b.Data.ChangeModelPrices(t.Context(), b.workspace, func(before []tenants.ModelPrice) ([]tenants.ModelPrice, error) { return append(before, prices...), nil })
	}
	everywhere := tenants.ModelPrice{Model: "house", Input: 1.25, Output: 2}
	there := tenants.ModelPrice{Model: "house", ProviderKey: key.ID, Input: 3, Output: 4, CacheRead: 0.3, CacheWrite5m: 3.75, CacheWrite1h: 6}
	if err := errors.Join(set(there), set(everywhere)); err != nil {
		t.Fatal(err)
	}
	if got, err := b.Data.ModelPrices(t.Context(), b.workspace); err != nil || len(got) != 2 || got[0] != everywhere || got[1] != there {
		t.Errorf("prices %+v, %v", got, err)
	}
	entries, err := b.Audit.Audit(t.Context(), b.workspace, tenants.AuditFilter{Limit: 1})
	if err != nil || entries[0].Action != tenants.ModelPricesSet || entries[0].After["house input"] != "1.25" || entries[0].Before["house "+key.ID.String()+" cache_write_5m"] != "3.75" {
		t.Errorf("noted %+v, %v", entries, err)
	}
	for field, price := range map[string]tenants.ModelPrice{
		"prices[2].model":           {Input: 1},
		"prices[2].input":           {Model: "m", Output: 1},
		"prices[2].output":          {Model: "m", Input: 1, Output: math.NaN()},
		"prices[2].cache_read":      {Model: "m", Input: 1, CacheRead: 2},
		"prices[2].cache_write_1h":  {Model: "m", Input: 1, CacheWrite1h: 10_001},
		"prices[2].provider_key_id": {Model: "m", Input: 1, ProviderKey: theirs.ID},
	} {
		if invalid, _ := errors.AsType[tenants.Invalid](set(price)); invalid.Field != field {
			t.Errorf("%+v: field %q, want %s", price, invalid.Field, field)
		}
	}
	if invalid, _ := errors.AsType[tenants.Invalid](set(everywhere)); invalid.Field != "prices[2].model" {
		t.Errorf("twice: %+v", invalid)
	}
	if err := b.ProviderKeys.DeleteProviderKey(t.Context(), b.workspace, key.ID); err != nil {
		t.Fatal(err)
	}
	if got, err := b.Data.ModelPrices(t.Context(), b.workspace); err != nil || len(got) != 1 || got[0] != everywhere {
		t.Errorf("after the key is deleted: %+v, %v", got, err)
	}
	if got, err := b.Data.ModelPrices(t.Context(), other); err != nil || len(got) != 0 {
		t.Errorf("S5: another workspace has %+v, %v", got, err)
	}
}

func TestModelLimitsAreKeptAndNoted(t *testing.T) {
	t.Parallel()
	b := setup(t)
	key := b.addProviderKey(t, b.workspace, tenants.ProviderAnthropic)
	_, other := b.signUp(t, uuid.NewString()+"@example.com")
	theirs := b.addProviderKey(t, other, tenants.ProviderAnthropic)
	set := func(limits ...tenants.ModelLimit) error {
		return b.Data.ChangeModelLimits(t.Context(), b.workspace, func(before []tenants.ModelLimit) ([]tenants.ModelLimit, error) { return append(before, limits...), nil })
	}
	everywhere := tenants.ModelLimit{Model: "house", Output: 4000}
	there := tenants.ModelLimit{Model: "house", ProviderKey: key.ID, Window: 32_000, Output: 8000}
	if err := errors.Join(set(there), set(everywhere)); err != nil {
		t.Fatal(err)
	}
	if got, err := b.Data.ModelLimits(t.Context(), b.workspace); err != nil || len(got) != 2 || got[0] != everywhere || got[1] != there {
		t.Errorf("limits %+v, %v", got, err)
	}
	entries, err := b.Audit.Audit(t.Context(), b.workspace, tenants.AuditFilter{Limit: 1})
	if err != nil || entries[0].Action != tenants.ModelLimitsSet || entries[0].After["house output_tokens"] != "4000" || entries[0].Before["house "+key.ID.String()+" window_tokens"] != "32000" {
		t.Errorf("noted %+v, %v", entries, err)
	}
	for field, limit := range map[string]tenants.ModelLimit{
		"limits[2].model":           {Model: "house", ProviderKey: key.ID, Output: 1},
		"limits[2].window_tokens":   {Model: "m", ProviderKey: key.ID, Window: 999},
		"limits[2].output_tokens":   {Model: "m", ProviderKey: key.ID, Window: 1000, Output: 1001},
		"limits[2].provider_key_id": {Model: "m", Window: 1000},
	} {
		if invalid, _ := errors.AsType[tenants.Invalid](set(limit)); invalid.Field != field {
			t.Errorf("%+v: field %q, want %s", limit, invalid.Field, field)
		}
	}
	for _, limit := range []tenants.ModelLimit{{Model: "m"}, {Output: 1}, {Model: "m", Output: -1}, {Model: "m", ProviderKey: theirs.ID, Output: 1}} {
		if invalid, _ := errors.AsType[tenants.Invalid](set(limit)); invalid.Field == "" {
			t.Errorf("%+v is taken", limit)
		}
	}
	if err := b.ProviderKeys.DeleteProviderKey(t.Context(), b.workspace, key.ID); err != nil {
		t.Fatal(err)
	}
	if got, err := b.Data.ModelLimits(t.Context(), b.workspace); err != nil || len(got) != 1 || got[0] != everywhere {
		t.Errorf("after the key is deleted: %+v, %v", got, err)
	}
	if got, err := b.Data.ModelLimits(t.Context(), other); err != nil || len(got) != 0 {
		t.Errorf("S5: another workspace has %+v, %v", got, err)
	}
}

func TestBudgetsAreKeptAndNoted(t *testing.T) {
	t.Parallel()
	b := setup(t)
	of := func(kind tenants.SpenderKind, id string) tenants.Budget {
		return tenants.Budget{Spender: tenants.Spender{Kind: kind, ID: id}, Quota: tenants.Quota{MonthMicroUSD: 2}}
	}
	want := []tenants.Budget{ // in the order in which they are listed, whatever their ids are
		of(tenants.WorkspaceSpends, ""), of(tenants.ProjectSpends, "search"), of(tenants.ProjectSpends, "zoo"),
		of(tenants.MemberSpends, "00000000-0000-4000-8000-000000000000"), of(tenants.EndUserSpends, ""),
	}
	for _, order := range [][]int{{4, 3, 2, 1, 0}, {2, 0, 4, 1, 3}} {
		var mixed []tenants.Budget
		for _, i := range order {
			mixed = append(mixed, want[i])
		}
		if err := b.Data.SetBudgets(t.Context(), b.workspace, mixed); err != nil {
			t.Fatal(err)
		}
		if got, err := b.Data.Budgets(t.Context(), b.workspace); err != nil || !slices.Equal(got, want) {
			t.Errorf("set as %v: budgets %+v, %v", order, got, err)
		}
	}
	entries, err := b.Audit.Audit(t.Context(), b.workspace, tenants.AuditFilter{Limit: 1})
	if err != nil || entries[0].Action != tenants.BudgetsSet || entries[0].After["project search budget_month_usd"] != "0.000002" {
		t.Errorf("noted %+v, %v", entries, err)
	}
	if _, err := b.Data.Budgets(t.Context(), tenants.NewWorkspaceID()); !errors.Is(err, tenants.ErrNotFound) {
		t.Errorf("of no workspace: %v", err)
	}
	invalid, _ := errors.AsType[tenants.Invalid](b.Data.SetBudgets(t.Context(), b.workspace, []tenants.Budget{{}}))
	if invalid.Field != "budgets[0].kind" {
		t.Errorf("of nobody: %+v", invalid)
	}
}
