package compactionbench_test

import (
	"fmt"
	"runtime"
	"slices"
	"testing"

	"golang.org/x/sync/errgroup"

	"palimpsest/cmd/tools/compactionbench"
	"palimpsest/pipeline"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/fulltest"
	"palimpsest/pipeline/modules/ipc"
	"palimpsest/pipeline/sharedtest"
)

func newBench(t *testing.T) *compactionbench.Bench {
	t.Helper()
	bench, err := compactionbench.New()
	if err != nil {
		t.Fatal(err)
	}
	return bench
}

// compare returns our row.
func compare(t *testing.T, bench *compactionbench.Bench, talk *compactionbench.Talk, prices compactionbench.Prices, pace compactionbench.Pace) compactionbench.Row {
	t.Helper()
	rows, err := bench.Compare(t.Context(), talk, prices, pace, compactionbench.NoCompression, compactionbench.SelfCompacting)
	if err != nil {
		t.Fatal(err)
	}
	ours := rows[len(rows)-1]
	t.Logf("%s in %d, %s: %d requests, %d epochs, %d cold, %d busts, %+.1f %% against none, %+.1f %% against a client that compacts itself, recall %+v",
		talk.Name, talk.Window, pace.Name, ours.Requests, ours.Epochs, ours.Cold, ours.Busts, ours.None, ours.Self, ours.Recall)
	checkSound(t, ours)
	return ours
}

// checkSound checks what must hold in every session.
func checkSound(t *testing.T, ours compactionbench.Row) {
	t.Helper()
	if ours.Invalid != 0 || ours.TooLong != 0 {
		t.Errorf("%s: %d bodies are refused, %d too long: %q", ours.Session, ours.Invalid, ours.TooLong, ours.Faults)
	}
	if ours.Busts != ours.Epochs {
		t.Errorf("%s: %d busts in %d epochs", ours.Session, ours.Busts, ours.Epochs)
	}
	if !ours.Intact.Whole() || !ours.Originals.Whole() || ours.Epochs > 0 && ours.Originals.Of == 0 {
		t.Errorf("%s: newest messages intact %s, originals back %s of %d", ours.Session, ours.Intact, ours.Originals, ours.Originals.Of)
	}
}

// C2, C3, C7, C10, E2 and "to reach or beat": no invalid body, as many busts as epochs,
// at most 10 epochs in 200 turns and 20 in 600, at most +10 % against a client that
// compacts itself, nothing more where its user goes away now and then.
func TestLongSessionsCostNoMoreThanTheirTargets(t *testing.T) {
	t.Parallel()
	bench := newBench(t)
	paces := []compactionbench.Pace{compactionbench.Warm(), compactionbench.WithGaps()}
	for i := range fulltest.Part(len(paces) * len(lengths())) {
		turns, pace := lengths()[i/2], paces[i%2]
		most := 10.0
		if pace.Every > 0 {
			most = 0
		}
		t.Run(fmt.Sprintf("%d turns, %s", turns, pace.Name), func(t *testing.T) {
			t.Parallel()
			talk := bench.Generated(1, conversation.Anthropic, turns)
			ours := compare(t, bench, &talk, compactionbench.Anthropic(), pace)
			if ours.Self > most {
				t.Errorf("costs %+.1f %% against a client that compacts itself, want at most %+.0f %%", ours.Self, most)
			}
			// What is rewritten once the cache has gone cold breaks nothing.
			if most := max(10, turns/30); ours.Epochs == 0 || ours.Epochs-ours.Cold > most {
				t.Errorf("%d epochs, %d on a cold cache, want 1 to %d on a warm one", ours.Epochs, ours.Cold, most)
			}
			if pace.Every == 0 && ours.Cold > 0 {
				t.Errorf("%d epochs on a cold cache that never went cold", ours.Cold)
			}
		})
	}
}

