package memorybench_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"palimpsest/cmd/tools/memorybench"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/fulltest"
	"palimpsest/pipeline/sharedtest"
	"palimpsest/pipeline/tokens"
)

func counter(t testing.TB) func(string) int {
	t.Helper()
	count, err := tokens.NewCounter()
	if err != nil {
		t.Fatal(err)
	}
	return count.Count
}

// answers are the least shares of tool questions whose answer is injected.
const answers = 0.93

func check(t *testing.T, rows []memorybench.Row) {
	t.Helper()
	t.Log("\n" + memorybench.Markdown(rows))
	for i := range rows {
		row := &rows[i]
		if row.Asks == 0 {
			t.Errorf("%s: nothing was asked", row.Name)
		}
		if row.Share(row.At5) < row.Target {
			t.Errorf("%s: %.3f in the best five, want %.2f", row.Name, row.Share(row.At5), row.Target)
		}
		if row.Share(row.At1) < row.Best {
			t.Errorf("%s: %.3f as the best hit, want %.2f", row.Name, row.Share(row.At1), row.Best)
		}
	}
	if share := rows[0].Share(rows[0].Answered); share < answers {
		t.Errorf("the answer is in %.3f of the injected texts, want %.2f", share, answers)
	}
}

// What is asked about a small invented project is found.
func TestWhatLeftThePromptIsFoundAgain(t *testing.T) {
	t.Parallel()
	set, err := memorybench.Load("testdata")
	if err != nil {
		t.Fatal(err)
	}
	check(t, memorybench.New(set, counter(t)).Run())
}

// The targets on recorded sessions.
func TestWhatLeftThePromptOfRecordedSessionsIsFoundAgain(t *testing.T) {
	t.Parallel()
	fulltest.Only(t, "it indexes every recorded session; TestWhatLeftThePromptIsFoundAgain does so with an invented project")
	set, err := memorybench.Load(sharedtest.Path(t, "data", "recall"))
	if err != nil {
		t.Fatal(err)
	}
	check(t, memorybench.New(set, counter(t)).Run())
}

func TestRecordedLinesBecomeCallsAndTheirResults(t *testing.T) {
	t.Parallel()
	set, err := memorybench.Load("testdata")
	if err != nil {
		t.Fatal(err)
	}
	if len(set.Sessions) < 2 || len(set.Tools) < 10 || len(set.Rereads) < 5 || len(set.Refs) < 5 {
		t.Fatalf("%d sessions, %d, %d and %d questions", len(set.Sessions), len(set.Tools), len(set.Rereads), len(set.Refs))
	}
	for id, messages := range set.Sessions {
		calls := map[string]int{}
		for i := range messages {
			for _, block := range messages[i].Blocks {
				switch block.Kind {
				case conversation.ToolCall:
					calls[block.ID] = i
				case conversation.ToolResult:
					if at, known := calls[block.ID]; !known || at != i-1 {
						t.Errorf("%s: the result in message %d answers %q", id, i, block.ID)
					}
				case conversation.Text, conversation.Thinking, conversation.Media, conversation.Opaque:
				}
			}
		}
		if len(calls) == 0 {
			t.Errorf("%s has no calls", id)
		}
	}
	for _, ask := range set.Tools {
		found := false
		for _, block := range set.Sessions[ask.Session][ask.Evidence[1]].Blocks {
			found = found || block.Kind == conversation.ToolResult && strings.Contains(block.Text, ask.Answer)
		}
		if !found {
			t.Errorf("%s: message %d does not hold %q", ask.Session, ask.Evidence[1], ask.Answer)
		}
	}
}

func TestASetThatIsNotThereIsSaidToBeMissing(t *testing.T) {
	t.Parallel()
	if _, err := memorybench.Load(t.TempDir()); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("%v, want ErrNotExist", err)
	}
}
