package wire_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/sharedtest"
	"palimpsest/pipeline/wire"
	"palimpsest/pipeline/wire/anthropic"
	"palimpsest/pipeline/wire/openaichat"
	"palimpsest/pipeline/wire/openairesponses"
)

// request is a recorded request body.
type request struct {
	name  string
	codec wire.Codec
	body  []byte
}

func transcripts(t *testing.T) []request {
	t.Helper()
	var found []request
	for _, file := range sharedtest.Files(t, "data/transcripts/*.json") {
		var codec wire.Codec = anthropic.New()
		if strings.HasSuffix(file, ".openai.json") {
			codec = openaichat.New()
		}
		found = append(found, request{filepath.Base(file), codec, read(t, file)})
	}
	return found
}

// clients returns what real clients sent, in order.
func clients(t *testing.T) []request {
	t.Helper()
	var found []request
	for _, file := range sharedtest.Files(t, "data/clients/*/*/*-POST-*.json") {
		body := wire.Get(read(t, file), "body")
		if text, ok := wire.String(body); ok {
			body = json.RawMessage(text)
		}
		var codec wire.Codec
		switch {
		case strings.HasSuffix(file, "messages.json"):
			codec = anthropic.New()
		case strings.HasSuffix(file, "completions.json"):
			codec = openaichat.New()
		case strings.HasSuffix(file, "responses.json"):
			codec = openairesponses.New()
		default:
			continue
		}
		name := filepath.Join(filepath.Base(filepath.Dir(filepath.Dir(file))), filepath.Base(filepath.Dir(file)), filepath.Base(file))
		found = append(found, request{name, codec, body})
	}
	return found
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// digests reads every message of a body.
func digests(t *testing.T, r request, envelope *wire.Envelope) []conversation.Digest {
	t.Helper()
	found := make([]conversation.Digest, envelope.Len())
	for i := range found {
		digest, err := wire.Digest(r.codec, envelope.Element(i), func(m conversation.Message) int { return len(m.Raw) })
		if err != nil {
			t.Fatalf("%s: message %d: %v", r.name, i, err)
		}
		found[i] = digest
	}
	return found
}

// A11, W26 on real requests.
func TestRealRequestsAreReadAndKeepTheirBytes(t *testing.T) {
	t.Parallel()

	for _, r := range append(transcripts(t), clients(t)...) {
		envelope, err := wire.Open(r.body, r.codec.List())
		if err != nil {
			t.Errorf("%s: %v", r.name, err)
			continue
		}
		request, err := r.codec.Request(envelope)
		if err != nil || request.Model == "" {
			t.Errorf("%s: %v, model %q", r.name, err, request.Model)
		}
		digests(t, r, envelope)
		pieces := []wire.Piece{{From: 0, To: envelope.Len() / 2}, {From: envelope.Len() / 2, To: envelope.Len()}}
		if !bytes.Equal(envelope.Seal(pieces), r.body) {
			t.Errorf("%s: the sealed body differs", r.name)
		}
	}
}

// A1, A2, A5 on real requests: a result is in the turn of its call, and changing
// results changes nothing else.
func TestRealResultsStayWithTheirCalls(t *testing.T) {
	t.Parallel()

	results := 0
	for _, r := range append(transcripts(t), clients(t)...) {
		envelope, err := wire.Open(r.body, r.codec.List())
		if err != nil {
			t.Fatalf("%s: %v", r.name, err)
		}
		messages, flags := parsed(t, r, envelope)
		for _, turn := range conversation.Turns(flags) {
			calls := map[string]int{}
			for _, message := range messages[turn.From:turn.To] {
				results += checkResults(t, r, message, calls)
			}
			if turn.To == envelope.Len() {
				continue // calls of the newest turn may be open
			}
			for id, open := range calls {
				if open != 0 {
					t.Errorf("%s: turn %d–%d: call %s has no result", r.name, turn.From, turn.To, id)
				}
			}
		}
	}
	if results < 5000 {
		t.Errorf("only %d results seen", results)
	}
}

// parsed reads every message of a body; its digests hold role and flags alone.
func parsed(t *testing.T, r request, envelope *wire.Envelope) ([]conversation.Message, []conversation.Digest) {
	t.Helper()
	messages, digests := make([]conversation.Message, envelope.Len()), make([]conversation.Digest, envelope.Len())
	for i := range messages {
		message, err := r.codec.Parse(envelope.Element(i))
		if err != nil {
			t.Fatalf("%s: message %d: %v", r.name, i, err)
		}
		messages[i], digests[i] = message, conversation.Digest{Role: message.Role, Flags: message.Flags()}
	}
	return messages, digests
}

// checkResults counts a message's calls and results and changes each result.
func checkResults(t *testing.T, r request, message conversation.Message, calls map[string]int) int {
	t.Helper()
	results := 0
	for i, block := range message.Blocks {
		switch block.Kind {
		case conversation.ToolCall:
			calls[block.ID]++
		case conversation.ToolResult:
			results++
			if calls[block.ID]--; calls[block.ID] != 0 {
				t.Errorf("%s: result %s is not in the turn of its call", r.name, block.ID)
			}
			changed := message
			changed.Replace(i, "cut")
			raw, err := r.codec.Encode(changed)
			if err != nil {
				t.Fatalf("%s: result %s: %v", r.name, block.ID, err)
			}
			again, err := r.codec.Parse(raw)
			if err != nil || len(again.Blocks) != len(message.Blocks) || again.Blocks[i].Text != "cut" || again.Blocks[i].ID != block.ID || again.Blocks[i].IsError != block.IsError {
				t.Fatalf("%s: result %s became %s: %v", r.name, block.ID, raw, err)
			}
		case conversation.Text, conversation.Thinking, conversation.Media, conversation.Opaque:
		}
	}
	return results
}

// C5 on real requests: what a client sends again counts as the same, though it
// moves its cache markers, drops thinking or adds ids.
func TestTheNextRequestOfARealClientContinuesTheLast(t *testing.T) {
	t.Parallel()

	identities := map[string][]conversation.Hash{}
	for _, r := range clients(t) {
		envelope, err := wire.Open(r.body, r.codec.List())
		if err != nil {
			t.Fatalf("%s: %v", r.name, err)
		}
		key := filepath.Dir(r.name) + "/" + filepath.Base(r.name)[:3]
		for _, digest := range digests(t, r, envelope) {
			identities[key] = append(identities[key], digest.Identity)
		}
	}
	for _, line := range []string{
		"claude-code/01-tool-turn 001 002", "claude-code/02-manual-compact 001 002 003 004", "claude-code/03-auto-compact 001 002 003",
		"claude-code/03-auto-compact 004 005", "claude-code/05-prompt-too-long-reactive 001 002 003 004", "claude-code/06-subagent 001 002 004",
		"claude-code/07-hint-headers-auth-token 001 002 003 005", "codex/01-basic 001 002 003", "codex/02-auto-compact 001 002",
		"codex/04-openai-provider-remote-compact 002 003", "opencode/01-basic 002 003", "opencode/01-basic 005 006", "opencode/01-basic 008 009",
		"pi/01-basic-compact 001 002 003", "pi/01-basic-compact 006 007 008", "pi/01-basic-compact 011 012",
	} {
		words := strings.Fields(line)
		for i := 2; i < len(words); i++ {
			before, after := identities[words[0]+"/"+words[i-1]], identities[words[0]+"/"+words[i]]
			if len(before) == 0 || len(after) <= len(before) || !slices.Equal(after[:len(before)], before) {
				t.Errorf("%s: %s does not continue %s", words[0], words[i], words[i-1])
			}
		}
	}
}
