package tenantsdb_test

import (
	"context"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"
	"pgregory.net/rapid"

	"palimpsest/tenants"
)

// scan adds up exchanges one by one, by what tenants.Usage and tenants.PromptUsage say of each number.
func scan(exchanges []tenants.Exchange, filter tenants.UsageFilter) (sum tenants.Totals, overheads []time.Duration) {
	filter = filter.Aligned()
	for i := range exchanges {
		e := &exchanges[i]
		if e.At.Before(filter.From) || !e.At.Before(filter.To) ||
			filter.Client != "" && filter.Client != e.Request.Client || filter.Model != "" && filter.Model != e.Request.Model ||
			filter.APIKey != uuid.Nil && filter.APIKey != e.Request.APIKey {
			continue
		}
		count(&sum, e)
		if e.Answer.Attempts > 0 && e.Request.Class != "summary" && e.Request.Class != "embedding" {
			overheads = append(overheads, e.Times.Overhead)
		}
	}
	slices.Sort(overheads)
	return sum, overheads
}

// count adds an exchange.
func count(sum *tenants.Totals, e *tenants.Exchange) {
	own := e.Request.Class == "summary" || e.Request.Class == "embedding"
	for number, counts := range map[*int64]bool{
		&sum.Exchanges: !own, &sum.Failures: !own && e.Answer.Status >= 400 && e.Answer.Status != 499, &sum.Prompts.Edited: e.Prompt.Projection > 0,
		&sum.Epochs:              e.Prompt.Compression == "epoch" || e.Prompt.Compression == "emergency" || e.Prompt.Compression == "truncated",
		&sum.Prompts.EpochsL1:    e.Prompt.Compression == "epoch" && e.Prompt.Levels[2]+e.Prompt.Levels[3] == 0,
		&sum.Prompts.EpochsL2:    e.Prompt.Compression == "epoch" && e.Prompt.Levels[2] > 0 && e.Prompt.Levels[3] == 0,
		&sum.Prompts.EpochsL3:    e.Prompt.Compression == "epoch" && e.Prompt.Levels[3] > 0,
		&sum.Prompts.Emergencies: e.Prompt.Compression == "emergency", &sum.Prompts.Truncations: e.Prompt.Compression == "truncated",
		&sum.Prompts.Unreachable: e.Prompt.Compression == "unreachable", &sum.Prompts.Compactions: e.Request.Class == "compaction", &sum.Prompts.Bridged: e.Prompt.Bridged, &sum.Reach: e.Prompt.Reach,
	} {
		if counts {
			*number++
		}
	}
	for number, amount := range map[*int64]int{
		&sum.TokensBefore: e.Prompt.TokensBefore, &sum.TokensAfter: e.Prompt.TokensAfter, &sum.Input: e.Tokens.Input, &sum.CacheRead: e.Tokens.CacheRead,
		&sum.CacheWrite: e.Tokens.CacheWrite, &sum.Output: e.Tokens.Output, &sum.Prompts.Level0: e.Prompt.Levels[0], &sum.Prompts.Level1: e.Prompt.Levels[1],
		&sum.Prompts.Level2: e.Prompt.Levels[2], &sum.Prompts.Level3: e.Prompt.Levels[3],
	} {
		*number += int64(amount)
	}
	if e.Prompt.Reach {
		sum.ReachBefore += int64(e.Prompt.TokensBefore)
		sum.ReachAfter += int64(e.Prompt.TokensAfter)
	}
	sum.CostMicroUSD += e.Cost.CostMicroUSD
	sum.NetMicroUSD += e.Cost.NetMicroUSD
	sum.UnreadMicroUSD += e.Cost.UnreadMicroUSD
	sum.RewrittenMicroUSD += e.Cost.RewrittenMicroUSD
	if own {
		sum.OwnMicroUSD += e.Cost.CostMicroUSD
	}
}

// nearestRank returns the value that a part of sorted ones do not exceed.
func nearestRank(sorted []time.Duration, part float64) time.Duration {
	return sorted[max(0, int(math.Ceil(part*float64(len(sorted))))-1)]
}

