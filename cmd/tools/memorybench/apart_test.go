package memorybench_test

import (
	"testing"

	"palimpsest/cmd/tools/memorybench"
)

func TestPartsOfASetHaveEachSessionOnce(t *testing.T) {
	t.Parallel()
	set, err := memorybench.Load("testdata")
	if err != nil {
		t.Fatal(err)
	}
	set.Sessions["bccb77bb88fa1"] = nil
	set.Tools = append(set.Tools, memorybench.Ask{Session: "bccb77bb88fa1"})
	tuned, apart := set.Part(false), set.Part(true)
	if len(tuned.Sessions)+len(apart.Sessions) != len(set.Sessions) || len(tuned.Tools)+len(apart.Tools) != len(set.Tools) {
		t.Errorf("%d and %d of %d sessions, %d and %d of %d questions", len(tuned.Sessions), len(apart.Sessions), len(set.Sessions), len(tuned.Tools), len(apart.Tools), len(set.Tools))
	}
	if _, isThere := apart.Sessions["bccb77bb88fa1"]; !isThere || apart.Tools[len(apart.Tools)-1].Session != "bccb77bb88fa1" {
		t.Error("a session that is kept apart isn't in its part")
	}
	for _, ask := range tuned.Tools {
		if memorybench.IsApart(ask.Session) {
			t.Errorf("%s is tuned on", ask.Session)
		}
	}
	compactions := []memorybench.Compaction{{ID: "bccb77bb88fa1-1"}, {ID: "d65f53d0e8e20-1"}, {ID: "bccb77bb88fa1-2"}}
	if got := memorybench.PartOf(compactions, true); len(got) < 2 || got[0].ID != "bccb77bb88fa1-1" || len(got)+len(memorybench.PartOf(compactions, false)) != 3 {
		t.Errorf("compactions: %v", got)
	}
}
