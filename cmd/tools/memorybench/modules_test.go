package memorybench_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"palimpsest/cmd/tools/memorybench"
	"palimpsest/pipeline/tokens"
)

func newCounter(t testing.TB) *tokens.Counter {
	t.Helper()
	counter, err := tokens.NewCounter()
	if err != nil {
		t.Fatal(err)
	}
	return counter
}

// reached checks that figures are as they are to be.
func reached(t *testing.T, figures []memorybench.Figure) {
	t.Helper()
	t.Log("\n" + memorybench.Figures(figures))
	for i := range figures {
		if figure := &figures[i]; !figure.Reached() {
			t.Errorf("%s: %d of %d: %s", figure.Name, figure.Met, figure.Cases, strings.Join(figure.Others, "\n"))
		}
	}
}

// What is asked about the invented sessions comes back into prompts that do not show
// it any more.
func TestMessagesReferredToComeBack(t *testing.T) {
	t.Parallel()
	set, err := memorybench.Load("testdata")
	if err != nil {
		t.Fatal(err)
	}
	bench := memorybench.NewRehydration(newCounter(t))
	figures, err := bench.Questions(t.Context(), set, 1)
	if err != nil {
		t.Fatal(err)
	}
	back, err := bench.References(t.Context(), set)
	if err != nil {
		t.Fatal(err)
	}
	reached(t, append(figures, back))
}

// E8: of a small invented set, continuations are bridged and nothing else, and
// ordinary requests bring nothing back.
func TestInventedContinuationsAreBridgedAndNothingElse(t *testing.T) {
	t.Parallel()
	requests, err := memorybench.LoadLabeled("testdata/labeled.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	counter := newCounter(t)
	detected, err := memorybench.Detection(t.Context(), counter, requests)
	if err != nil {
		t.Fatal(err)
	}
	if len(detected) < 5 {
		t.Errorf("%d kinds of requests", len(detected))
	}
	ordinary, err := memorybench.NewRehydration(counter).Ordinary(t.Context(), requests)
	if err != nil {
		t.Fatal(err)
	}
	if ordinary[1].Met > 0 {
		t.Errorf("compressed: %q", ordinary[1].Others)
	}
	reached(t, append(detected, ordinary...))
}

// Both modules fire where they are to and nowhere else; how long that takes is for
// the bench to say.
func TestLatencyIsMeasuredWhereAModuleFires(t *testing.T) {
	t.Parallel()
	rows, err := memorybench.Latencies(t.Context(), newCounter(t), 1)
	if err != nil {
		t.Fatal(err)
	}
	table := memorybench.LatencyTable(rows)
	if len(rows) != 4 || strings.Count(table, "| 25 |") != 2 {
		t.Error(table)
	}
	for _, row := range rows {
		if row.P50 <= 0 || row.P99 < row.P50 || row.Bytes < 700_000 || row.Bytes > 900_000 {
			t.Errorf("%+v", row)
		}
	}
}

func TestAFigureIsHeldAgainstItsTarget(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		figure memorybench.Figure
		want   bool
	}{
		{memorybench.Figure{Cases: 10, Met: 9, Least: 0.9}, true},
		{memorybench.Figure{Cases: 10, Met: 8, Least: 0.9}, false},
		{memorybench.Figure{Cases: 10, Never: true}, true},
		{memorybench.Figure{Cases: 10, Met: 1, Never: true}, false},
		{memorybench.Figure{Never: true}, false}, // nothing was measured
	} {
		if c.figure.Reached() != c.want {
			t.Errorf("%+v: reached is %v", c.figure, !c.want)
		}
	}
	got := memorybench.Figures([]memorybench.Figure{{Name: "a", Cases: 4, Met: 3, Least: 0.9}, {Name: "b", Cases: 2, Never: true}})
	if !strings.Contains(got, "| a | 4 | 3 | **75.0 %** | 90 % |\n| b | 2 | 0 | **0.0 %** | 0 |\n") {
		t.Error(got)
	}
}

func TestRereadsAreShownBesideTheirTarget(t *testing.T) {
	t.Parallel()
	got := memorybench.Rereads([]memorybench.Carried{{MaxTokens: 6000, Compactions: 2, Rereads: 10, Files: 7, Half: 3, Tokens: 8000}})
	if !strings.Contains(got, "| 6000 | 2 | 10 | **7 (70.0 %)** | 60 % | 3 (30.0 %) | 4000 |") {
		t.Error(got)
	}
}

func TestRecordedSetsThatAreNotThereAreSaidToBeMissing(t *testing.T) {
	t.Parallel()
	if _, _, err := memorybench.LoadCompactions(t.TempDir()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v, want ErrNotExist", err)
	}
	if _, err := memorybench.LoadLabeled("testdata/none.jsonl"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v, want ErrNotExist", err)
	}
}
