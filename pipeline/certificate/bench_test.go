package certificate_test

import (
	"testing"

	"palimpsest/pipeline/certificate"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/ledger"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/wire"
	"palimpsest/pipeline/wire/anthropic"
	"palimpsest/pipeline/wire/sessiontest"
)

// BenchmarkMake compares a prompt of 100 KB with a conversation of 800 KB.
func BenchmarkMake(b *testing.B) {
	talk := sessiontest.Generate(1, sessiontest.Options{Format: conversation.Anthropic, Turns: 300, Parallel: true, ToolErrors: true, TargetTokens: 210_000})
	body, codec := talk.Body(talk.Steps()-1), anthropic.New()
	envelope, err := wire.Open(body, codec.List())
	if err != nil {
		b.Fatal(err)
	}
	var messages []conversation.Message
	var digests []conversation.Digest
	for i := range envelope.Len() {
		message, err := codec.Parse(envelope.Element(i))
		if err != nil {
			b.Fatal(err)
		}
		messages = append(messages, message)
		digests = append(digests, conversation.Digest{Role: message.Role, Flags: message.Flags()})
	}
	turns := conversation.Turns(digests)
	calls := make([][]ledger.Made, len(turns))
	for i, turn := range turns {
		calls[i] = ledger.Calls(turn.From, messages[turn.From:turn.To])
	}
	covers := turns[len(turns)-1].From
	projection := &session.Projection{Covers: covers, Parts: []session.Part{{From: 0, To: covers, Level: 2, Raw: body[1000:101_000]}}}
	all := certificate.NewOriginals(ledger.NewMemo())
	add := func() {
		all = certificate.NewOriginals(ledger.NewMemo())
		for i, turn := range turns {
			all.Add(turn.From, messages[turn.From:turn.To], calls[i])
		}
	}
	b.Run("originals", func(b *testing.B) {
		b.SetBytes(int64(len(body)))
		for b.Loop() {
			add()
		}
	})
	add()
	b.Run("compare", func(b *testing.B) {
		for b.Loop() {
			certificate.Make(projection, all)
		}
	})
}
