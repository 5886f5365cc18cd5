package ledger_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/ledger"
	"palimpsest/pipeline/sharedtest"
	"palimpsest/pipeline/wire"
	"palimpsest/pipeline/wire/anthropic"
	"palimpsest/pipeline/wire/gemini"
	"palimpsest/pipeline/wire/geminiinteractions"
	"palimpsest/pipeline/wire/openaichat"
	"palimpsest/pipeline/wire/openairesponses"
)

// lane is a conversation and its turns.
type lane struct {
	messages []conversation.Message
	turns    []conversation.Turn
}

// codecOf returns the codec of a format.
func codecOf(t testing.TB, format conversation.Format) wire.Codec {
	t.Helper()
	switch format {
	case conversation.Anthropic:
		return anthropic.New()
	case conversation.OpenAIChat:
		return openaichat.New()
	case conversation.OpenAIResponses:
		return openairesponses.New()
	case conversation.GeminiInteractions:
		return geminiinteractions.New()
	case conversation.Gemini:
		return gemini.New()
	}
	t.Fatalf("no format %s", format)
	return nil
}

// open reads a body as a lane.
func open(t testing.TB, format conversation.Format, body []byte) lane {
	t.Helper()
	codec := codecOf(t, format)
	envelope, err := wire.Open(body, codec.List())
	if err != nil {
		t.Fatal(err)
	}
	var l lane
	var digests []conversation.Digest
	for i := range envelope.Len() {
		message, err := codec.Parse(envelope.Element(i))
		if err != nil {
			t.Fatalf("message %d: %v", i, err)
		}
		l.messages = append(l.messages, message)
		digests = append(digests, conversation.Digest{Role: message.Role, Flags: message.Flags()})
	}
	l.turns = conversation.Turns(digests)
	return l
}

// ledger returns the ledger of a lane.
func (l lane) ledger() *ledger.Ledger {
	kept := ledger.New()
	for n, turn := range l.turns {
		kept.Add(n, turn.From, l.messages[turn.From:turn.To])
	}
	return kept
}

// recorded yields the recorded sessions of both formats.
func recorded(t *testing.T, check func(t *testing.T, name string, l lane)) {
	t.Helper()
	for suffix, format := range map[string]conversation.Format{"anthropic": conversation.Anthropic, "openai": conversation.OpenAIChat} {
		for _, file := range sharedtest.Files(t, "data/transcripts/*."+suffix+".json") {
			name := strings.TrimSuffix(filepath.Base(file), ".json")
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				body, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				check(t, name, open(t, format, body))
			})
		}
	}
}

// talk builds a conversation for a test, message by message.
type talk struct {
	messages []conversation.Message
	calls    int
}

// user adds what a user's message holds: one text block for each text.
func (c *talk) user(texts ...string) *talk {
	message := conversation.Message{Role: conversation.User}
	for _, text := range texts {
		message.Blocks = append(message.Blocks, conversation.Block{Kind: conversation.Text, Text: text})
	}
	c.messages = append(c.messages, message)
	return c
}

// says adds an answer of text.
func (c *talk) says(text string) *talk {
	c.messages = append(c.messages, conversation.Message{Role: conversation.Assistant, Blocks: []conversation.Block{{Kind: conversation.Text, Text: text}}})
	return c
}

// call adds an answer that calls a tool, and the result.
func (c *talk) call(name, arguments, result string) *talk {
	return c.called(name, arguments, result, false)
}

// fails adds a call whose result is marked as an error.
func (c *talk) fails(name, arguments, result string) *talk {
	return c.called(name, arguments, result, true)
}

func (c *talk) called(name, arguments, result string, failed bool) *talk {
	c.calls++
	id := "call_" + string(rune('a'+c.calls))
	c.messages = append(
		c.messages,
		conversation.Message{Role: conversation.Assistant, Blocks: []conversation.Block{{Kind: conversation.ToolCall, ID: id, Name: name, Text: arguments}}},
		conversation.Message{Role: conversation.User, Blocks: []conversation.Block{{Kind: conversation.ToolResult, ID: id, Text: result, IsError: failed}}},
	)
	return c
}

// bash adds a shell command of Claude Code.
func (c *talk) bash(command, result string) *talk {
	return c.called("Bash", object("command", command), result, strings.HasPrefix(result, "Exit code"))
}

// ledger returns the conversation's ledger.
func (c *talk) ledger() *ledger.Ledger { return c.lane().ledger() }

func (c *talk) lane() lane {
	digests := make([]conversation.Digest, len(c.messages))
	for i := range c.messages {
		digests[i] = conversation.Digest{Role: c.messages[i].Role, Flags: c.messages[i].Flags()}
	}
	return lane{c.messages, conversation.Turns(digests)}
}

// object writes a JSON object of texts: name, value, name, value.
func object(pairs ...string) string {
	members := map[string]string{}
	for i := 0; i+1 < len(pairs); i += 2 {
		members[pairs[i]] = pairs[i+1]
	}
	encoded, err := json.Marshal(members)
	if err != nil {
		panic(err)
	}
	return string(encoded)
}

// words counts words and marks: a stand-in for tokens that needs no vocabulary.
func words(text string) int { return (len(text) + 3) / 4 }
