package memorybench_test

import (
	"testing"

	"palimpsest/cmd/tools/memorybench"
	"palimpsest/pipeline/fulltest"
	"palimpsest/pipeline/modules/compactionbridge"
	"palimpsest/pipeline/sharedtest"
)

// What stands ready at the recorded compactions of real clients holds no less of what comes next
// than the clients' own summaries.
func TestRecordedCompactionsCanBeAnswered(t *testing.T) {
	t.Parallel()
	fulltest.Only(t, "it composes an answer to every recorded compaction; pipeline/modules/compactionbridge tests single ones")
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

// D4: a plan that a person approved comes back after a compaction, each step by its first sentence
// at least.
func TestApprovedPlansComeBackAfterRecordedCompactions(t *testing.T) {
	t.Parallel()
	fulltest.Only(t, "it bridges every recorded compaction; pipeline/modules/compactionbridge tests single ones")
	compactions, _, err := memorybench.LoadCompactions(sharedtest.Path(t, "data"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := memorybench.Carry(t.Context(), newCounter(t), compactions, compactionbridge.DefaultConfig().MaxTokens)
	if err != nil {
		t.Fatal(err)
	}
	if got.Plans < 8 || got.Steps != got.Plans {
		t.Errorf("of %d approved plans %d come back", got.Plans, got.Steps)
	}
}
