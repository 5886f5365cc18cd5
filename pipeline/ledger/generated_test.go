package ledger_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/ledger"
	"palimpsest/pipeline/wire/sessiontest"
)

// D3, D4: in generated sessions of all formats the ledger has every modified file,
// every file that was read and every directive, and no others.
func TestGeneratedSessionsAreKeptWhole(t *testing.T) {
	t.Parallel()
	for _, format := range []conversation.Format{conversation.Anthropic, conversation.OpenAIChat, conversation.OpenAIResponses, conversation.Gemini, conversation.GeminiInteractions} {
		for seed := range uint64(6) {
			t.Run(fmt.Sprintf("%s/%d", format, seed), func(t *testing.T) {
				t.Parallel()
				options := sessiontest.Options{Format: format, Turns: 120, Reminders: true, ToolErrors: seed%2 == 0, Thinking: seed%3 == 0, CJK: seed%3 == 1}
				// Varied sessions of OpenAI turn edits into calls that name no file.
				options.Varied = seed > 3 && format == conversation.Anthropic
				checkGenerated(t, sessiontest.Generate(seed, options), format, options.ToolErrors)
			})
		}
	}
}

func checkGenerated(t *testing.T, session *sessiontest.Session, format conversation.Format, fails bool) {
	t.Helper()
	kept := open(t, format, last(session)).ledger()
	text := kept.Text(100_000, words)
	for _, path := range session.Modified {
		if !strings.Contains(text, path+"\n") {
			t.Errorf("%s is not in the text", path)
		}
	}
	for _, order := range session.Directives {
		if !slices.Contains(typedOf(kept), order) || !strings.Contains(text, order) {
			t.Errorf("%q is not in the text", order)
		}
	}
	var modified, read []string
	for _, file := range kept.Files {
		if file.Modified != ledger.Never {
			modified = append(modified, file.Path)
		}
		if file.Read != ledger.Never && !strings.HasSuffix(file.Path, ".png") {
			read = append(read, file.Path)
		}
	}
	for _, list := range [][2][]string{{modified, session.Modified}, {read, session.Read}} {
		slices.Sort(list[0])
		want := slices.Sorted(slices.Values(list[1]))
		if !slices.Equal(list[0], want) {
			t.Errorf("got %q\nwant %q", list[0], want)
		}
	}
	if fails && len(kept.Errors) == 0 {
		t.Error("no errors")
	}
}

// D4: thirty compactions later every directive is still there, within a budget
// that holds nothing else but the modified files.
func TestDirectivesSurviveThirtyCompactions(t *testing.T) {
	t.Parallel()
	session := sessiontest.Generate(11, sessiontest.Options{Turns: 300, ToolErrors: true, Reminders: true})
	l := open(t, conversation.Anthropic, last(session))
	kept, compactions := ledger.New(), 0
	var text string
	for n, turn := range l.turns {
		kept.Add(n, turn.From, l.messages[turn.From:turn.To])
		if n%9 == 8 {
			text = kept.Text(3000, words) // what a compaction puts into the prompt
			compactions++
			// The client sends the block back with its next message.
			kept.Add(n, turn.To, []conversation.Message{{Role: conversation.User, Blocks: []conversation.Block{{Kind: conversation.Text, Text: "[AUTO CONTEXT COMPRESSION]\n" + text}}}})
		}
	}
	if compactions < 30 {
		t.Fatalf("%d compactions", compactions)
	}
	text = kept.Text(3000, words)
	for _, order := range session.Directives {
		if strings.Count(text, order) != 1 {
			t.Errorf("%q stands %d times in the text", order, strings.Count(text, order))
		}
	}
	for _, path := range session.Modified {
		if !strings.Contains(text, path) {
			t.Errorf("%s is not in the text", path)
		}
	}
	if len(session.Directives) < 10 {
		t.Errorf("only %d directives", len(session.Directives))
	}
}
