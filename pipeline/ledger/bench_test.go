package ledger_test

import (
	"os"
	"path/filepath"
	"testing"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/ledger"
	"palimpsest/pipeline/wire/wiregen"
)

// BenchmarkAdd reads whole sessions, turn by turn.
func BenchmarkAdd(b *testing.B) {
	sessions := map[string]lane{
		"generated": open(b, conversation.Anthropic, last(wiregen.Generate(7, wiregen.Options{
			Turns: 200, Parallel: true, ToolErrors: true, Reminders: true, TargetTokens: 200_000,
		}))),
	}
	if body, err := os.ReadFile(filepath.Join(recordedAt, "cc-joined-72.anthropic.json")); err == nil {
		sessions["recorded"] = open(b, conversation.Anthropic, body)
	}
	for name, l := range sessions {
		bytes := 0
		for _, message := range l.messages {
			bytes += len(message.Raw)
		}
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(bytes))
			b.ReportAllocs()
			for b.Loop() {
				l.ledger()
			}
		})
	}
}

// BenchmarkText writes the block of a long session.
func BenchmarkText(b *testing.B) {
	kept := open(b, conversation.Anthropic, last(wiregen.Generate(7, wiregen.Options{Turns: 200, ToolErrors: true}))).ledger()
	b.ReportAllocs()
	for b.Loop() {
		kept.Text(2000, words)
	}
}

// BenchmarkTurn adds one turn to the ledger of a long session.
func BenchmarkTurn(b *testing.B) {
	l := open(b, conversation.Anthropic, last(wiregen.Generate(7, wiregen.Options{Turns: 200, ToolErrors: true})))
	kept, turn := l.ledger(), l.turns[len(l.turns)/2]
	b.ReportAllocs()
	for b.Loop() {
		kept.Add(len(l.turns), turn.From, l.messages[turn.From:turn.To])
	}
}

func last(s *wiregen.Session) []byte { return s.Body(s.Steps() - 1) }

var _ = ledger.New