// D3, D4: after 30 epochs and at the end of the session every directive and every
// modified file is before the model.
func TestDirectivesAndModifiedFilesSurviveThirtyEpochs(t *testing.T) {
	t.Parallel()
	fulltest.Only(t, "it compacts a session more than 30 times; pipeline/modules/ipc has such a test with a shorter session")
	bench := newBench(t)
	talk := bench.ManyEpochs(1)
	ours := compare(t, bench, &talk, compactionbench.Anthropic(), compactionbench.Warm())
	if ours.Epochs < 30 || ours.Directives30.Of < 5 || ours.Modified30.Of < 10 {
		t.Fatalf("%d epochs, %d directives, %d modified files: too few to tell", ours.Epochs, ours.Directives30.Of, ours.Modified30.Of)
	}
	if !ours.Directives30.Whole() || !ours.Modified30.Whole() || !ours.Directives.Whole() || !ours.Modified.Whole() {
		t.Errorf("directives: %s after 30 epochs, %s at the end; modified files: %s, %s; lost: %q",
			ours.Directives30, ours.Directives, ours.Modified30, ours.Modified, ours.Lost)
	}
}

// D3, D4: the same with rent or buy, in a window that the session's prompts never come near.
func TestDirectivesAndModifiedFilesSurviveThirtyEpochsByBreakEven(t *testing.T) {
	t.Parallel()
	fulltest.Only(t, "it compacts a session more than 30 times; pipeline/modules/ipc has such a test with a shorter session")
	bench := newBench(t)
	pipeline.Change[ipc.Config](&bench.Pipeline).Trigger = ipc.TriggerBreakEven
	talk := bench.ManyEpochs(1)
	talk.Window = 10_000_000
	ours := compare(t, bench, &talk, compactionbench.Anthropic(), compactionbench.Warm())
	if ours.Epochs < 30 || ours.Directives30.Of < 5 || ours.Modified30.Of < 10 {
		t.Fatalf("%d epochs, %d directives, %d modified files: too few to tell", ours.Epochs, ours.Directives30.Of, ours.Modified30.Of)
	}
	if !ours.Directives30.Whole() || !ours.Modified30.Whole() || !ours.Directives.Whole() || !ours.Modified.Whole() {
		t.Errorf("directives: %s after 30 epochs, %s at the end; modified files: %s, %s; lost: %q",
			ours.Directives30, ours.Directives, ours.Modified30, ours.Modified, ours.Lost)
	}
}

// C2: providers that cache without being asked, and a cache that lives for an hour.
func TestOtherPricesAreNoWorse(t *testing.T) {
	t.Parallel()
	bench := newBench(t)
	others := []struct {
		format conversation.Format
		prices compactionbench.Prices
	}{
		{conversation.OpenAIChat, compactionbench.OpenAI()},
		{conversation.Anthropic, compactionbench.AnthropicHour()},
	}
	for i := range fulltest.Part(len(others)) {
		one := others[i]
		talk := bench.Generated(2, one.format, lengths()[1])
		ours := compare(t, bench, &talk, one.prices, compactionbench.Warm())
		if ours.None > 0 || ours.Self > 15 {
			t.Errorf("%s: %+.1f %% against none, %+.1f %% against a client that compacts itself", one.prices.Name, ours.None, ours.Self)
		}
	}
}

// A session that fits its window is left alone: the same bytes at the same price.
func TestSessionThatFitsIsLeftAlone(t *testing.T) {
	t.Parallel()
	bench := newBench(t)
	formats := []conversation.Format{conversation.Anthropic, conversation.OpenAIChat, conversation.OpenAIResponses}
	for i := range fulltest.Part(len(formats)) {
		format := formats[i]
		talk := bench.Small(1, format)
		for _, pace := range []compactionbench.Pace{compactionbench.Warm(), compactionbench.WithGaps()} {
			ours := compare(t, bench, &talk, compactionbench.Anthropic(), pace)
			if ours.Epochs != 0 || !ours.Untouched.Whole() || ours.None != 0 || ours.Untouched.Of != 40 {
				t.Errorf("%s, %s: %d epochs, %s of %d untouched, %+.2f %%", format, pace.Name, ours.Epochs, ours.Untouched, ours.Untouched.Of, ours.None)
			}
		}
	}
}

// Real sessions, where they lie beside the project, in a window that none fits.
func TestRealSessionsReachTheirEnd(t *testing.T) {
	t.Parallel()
	files := sharedtest.Files(t, "data/transcripts/cc-[as]*.anthropic.json")
	bench := newBench(t)
	for i := range fulltest.Part(min(len(files), len(lengths()))) {
		talk, err := compactionbench.Recorded(files[i], 64_000)
		if err != nil {
			t.Fatal(err)
		}
		if ours := compare(t, bench, &talk, compactionbench.Anthropic(), compactionbench.Warm()); ours.Self > 10 {
			t.Errorf("%s: %+.1f %% against a client that compacts itself", talk.Name, ours.Self)
		}
	}
}

