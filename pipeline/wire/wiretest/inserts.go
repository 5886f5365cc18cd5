package wiretest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/wire"
)

// AppendSample is a user message without and with the texts "one" and "two" appended.
type AppendSample struct {
	Name string
	Raw  string
	Want string // "" if it has no place for them
}

// InstructSample is a body without and with the texts "one" and "two" behind its system prompt.
type InstructSample struct {
	Name string
	Body string
	Want string
}

// testAppend checks that texts come last in a message and leave the rest unchanged. A11, W13, W35.
func testAppend(t *testing.T, codec wire.Codec, samples Samples) {
	t.Helper()
	for _, sample := range samples.Appends {
		raw, err := codec.Append(json.RawMessage(sample.Raw), "one", "two")
		if (err != nil) != (sample.Want == "") || string(raw) != sample.Want {
			t.Errorf("%s: %v\n got %s\nwant %s", sample.Name, err, raw, sample.Want)
		}
	}
	const text = "put \"in\" \u2028 é \U0001f600 </script>\n"
	for _, sample := range samples.Messages {
		sent := parse(t, codec, sample.Raw)
		if sent.Role != conversation.User || sent.Flags().Has(conversation.IsPinned) {
			continue
		}
		raw, err := codec.Append(json.RawMessage(sample.Raw), text)
		if err != nil {
			continue // in none of the forms above
		}
		if !json.Valid(raw) {
			t.Errorf("%s: not JSON: %s", sample.Name, raw)
			continue
		}
		checkAppended(t, sample.Name, sent, parse(t, codec, string(raw)), text)
	}
}

// checkAppended checks that a message kept its blocks and has a text after them.
func checkAppended(t *testing.T, name string, sent, got conversation.Message, text string) {
	t.Helper()
	var want []string
	for _, block := range sent.Blocks {
		if block.Raw != nil || strings.TrimSpace(block.Text) != "" {
			want = append(want, Describe(block))
		}
	}
	want = append(want, Describe(conversation.Block{Kind: conversation.Text, Text: text}))
	have := make([]string, len(got.Blocks))
	for i, block := range got.Blocks {
		have[i] = Describe(block)
	}
	if got.Role != sent.Role || fmt.Sprint(have) != fmt.Sprint(want) {
		t.Errorf("%s:\n got %q\nwant %q", name, have, want)
	}
}

// testInstruct checks the text behind a system prompt, and that the rest of the body stays unchanged.
func testInstruct(t *testing.T, codec wire.Codec, samples Samples) {
	t.Helper()
	for _, sample := range samples.Instructs {
		envelope, err := wire.Open([]byte(sample.Body), codec.List())
		if err != nil {
			t.Fatalf("%s: %v", sample.Name, err)
		}
		said := codec.Instruct(envelope, []string{"one", "two"})
		pieces := []wire.Piece{
			{From: 0, To: said.Behind}, {From: said.Behind, To: said.Behind, Raw: said.Messages}, {From: said.Behind, To: envelope.Len()},
		}
		if got := envelope.Seal(pieces, said.Member); string(got) != sample.Want {
			t.Errorf("%s:\n got %s\nwant %s", sample.Name, got, sample.Want)
		}
	}
}
