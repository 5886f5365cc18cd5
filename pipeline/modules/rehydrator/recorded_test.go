package rehydrator_test

import (
	"strings"
	"testing"

	"palimpsest/cmd/tools/memorybench"
	"palimpsest/pipeline/sharedtest"
)

// recorded returns the recorded questions.
func recorded(t testing.TB) *memorybench.Recorded {
	t.Helper()
	set, err := memorybench.Load(sharedtest.Path(t, "data", "recall"))
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// reached checks that figures are as they are to be.
func reached(t *testing.T, figures ...memorybench.Figure) {
	t.Helper()
	t.Log("\n" + memorybench.Figures(figures))
	for i := range figures {
		if figure := &figures[i]; !figure.Reached() {
			t.Errorf("%s: %d of %d: %s", figure.Name, figure.Met, figure.Cases, strings.Join(figure.Others, "\n"))
		}
	}
}

// Explicit references to what a tool printed bring it back, and the answer with it.
// Every third: all of them take three times as long, make bench-memory asks them.
func TestRecordedQuestionsBringTheirAnswersBack(t *testing.T) {
	t.Parallel()
	figures, err := memorybench.NewRehydration(newCounter(t)).Questions(t.Context(), recorded(t), 3)
	if err != nil {
		t.Fatal(err)
	}
	reached(t, figures...)
}

// Requests in the middle of a session that refer to nothing bring nothing back, be
// all of the session compressed but its newest turn.
func TestRecordedOrdinaryRequestsBringNothingBack(t *testing.T) {
	t.Parallel()
	requests, err := memorybench.LoadLabeled(sharedtest.Path(t, "data", "bridge", "dev.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	figures, err := memorybench.NewRehydration(newCounter(t)).Ordinary(t.Context(), requests)
	if err != nil {
		t.Fatal(err)
	}
	reached(t, figures...)
	if forced := &figures[1]; forced.Met > 2 { // two name what only the compressed turns have
		t.Errorf("%d of the compressed fired: %s", forced.Met, strings.Join(forced.Others, "\n"))
	}
}

// Names that only compressed turns hold bring back turns that have them.
func TestRecordedReferencesBringTheirTurnsBack(t *testing.T) {
	t.Parallel()
	figure, err := memorybench.NewRehydration(newCounter(t)).References(t.Context(), recorded(t))
	if err != nil {
		t.Fatal(err)
	}
	reached(t, figure)
}

// Of what people typed in mid-session and what refers to nothing, 3 % at most brings something
// back, be all but the newest messages compressed.
func TestRecordedTypedMessagesBringNextToNothingBack(t *testing.T) {
	t.Parallel()
	figure, err := memorybench.NewRehydration(newCounter(t)).Typed(t.Context(), recorded(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d of %d: %s", figure.Met, figure.Cases, strings.Join(figure.Others, "\n"))
	if figure.Cases == 0 || 100*figure.Met > 3*figure.Cases {
		t.Errorf("%d of %d bring something back", figure.Met, figure.Cases)
	}
}
