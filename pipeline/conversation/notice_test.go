package conversation_test

import (
	"slices"
	"testing"

	"palimpsest/pipeline/conversation"
)

func notice(text string) *conversation.Message {
	return &conversation.Message{Role: conversation.System, Blocks: []conversation.Block{{Kind: conversation.Text, Text: text}}}
}

func TestNoticesOfOneKindHaveTheirFirstWordsInCommon(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, one, other string
		isSame           bool
	}{
		{"tokens left", "<system-reminder>\n<total_tokens>14970172 tokens left</total_tokens>\n</system-reminder>", "<system-reminder>\n<total_tokens>2 tokens left</total_tokens></system-reminder>", true},
		{"environment", "<system-reminder>\n# Environment\nin /a\n</system-reminder>", "<system-reminder>\n# Environment\nin /b\n</system-reminder>", true},
		{"a file that changed", "<system-reminder>\nNote: /a/b.go was modified.\n</system-reminder>", "<system-reminder>\nNote: /c.go was modified.\n</system-reminder>", true},
		{"two kinds", "<system-reminder>\n# Environment\n</system-reminder>", "<system-reminder>\nYour to-do list is empty.\n</system-reminder>", false},
		{"tags", "<system-reminder><total_tokens>1</total_tokens></system-reminder>", "<system-reminder><todo>1</todo></system-reminder>", false},
		{"free text", "From now on answer in French.", "From now on answer in verse.", false},
		{"the same free text", "Plan mode is on.", "Plan mode is on.\n", true},
		{"a reminder that is not closed", "<system-reminder>1 left", "<system-reminder>2 left", false},
	} {
		one, other := conversation.NoticeKinds(notice(test.one)), conversation.NoticeKinds(notice(test.other))
		if len(one) == 0 || slices.Equal(one, other) != test.isSame {
			t.Errorf("%s: kinds %q and %q", test.name, one, other)
		}
	}
}

func TestMessageHasTheKindsOfAllItsNotices(t *testing.T) {
	t.Parallel()
	kinds := conversation.NoticeKinds(notice("<system-reminder>\nOne is here.\n</system-reminder>\nAnd text.\n<system-reminder>\nTwo is there.\n</system-reminder>"))
	if want := []string{"one is here", "two is there", "And text."}; !slices.Equal(kinds, want) {
		t.Errorf("kinds %q, want %q", kinds, want)
	}
}
