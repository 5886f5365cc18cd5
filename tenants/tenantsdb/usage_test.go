package tenantsdb_test

import (
	"errors"
	"math"
	"testing"
	"time"

	"palimpsest/tenants"
)

// day is the first day of the exchanges of plant.
func day() time.Time { return time.Date(2026, 1, 30, 0, 0, 0, 0, time.UTC) }

// between is a range of time, from the first day of the exchanges of plant.
func between(from, to time.Duration) tenants.UsageFilter {
	return tenants.UsageFilter{From: day().Add(from), To: day().Add(to)}
}

// isNear reports whether an overhead is as exact as tenants.Overhead promises.
func isNear(got, exact time.Duration) bool {
	return math.Abs(float64(got)/float64(exact)-1) <= 0.045
}

// plant records five exchanges over two days, and one of another workspace.
func plant(t *testing.T) (bundle, tenants.APIKey) {
	t.Helper()
	b := setup(t)
	key, _ := b.addKey(t, b.workspace)
	first, failed, left, epoch, later := b.exchange(day()), b.exchange(day().Add(time.Hour)), b.exchange(day().Add(2*time.Hour)),
		b.exchange(day().Add(23*time.Hour)), b.exchange(day().Add(30*time.Hour))
	first.Request.APIKey, first.Request.Client, first.Times.Overhead = key.ID, "claude-code", time.Millisecond
	failed.Answer.Status, failed.Answer.Attempts, failed.Times.Overhead = 529, 0, time.Hour
	left.Answer.Status, left.Times.Overhead = 499, 2*time.Millisecond
	epoch.Prompt.Compression, epoch.Times.Overhead, epoch.Cost.NetMicroUSD = "epoch", 3*time.Millisecond, -1000
	later.Times.Overhead = 4 * time.Millisecond
	b.record(t, b.workspace, first, failed, left, epoch, later)
	_, other := b.signUp(t, "eve@example.com")
	b.record(t, other, b.exchange(day()))
	return b, key
}

// of is the usage of some of the exchanges of plant.
func of(exchanges, failures, epochs, net int64) tenants.Usage {
	return tenants.Usage{
		Exchanges: exchanges, Failures: failures, Epochs: epochs,
		UsageTokens: tenants.UsageTokens{
			TokensBefore: 1000 * exchanges, TokensAfter: 400 * exchanges, Input: 10 * exchanges, CacheRead: 300 * exchanges,
			CacheWrite: 90 * exchanges, Output: 55 * exchanges,
		},
		UsageCost: tenants.UsageCost{CostMicroUSD: 1234 * exchanges, NetMicroUSD: net},
	}
}

func TestTotalsAddUpOneWorkspaceInASpan(t *testing.T) {
	t.Parallel()
	b, _ := plant(t)

	totals, err := b.Usage.Totals(tenants.OwnWork(t.Context()), b.workspace, between(0, 48*time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	if want := of(5, 1, 1, 4*99-1000); totals.Usage != want {
		t.Errorf("totals %+v\nwant   %+v", totals.Usage, want)
	}
	// Of 1, 2, 3 and 4 ms; the exchange that reached no provider is left out.
	if got := totals.Overhead; got.Measured != 4 || !isNear(got.P50, 2*time.Millisecond) || !isNear(got.P99, 4*time.Millisecond) {
		t.Errorf("overhead %+v", got)
	}

	span, err := b.Usage.Totals(tenants.OwnWork(t.Context()), b.workspace, between(time.Hour, 23*time.Hour))
	if err != nil || span.Usage != of(2, 1, 0, 2*99) {
		t.Errorf("span %+v (%v): its begin belongs to it, its end does not", span.Usage, err)
	}
	empty, err := b.Usage.Totals(tenants.OwnWork(t.Context()), b.workspace, between(-48*time.Hour, 0))
	if err != nil || empty != (tenants.Totals{}) {
		t.Errorf("totals of a span without exchanges: %+v (%v)", empty, err)
	}
}

func TestSeriesHasAPointForEachStep(t *testing.T) {
	t.Parallel()
	b, _ := plant(t)
	from := day().Add(-12 * time.Hour)

	points, err := b.Usage.Series(tenants.OwnWork(t.Context()), b.workspace, between(-12*time.Hour, 36*time.Hour), 12*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	want := []tenants.Usage{{}, of(3, 1, 0, 3*99), of(1, 0, 1, -1000), of(1, 0, 0, 99)}
	if len(points) != len(want) {
		t.Fatalf("%d points, want %d", len(points), len(want))
	}
	for i, point := range points {
		if !point.From.Equal(from.Add(time.Duration(i)*12*time.Hour)) || point.Usage != want[i] {
			t.Errorf("point %d: %+v, want %+v", i, point, want[i])
		}
	}
}

func TestLastStepOfASeriesMayBeShort(t *testing.T) {
	t.Parallel()
	b, _ := plant(t)

	points, err := b.Usage.Series(tenants.OwnWork(t.Context()), b.workspace, between(0, 31*time.Hour), 7*time.Hour)
	if err != nil || len(points) != 5 || points[4].Exchanges != 1 {
		t.Fatalf("points %+v (%v)", points, err)
	}
}

func TestSeriesOfTooManyOrBrokenStepsIsRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, step := range []time.Duration{0, -time.Hour, time.Millisecond, 45 * time.Minute, 30 * time.Minute} {
		var invalid tenants.Invalid
		if _, err := b.Usage.Series(tenants.OwnWork(t.Context()), b.workspace, between(0, 1000*time.Hour), step); !errors.As(err, &invalid) {
			t.Errorf("step %s: %v, want an Invalid", step, err)
		}
	}
}

func TestUsageIsSplitByEachDimension(t *testing.T) {
	t.Parallel()
	b, key := plant(t)
	usage := func(by tenants.Dimension) []tenants.UsageRow {
		rows, err := b.Usage.Usage(tenants.OwnWork(t.Context()), b.workspace, by, between(0, 48*time.Hour))
		if err != nil {
			t.Fatalf("by %s: %v", by, err)
		}
		return rows
	}

	if rows := usage(tenants.ByDay); len(rows) != 2 || rows[0] != (tenants.UsageRow{Label: "2026-01-30", Name: "2026-01-30", Usage: of(4, 1, 1, 3*99-1000), Prompts: tenants.PromptUsage{EpochsL1: 1}}) ||
		rows[1] != (tenants.UsageRow{Label: "2026-01-31", Name: "2026-01-31", Usage: of(1, 0, 0, 99)}) {
		t.Errorf("by day: %+v", rows)
	}
	if rows := usage(tenants.ByClient); len(rows) != 2 || rows[0].Label != "codex" || rows[0].Exchanges != 4 || rows[1].Label != "claude-code" || rows[1].Exchanges != 1 {
		t.Errorf("by client: %+v", rows)
	}
	if rows := usage(tenants.ByModel); len(rows) != 1 || rows[0].Label != "claude" || rows[0].Usage != of(5, 1, 1, 4*99-1000) {
		t.Errorf("by model: %+v", rows)
	}
	named := 0
	for _, row := range usage(tenants.ByKey) {
		if row.Label == key.ID.String() && row.Name == "laptop" && row.Exchanges == 1 {
			named++
		}
	}
	if named != 1 {
		t.Errorf("by key: %+v", usage(tenants.ByKey))
	}
	var invalid tenants.Invalid
	if _, err := b.Usage.Usage(tenants.OwnWork(t.Context()), b.workspace, "status", between(0, 0)); !errors.As(err, &invalid) || invalid.Field != "by" {
		t.Errorf("unknown dimension: %v, want an Invalid", err)
	}
}
