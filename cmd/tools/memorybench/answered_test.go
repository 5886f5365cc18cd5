package memorybench_test

import (
	"testing"

	"palimpsest/cmd/tools/memorybench"
	"palimpsest/pipeline/sharedtest"
)

// What stands ready at the recorded compactions of real clients holds no less of what comes next
// than the clients' own summaries.
func TestRecordedCompactionsCanBeAnswered(t *testing.T) {
	t.Parallel()
	compactions, _, err := memorybench.LoadCompactions(sharedtest.Path(t, "data"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := memorybench.Answer(t.Context(), newCounter(t), compactions)
	if err != nil {
		t.Fatal(err)
	}
	t.Log(got)
	if got.Ready*2 < got.Compactions || got.Ours < got.Theirs {
		t.Errorf("too little is answered, or too little held: %s", got)
	}
}