// drawExchange draws an exchange of the first three days.
func drawExchange(t *rapid.T, keys []uuid.UUID) tenants.Exchange {
	text := func(name string, of ...string) string { return rapid.SampledFrom(of).Draw(t, name) }
	number := func(name string, most int) int { return rapid.IntRange(0, most).Draw(t, name) }
	return tenants.Exchange{
		ID: uuid.Must(uuid.NewV7()), At: day().Add(time.Duration(number("minute", 3*24*60)) * time.Minute),
		Request: tenants.ExchangeRequest{
			APIKey: rapid.SampledFrom(keys).Draw(t, "key"), Endpoint: "/v1/messages",
			Client: text("client", "codex", "claude-code", ""), Model: text("model", "opus", "haiku"),
			Class: text("class", "main", "compaction", "summary", "embedding"),
		},
		Answer: tenants.ExchangeAnswer{
			Provider: tenants.ProviderAnthropic, Status: rapid.SampledFrom([]int{200, 400, 499, 529}).Draw(t, "status"),
			Attempts: number("attempts", 1),
		},
		Prompt: tenants.ExchangePrompt{
			Compression: text("compression", "none", "frozen", "epoch", "emergency", "truncated", "unreachable"),
			Levels:      [4]int{number("l0", 9), number("l1", 2), number("l2", 1), number("l3", 1)},
			Projection:  number("projection", 1), Bridged: rapid.Bool().Draw(t, "bridged"),
			Reach: rapid.Bool().Draw(t, "reach"), TokensBefore: number("before", 2e6), TokensAfter: number("after", 2e6),
		},
		Tokens: tenants.ExchangeTokens{
			Input: number("input", 1e5), CacheRead: number("read", 1e6), CacheWrite: number("write", 1e5),
			Output:       number("output", 1e4),
			MissCause:    text("cause", "", "ttl_expiry", "prefix_change_ours", "prefix_change_client", "cold_start", "provider"),
			MissedTokens: number("missed", 1e5),
		},
		Cost: tenants.ExchangeCost{
			CostMicroUSD: int64(number("cost", 1e7)), NetMicroUSD: int64(number("net", 1e7)) - 5e6,
			UnreadMicroUSD: int64(number("unread", 1e6)), RewrittenMicroUSD: int64(number("rewritten", 1e6)),
		},
		Times: tenants.ExchangeTimes{
			Overhead: time.Duration(math.Pow(10, rapid.Float64Range(0, 8).Draw(t, "overhead"))) * time.Microsecond,
		},
	}
}

// Whatever was recorded, in whatever batches and order, each number of a range is the
// sum over its exchanges, in all, in steps and in parts.
func TestRollupsAreWhatAScanAddsUp(t *testing.T) {
	t.Parallel()
	b := setup(t)
	rapid.Check(t, func(r *rapid.T) {
		_, workspace := b.signUp(t, uuid.NewString()+"@example.com")
		keys := []uuid.UUID{uuid.New(), uuid.New()}
		var exchanges []tenants.Exchange
		for range rapid.IntRange(1, 4).Draw(r, "batches") {
			batch := make([]tenants.Exchange, rapid.IntRange(1, 12).Draw(r, "size"))
			for i := range batch {
				batch[i] = drawExchange(r, keys)
			}
			exchanges = append(exchanges, batch...)
			b.record(t, workspace, batch...)
			b.record(t, workspace, batch[:1]...) // written again, it counts once
			if rapid.Bool().Draw(r, "fold") {
				b.fold(t)
			}
		}
		minute := func(name string, from, to int) time.Time {
			return day().Add(time.Duration(rapid.IntRange(from, to).Draw(r, name)) * time.Minute)
		}
		filter := tenants.UsageFilter{From: minute("from", -300, 2000), To: minute("to", 2000, 4500)}
		if rapid.Bool().Draw(r, "part") {
			filter.Client = rapid.SampledFrom([]string{"codex", ""}).Draw(r, "of client")
			filter.Model = rapid.SampledFrom([]string{"opus", ""}).Draw(r, "of model")
			filter.APIKey = rapid.SampledFrom([]uuid.UUID{keys[0], uuid.Nil}).Draw(r, "of key")
		}
		b.compare(t, workspace, filter, exchanges)
	})
}