// Rent or buy, in a window that no session comes near: nothing is refused, every standing
// order and modified file is kept, and the session costs far less than untouched, with
// the caches of all providers.
func TestRentOrBuySavesWhereTheWindowIsFar(t *testing.T) {
	t.Parallel()
	bench := newBench(t)
	pipeline.Change[ipc.Config](&bench.Pipeline).Trigger = ipc.TriggerBreakEven
	paces := []compactionbench.Pace{compactionbench.Warm(), compactionbench.WithGaps()}
	for i := range fulltest.Part(len(paces)) {
		pace := paces[i]
		talk := bench.Generated(1, conversation.Anthropic, 85)
		talk.Window = 1_000_000
		ours := compare(t, bench, &talk, compactionbench.Anthropic(), pace)
		if ours.None > -30 || ours.Epochs < 3 {
			t.Errorf("%s: %+.1f %% against none in %d epochs", pace.Name, ours.None, ours.Epochs)
		}
		if !ours.Directives.Whole() || !ours.Modified.Whole() || ours.Directives.Of == 0 || ours.Modified.Of == 0 {
			t.Errorf("%s: directives %s, modified files %s; lost: %q", pace.Name, ours.Directives, ours.Modified, ours.Lost)
		}
	}
}

// Recorded sessions, where they lie beside the project: no request fails, none costs more
// than untouched, and no more than twice the best decisions in hindsight.
func TestRentOrBuyStaysWithinTwiceTheOptimum(t *testing.T) {
	t.Parallel()
	fulltest.Only(t, "it compares every policy on the recorded sessions; TestRentOrBuyIsTwoCompetitiveAtEveryLength checks the bound")
	found, err := newBench(t).Vast(t.Context(), compactionbench.Suite{Data: sharedtest.Path(t, "data"), Quick: true})
	if err != nil {
		t.Fatal(err)
	}
	for i := range found.Rows {
		row := &found.Rows[i]
		if row.Policy == "break-even above 50k" && (row.Failures > 0 || row.None > 10 || row.Held.Of > 0 && row.Held.Kept*10 < row.Held.Of*9) {
			t.Errorf("%s, %s, %s: %d failures, %+.1f %% against none, %s held", row.Session, row.Prices, row.Pace, row.Failures, row.None, row.Held)
		}
	}
	if len(found.Hindsight) != 6 {
		t.Errorf("%d sessions and paces were compared with the optimum", len(found.Hindsight))
	}
}

// The bound of rent or buy holds wherever a recorded session ends: after no request has it
// cost more than twice what the best decisions for just that length would have.
func TestRentOrBuyIsTwoCompetitiveAtEveryLength(t *testing.T) {
	t.Parallel()
	fulltest.Turn(t, 3)
	bench := newBench(t)
	files := sharedtest.Files(t, "data/transcripts/*.anthropic.json")
	files = files[:min(len(files), 7*len(lengths()))]
	found := make([][]compactionbench.Hindsight, len(files))
	group, ctx := errgroup.WithContext(t.Context())
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i := range fulltest.Part(len(files)) {
		group.Go(func() error {
			talk, err := compactionbench.Recorded(files[i], 1_000_000)
			if err != nil {
				return err
			}
			found[i], err = bench.Hindsight(ctx, &talk,
				compactionbench.Condition{Prices: compactionbench.AnthropicHour(), Pace: compactionbench.Warm()},
				compactionbench.Condition{Prices: compactionbench.Anthropic(), Pace: compactionbench.WithGaps()})
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	sum, all := 0.0, slices.Concat(found...)
	for i := range all {
		one := &all[i]
		sum += one.Ratio()
		if one.Worst > 2 || one.Worst < 0.9 || one.RatioFree() > 2 || one.Optimum < one.Free {
			t.Errorf("%s, %s, %s: %.2f times the optimum, %.2f at the worst length, %.2f with prompts below minContext compacted too",
				one.Session, one.Prices, one.Pace, one.Ratio(), one.Worst, one.RatioFree())
		}
	}
	if mean := sum / float64(len(all)); fulltest.Everything() && mean > 1.25 {
		t.Errorf("%.2f times the optimum on the mean", mean)
	}
}
