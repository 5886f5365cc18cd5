package ledger_test

import (
	"os"
	"testing"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/ledger"
	"palimpsest/pipeline/sharedtest"
	"palimpsest/pipeline/wire/sessiontest"
)

// BenchmarkAdd reads whole sessions, turn by turn.
func BenchmarkAdd(b *testing.B) {
	b.Run("generated", func(b *testing.B) {
		addAll(b, last(sessiontest.Generate(7, sessiontest.Options{
			Turns: 200, Parallel: true, ToolErrors: true, Reminders: true, TargetTokens: 200_000,
		})))
	})
	b.Run("recorded", func(b *testing.B) {
		body, err := os.ReadFile(sharedtest.Path(b, "data", "transcripts", "cc-joined-72.anthropic.json"))
		if err != nil {
			b.Fatal(err)
		}
		addAll(b, body)
	})
}

func addAll(b *testing.B, body []byte) {
	b.Helper()
	l, bytes := open(b, conversation.Anthropic, body), 0
	for _, message := range l.messages {
		bytes += len(message.Raw)
	}
	b.SetBytes(int64(bytes))
	b.ReportAllocs()
	for b.Loop() {
		l.ledger()
	}
}

// BenchmarkText writes the block of a long session.
func BenchmarkText(b *testing.B) {
	kept := open(b, conversation.Anthropic, last(sessiontest.Generate(7, sessiontest.Options{Turns: 200, ToolErrors: true}))).ledger()
	b.ReportAllocs()
	for b.Loop() {
		kept.Text(2000, words)
	}
}

// BenchmarkTurn adds one turn to the ledger of a long session.
func BenchmarkTurn(b *testing.B) {
	l := open(b, conversation.Anthropic, last(sessiontest.Generate(7, sessiontest.Options{Turns: 200, ToolErrors: true})))
	kept, turn := l.ledger(), l.turns[len(l.turns)/2]
	b.ReportAllocs()
	for b.Loop() {
		kept.Add(len(l.turns), turn.From, l.messages[turn.From:turn.To])
	}
}

func last(s *sessiontest.Session) []byte { return s.Body(s.Steps() - 1) }

var _ = ledger.New