// fold folds what has been recorded so far.
func (b bundle) fold(t *testing.T) {
	t.Helper()
	if err := b.Usage.FoldSums(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// Recorders of one workspace append: none waits for another one that has not committed, though
// both count in the sums of the same day.
func TestBatchesOfAWorkspaceDoNotWaitForEachOther(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	exchanges := recorded(3, day())
	b.record(t, b.workspace, exchanges[0])
	err := b.Together(ctx, b.workspace, func(inside tenants.Tenant) error {
		if err := b.Exchanges.RecordExchanges(ctx, inside, exchanges[1:2]); err != nil {
			return err
		}
		if _, err := b.Exchanges.RecordedExchanges(ctx, inside, []uuid.UUID{exchanges[1].ID}); err != nil { // so the batch is sent
			return err
		}
		return b.Exchanges.RecordExchanges(ctx, b.workspace, exchanges[2:])
	})
	if err != nil {
		t.Fatal(err)
	}
	totals, err := b.Usage.Totals(tenants.OwnWork(t.Context()), b.workspace, tenants.UsageFilter{From: day(), To: day().Add(24 * time.Hour)})
	if err != nil || totals.Exchanges != 3 {
		t.Errorf("%d exchanges are counted, want 3 (%v)", totals.Exchanges, err)
	}
}

// S28: folding again, or by two processes at once, adds nothing twice and leaves nothing behind.
func TestFoldedSumsCountOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	exchanges := recorded(20, day())
	b.record(t, b.workspace, exchanges[:10]...)
	var both sync.WaitGroup
	for range 4 {
		both.Go(func() {
			if err := b.Usage.FoldSums(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	b.record(t, b.workspace, exchanges[10:]...)
	both.Wait()
	b.fold(t)
	b.compare(t, b.workspace, tenants.UsageFilter{From: day(), To: day().Add(24 * time.Hour)}, exchanges)
	var left int64
	err := b.database.Owner(t).QueryRow(t.Context(), "SELECT (SELECT count(*) FROM rollup_deltas) + (SELECT count(*) FROM usage_meter_deltas)").Scan(&left)
	if err != nil || left != 0 {
		t.Errorf("%d rows wait after the fold (%v)", left, err)
	}
	var counted int64
	err = b.database.Owner(t).QueryRow(t.Context(), "SELECT sum(exchanges) FROM usage_meter").Scan(&counted)
	if err != nil || counted != 20 {
		t.Errorf("the meter counts %d, want 20 (%v)", counted, err)
	}
}

// compare holds everything that is read of a workspace against its exchanges.
func (b bundle) compare(t *testing.T, workspace tenants.WorkspaceID, filter tenants.UsageFilter, exchanges []tenants.Exchange) {
	t.Helper()
	want, overheads := scan(exchanges, filter)
	totals, err := b.Usage.Totals(tenants.OwnWork(t.Context()), workspace, filter)
	if err != nil || totals.Usage != want.Usage || totals.Prompts != want.Prompts {
		t.Fatalf("totals of %+v: %v\n%+v\nwant\n%+v", filter, err, totals, want)
	}
	if totals.Overhead.Measured != int64(len(overheads)) {
		t.Fatalf("%d measured, want %d", totals.Overhead.Measured, len(overheads))
	}
	for part, got := range map[float64]time.Duration{0.5: totals.Overhead.P50, 0.99: totals.Overhead.P99} {
		if len(overheads) == 0 {
			continue
		}
		if exact := nearestRank(overheads, part); exact < 32*time.Microsecond && got != 16*time.Microsecond || exact >= 32*time.Microsecond && !isNear(got, exact) {
			t.Fatalf("p%.0f %s, exactly %s", 100*part, got, exact)
		}
	}
	for _, step := range []time.Duration{90 * time.Minute, 6 * time.Hour, 24 * time.Hour} {
		points, err := b.Usage.Series(tenants.OwnWork(t.Context()), workspace, filter, step)
		if err != nil {
			t.Fatal(err)
		}
		for _, point := range points {
			of := filter.Aligned()
			of.From, of.To = point.From, earlier(of.To, point.From.Add(step))
			if want, _ := scan(exchanges, of); point.Usage != want.Usage || point.Prompts != want.Prompts {
				t.Fatalf("step of %s at %s: %+v\nwant %+v", step, point.From, point.Totals, want)
			}
		}
	}
	for _, by := range []tenants.Dimension{tenants.ByDay, tenants.ByClient, tenants.ByModel, tenants.ByKey} {
		rows, err := b.Usage.Usage(tenants.OwnWork(t.Context()), workspace, by, filter)
		if err != nil {
			t.Fatal(err)
		}
		var exchanged, net int64
		for _, row := range rows {
			exchanged, net = exchanged+row.Exchanges, net+row.NetMicroUSD
		}
		if exchanged != want.Exchanges || net != want.NetMicroUSD {
			t.Fatalf("by %s there are %d exchanges and %d net, want %d and %d", by, exchanged, net, want.Exchanges, want.NetMicroUSD)
		}
	}
	b.compareMisses(t, workspace, filter, exchanges)
}

func (b bundle) compareMisses(t *testing.T, workspace tenants.WorkspaceID, filter tenants.UsageFilter, exchanges []tenants.Exchange) {
	t.Helper()
	balance, err := b.Usage.Balance(tenants.OwnWork(t.Context()), workspace, filter)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]tenants.Misses{}
	for i := range exchanges {
		if one, _ := scan(exchanges[i:i+1], filter); one != (tenants.Totals{}) && exchanges[i].Tokens.MissCause != "" {
			misses := want[exchanges[i].Tokens.MissCause]
			want[exchanges[i].Tokens.MissCause] = tenants.Misses{Cause: exchanges[i].Tokens.MissCause, Count: misses.Count + 1, Tokens: misses.Tokens + int64(exchanges[i].Tokens.MissedTokens)}
		}
	}
	if len(balance.Misses) != len(want) {
		t.Fatalf("misses %+v, want %+v", balance.Misses, want)
	}
	for _, misses := range balance.Misses {
		if misses != want[misses.Cause] {
			t.Fatalf("misses %+v, want %+v", misses, want[misses.Cause])
		}
	}
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func TestConcurrentWritersAddUp(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const writers, batches = 8, 12
	var group sync.WaitGroup
	for writer := range writers {
		group.Go(func() {
			for i := range batches {
				early, late := b.exchange(day().Add(time.Duration(i)*time.Hour)), b.exchange(day().Add(time.Duration(batches-i)*time.Hour))
				late.Request.Client = []string{"pi", "cursor"}[writer%2]
				if err := b.Exchanges.RecordExchanges(t.Context(), b.workspace, []tenants.Exchange{late, early}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	for _, filter := range []tenants.UsageFilter{between(0, 24*time.Hour), {From: day(), To: day().Add(24 * time.Hour), Client: "codex"}} {
		want := int64(2 * writers * batches)
		if filter.Client != "" {
			want /= 2
		}
		if totals, err := b.Usage.Totals(tenants.OwnWork(t.Context()), b.workspace, filter); err != nil || totals.Exchanges != want || totals.Overhead.Measured != want {
			t.Errorf("%+v: %d exchanges, %d measured, want %d (%v)", filter, totals.Exchanges, totals.Overhead.Measured, want, err)
		}
	}
}

// What was added up stays true: figures of an exchange cannot be changed, and when what
// was said in it is deleted they stay, the audit of money with them.
func TestFiguresOfAnExchangeAreThereToStay(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.record(t, b.workspace, b.exchange(day()))
	before, err := b.Usage.Totals(tenants.OwnWork(t.Context()), b.workspace, between(0, time.Hour))
	if err != nil || before.Exchanges != 1 {
		t.Fatal(before, err)
	}
	for _, change := range []string{"net_microusd = 0", "tokens_after = 1", "at = now()", "client = 'pi'", "status = 500", "overhead_us = 1"} {
		err := b.InTenant(t.Context(), b.workspace, func(tx *gorm.DB) error {
			return tx.Exec("UPDATE exchanges SET "+change+" WHERE workspace_id = ?", b.workspace).Error
		})
		if !isRefused(err) {
			t.Errorf("an exchange takes %s: %v", change, err)
		}
	}
	err = b.InTenant(t.Context(), b.workspace, func(tx *gorm.DB) error {
		return tx.Exec("UPDATE exchanges SET answer = NULL, report = NULL, session_id = NULL, lane_id = NULL WHERE workspace_id = ?", b.workspace).Error
	})
	if err != nil {
		t.Fatal(err)
	}
	err = b.InTenant(t.Context(), b.workspace, func(tx *gorm.DB) error {
		return tx.Exec("DELETE FROM rollups WHERE workspace_id = ?", b.workspace).Error
	})
	if !isRefused(err) {
		t.Errorf("figures may be deleted: %v", err)
	}
	if after, err := b.Usage.Totals(tenants.OwnWork(t.Context()), b.workspace, between(0, time.Hour)); err != nil || after != before {
		t.Errorf("after a deletion %+v, before %+v (%v)", after, before, err)
	}
}

// A model's name is the client's: it may be long, and still counts.
func TestLongNamesAreCountedByHowTheyBegin(t *testing.T) {
	t.Parallel()
	b := setup(t)
	long := b.exchange(day())
	long.Request.Model, long.Request.Client = string(slices.Repeat([]byte("m"), 9000)), string(slices.Repeat([]byte("c"), 9000))
	b.record(t, b.workspace, long)
	filter := between(0, time.Hour)
	filter.Model, filter.Client = long.Request.Model, long.Request.Client
	if totals, err := b.Usage.Totals(tenants.OwnWork(t.Context()), b.workspace, filter); err != nil || totals.Exchanges != 1 {
		t.Errorf("%+v (%v)", totals, err)
	}
	if rows, err := b.Usage.Usage(tenants.OwnWork(t.Context()), b.workspace, tenants.ByModel, filter); err != nil || len(rows) != 1 || len(rows[0].Label) != 200 {
		t.Errorf("%d rows (%v)", len(rows), err)
	}
}
