package prompt_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"palimpsest/pipeline"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/session"
	"palimpsest/tenants"
)

// mask replaces one word.
func mask(raw []byte) ([]byte, map[string]int) {
	count := bytes.Count(raw, []byte("ada@example.com"))
	if count == 0 {
		return raw, nil
	}
	return bytes.ReplaceAll(raw, []byte("ada@example.com"), []byte("[email-abc234]")), map[string]int{"email": count}
}

// redactedTalk returns the bodies of a session whose every message has an address, which outgrows a
// window of 8,000 tokens. Its texts are long, its tool results too.
func redactedTalk(format conversation.Format) [][]byte {
	var bodies [][]byte
	var messages []json.RawMessage
	list := "messages"
	if format == conversation.OpenAIResponses {
		list = "input"
	}
	for turn := range 16 {
		said := fmt.Sprintf("ada@example.com asks %d. %s", turn, strings.Repeat("Look at part "+strconv.Itoa(turn)+" of it. ", 60))
		result := fmt.Sprintf("ada@example.com wrote line %d\n%s", turn, strings.Repeat("a line of the same log\n", 150))
		switch format {
		case conversation.Anthropic:
			messages = append(messages, marshal(map[string]any{"role": "user", "content": said}),
				marshal(map[string]any{"role": "assistant", "content": []any{map[string]any{"type": "tool_use", "id": fmt.Sprint("t", turn), "name": "run", "input": map[string]any{"command": "mail ada@example.com"}}}}),
				marshal(map[string]any{"role": "user", "content": []any{map[string]any{"type": "tool_result", "tool_use_id": fmt.Sprint("t", turn), "content": result}}}),
				marshal(map[string]any{"role": "assistant", "content": "I have told ada@example.com. " + said}))
		case conversation.OpenAIChat:
			messages = append(messages, marshal(map[string]any{"role": "user", "content": said}),
				marshal(map[string]any{"role": "assistant", "content": nil, "tool_calls": []any{map[string]any{"type": "function", "id": fmt.Sprint("t", turn), "function": map[string]any{"name": "run", "arguments": `{"command":"mail ada@example.com"}`}}}}),
				marshal(map[string]any{"role": "tool", "tool_call_id": fmt.Sprint("t", turn), "content": result}),
				marshal(map[string]any{"role": "assistant", "content": "I have told ada@example.com. " + said}))
		case conversation.OpenAIResponses:
			messages = append(messages, marshal(map[string]any{"type": "message", "role": "user", "content": said}),
				marshal(map[string]any{"type": "function_call", "call_id": fmt.Sprint("t", turn), "name": "run", "arguments": `{"command":"mail ada@example.com"}`}),
				marshal(map[string]any{"type": "function_call_output", "call_id": fmt.Sprint("t", turn), "output": result}),
				marshal(map[string]any{"type": "message", "role": "assistant", "content": "I have told ada@example.com. " + said}))
		}
		body := map[string]any{"model": "claude-sonnet-4-5", "max_tokens": 100, list: slices.Clone(messages[:len(messages)-1])}
		if format != conversation.Anthropic {
			body["model"] = "gpt-5"
			delete(body, "max_tokens")
		}
		bodies = append(bodies, marshal(body))
	}
	return bodies
}

func marshal(value any) json.RawMessage {
	encoded, err := json.Marshal(value)
	if err != nil {
		panic(err) // plain values
	}
	return encoded
}

// What is stored of a session has no personal data, in no format. What goes to the provider of the
// client's own messages has it, and what stands in place of old ones doesn't.
func TestNothingWithPersonalDataIsStored(t *testing.T) {
	t.Parallel()
	for format := range paths() {
		t.Run(string(format), func(t *testing.T) {
			t.Parallel()
			memory := session.NewMemory()
			b := newBenchWith(t, memory, format, 8_000)
			b.writer.Redactor = func(context.Context, tenants.WorkspaceID) (pipeline.Redact, error) { return mask, nil }
			counted := 0
			var last []byte
			for _, body := range redactedTalk(format) {
				request := b.request(body)
				written, err := b.writer.Write(t.Context(), request)
				if err != nil {
					t.Fatal(err)
				}
				update := written.Update(b.writer.Now())
				kept, err := json.Marshal(update)
				if err != nil {
					t.Fatal(err)
				}
				if bytes.Contains(kept, []byte("ada@")) || strings.Contains(update.Title, "ada@") {
					t.Fatalf("recorded: %.400s", kept)
				}
				counted += written.Redacted["email"]
				if covered := written.Exchange.Lane.Projection; covered != nil {
					if stored, _ := json.Marshal(covered); bytes.Contains(stored, []byte("ada@")) {
						t.Fatalf("the projection has it: %.3000s", stored)
					}
					b.epochs = covered.Number
					if !bytes.Contains(written.Body, lastOf(written.Exchange)) {
						t.Error("the newest message did not go out as it came")
					}
				} else if !bytes.Equal(written.Body, body) {
					t.Error("a prompt that fits did not go out as it came")
				}
				written.Lane.Arrived(0, len(written.Exchange.Conversation.Digests))
				last = written.Body
				again, err := b.writer.Write(t.Context(), request)
				if err != nil || !bytes.Equal(again.Body, written.Body) {
					t.Fatalf("the same request goes out otherwise (%v)", err)
				}
				for i, entry := range memory.Originals(written.Lane.ID) {
					if bytes.Contains(entry.Raw, []byte("ada@")) || sha256.Sum256(entry.Raw) != entry.Hash || written.Exchange.Conversation.KeptHash(i) != entry.Hash {
						t.Fatalf("the archive has %d: %s", i, entry.Raw)
					}
				}
			}
			if b.epochs == 0 || counted < 16*4-1 || !bytes.Contains(last, []byte("[email-abc234]")) {
				t.Errorf("%d epochs, %d counted; the last prompt: %.1000s", b.epochs, counted, last)
			}
		})
	}
}

// lastOf returns the newest message of an exchange as the client sent it.
func lastOf(exchange *pipeline.Exchange) []byte {
	return exchange.Body.Element(len(exchange.Conversation.Digests) - 1)
}
