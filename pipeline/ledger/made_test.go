package ledger_test

import (
	"testing"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/ledger"
)

func TestRejectionHasTheWordsOfThePerson(t *testing.T) {
	t.Parallel()
	const start = "The user doesn't want to proceed with this tool use. The tool use was rejected."
	for _, test := range []struct {
		text     string
		isError  bool
		said     string
		rejected bool
	}{
		{start + " To tell you how to proceed, the user said:\nuse a map\n", true, "use a map", true},
		{start + " STOP what you are doing and wait for the user to tell you how to proceed.", true, "", true},
		{start + " To tell you how to proceed, the user said:\nuse a map", false, "", false},
		{"Exit code 1", true, "", false},
	} {
		said, rejected := ledger.Rejection(&conversation.Block{Kind: conversation.ToolResult, Text: test.text, IsError: test.isError})
		if said != test.said || rejected != test.rejected {
			t.Errorf("%q: %q, %v", test.text, said, rejected)
		}
	}
}

// A memo saves work and changes nothing.
func TestLedgersWithOneMemoAreEqual(t *testing.T) {
	t.Parallel()
	messages := []conversation.Message{
		{Role: conversation.User, Blocks: []conversation.Block{{Kind: conversation.Text, Text: "Always use tabs. We'll use Go because it is fast."}}},
		{Role: conversation.Assistant, Blocks: []conversation.Block{{Kind: conversation.Text, Text: "I tried a lock, but that didn't work because it blocks. We'll use a channel because it is simpler."}}},
	}
	memo := ledger.NewMemo()
	count := func(text string) int { return len(text) / 4 }
	want := ledger.New()
	want.Add(0, 0, messages)
	for range 2 {
		got := ledger.NewWith(memo)
		got.Add(0, 0, messages)
		if text := got.Text(1000, count); text == "" || text != want.Text(1000, count) {
			t.Errorf("%q instead of %q", text, want.Text(1000, count))
		}
	}
}
