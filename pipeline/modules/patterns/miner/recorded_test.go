package miner

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/modules/patterns"
	"palimpsest/pipeline/sharedtest"
	"palimpsest/pipeline/wire"
	"palimpsest/pipeline/wire/anthropic"
)

// Real sessions teach little, and nothing that is long, secret or a tool's word.
func TestRecordedSessionsTeachFewPatterns(t *testing.T) {
	t.Parallel()
	for _, file := range sharedtest.Files(t, "data/transcripts/*.anthropic.json") {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".anthropic.json"), func(t *testing.T) {
			t.Parallel()
			h := recordedHistory(t, file)
			found := find(h)
			for _, finding := range found {
				t.Logf("%d %s (%d/%d) %q %v", finding.Message, finding.Kind, finding.Sessions, finding.Messages, finding.Text, finding.When)
				if utf8.RuneCountInString(finding.Text) > patterns.MaxText || patterns.HoldsSecret(finding.Text) || h.echoes(finding.Text, finding.Message) {
					t.Errorf("%q must not be kept", finding.Text)
				}
			}
			if len(found) > len(h.turns)/4+2 {
				t.Errorf("%d findings in %d turns", len(found), len(h.turns))
			}
		})
	}
}

func recordedHistory(t *testing.T, file string) *history {
	t.Helper()
	body, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	envelope, err := wire.Open(body, anthropic.New().List())
	if err != nil {
		t.Fatal(err)
	}
	raw := make([]json.RawMessage, envelope.Len())
	for i := range raw {
		raw[i] = envelope.Element(i)
	}
	h, err := readHistory(anthropic.New(), raw)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// echoes reports whether a sentence stands in what a tool returned up to a message:
// then it is the tool's own.
func (h *history) echoes(sentence string, upTo int) bool {
	plain := strings.Join(strings.Fields(strings.ToLower(sentence)), " ")
	for i := 0; i <= upTo && i < len(h.messages); i++ {
		for j := range h.messages[i].Blocks {
			block := &h.messages[i].Blocks[j]
			if block.Kind == conversation.ToolResult && strings.Contains(strings.Join(strings.Fields(strings.ToLower(block.Text)), " "), plain) {
				return true
			}
		}
	}
	return false
}
