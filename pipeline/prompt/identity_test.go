package prompt_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"palimpsest/pipeline/conversation"
)

// dialog is a conversation as people know it; a habit writes it as a client sends it.
type dialog struct {
	system string
	said   []string // what the user and the model say, in turns, the user first
}

// habit is what a client changes when it sends a conversation again. It is given when, and returns the texts of
// the leading system messages, of the tool's description, and of message i in parts.
type habit struct {
	name    string
	leading func(at time.Time, system string) []string
	tool    func(at time.Time) string
	typed   func(at time.Time, text string, isFirst, isNewest bool) []string
}

func habits() []habit {
	stamp := func(at time.Time) string { return at.Format("15:04:05") }
	first := func(name string, write func(at time.Time, text string) []string) habit {
		return habit{name: name, typed: func(at time.Time, text string, isFirst, _ bool) []string {
			if isFirst {
				return write(at, text)
			}
			return []string{text}
		}}
	}
	newest := func(name string, write func(at time.Time, text string) []string) habit {
		return habit{name: name, typed: func(at time.Time, text string, _, isNewest bool) []string {
			if isNewest {
				return write(at, text)
			}
			return []string{text}
		}}
	}
	return []habit{
		{name: "changes nothing"},
		{name: "time in the system message", leading: func(at time.Time, system string) []string {
			return []string{system + " It is now " + at.Format(time.RFC850) + ", 3 files changed."}
		}},
		{name: "state in a second system message", leading: func(at time.Time, system string) []string { return []string{system, "open: " + stamp(at)} }},
		{name: "time in a tool's description", tool: func(at time.Time) string { return "Reads a file, as of " + stamp(at) }},
		first("time before the first message", func(at time.Time, text string) []string {
			return []string{"<current_datetime>" + at.Format(time.RFC3339) + "</current_datetime>\n\n" + text}
		}),
		first("environment with the first message", func(at time.Time, text string) []string {
			return []string{"<environment_context>\n<cwd>/" + stamp(at) + "</cwd>\n</environment_context>", text}
		}),
		first("date in words with the first message", func(at time.Time, text string) []string {
			return []string{"Today's date is " + at.Format("Monday, January 2, 2006") + ". Current time: " + stamp(at) + ".\n" + text}
		}),
		newest("open files in a block of the newest message", func(at time.Time, text string) []string {
			return []string{"Open file src/f" + stamp(at) + ".go, 3 tabs, cursor in line 7", text}
		}),
		newest("open files behind the newest message", func(at time.Time, text string) []string {
			return []string{text + "\n\n[open file src/f" + stamp(at) + ".go, 3 tabs]"}
		}),
		newest("an element of an unknown name in the newest message", func(at time.Time, text string) []string {
			return []string{"<additional_data>" + strings.Repeat("file "+stamp(at)+" ", 40) + "</additional_data>\n" + text}
		}),
	}
}

// body writes the first messages of a talk as a client with a habit sends them.
func (h habit) body(t *testing.T, format conversation.Format, talk dialog, messages int, at time.Time) []byte {
	t.Helper()
	leading, tool := []string{talk.system}, "Reads a file"
	if h.leading != nil {
		leading = h.leading(at, talk.system)
	}
	if h.tool != nil {
		tool = h.tool(at)
	}
	var list []any
	textType := map[conversation.Format][2]string{conversation.Anthropic: {"text", "text"}, conversation.OpenAIChat: {"text", "text"}, conversation.OpenAIResponses: {"input_text", "output_text"}}[format]
	if format != conversation.Anthropic {
		for _, text := range leading {
			list = append(list, map[string]any{"role": "developer", "content": text})
		}
	}
	for i, text := range talk.said[:messages] {
		parts, role, kind := []string{text}, "user", textType[0]
		if i%2 == 1 {
			role, kind = "assistant", textType[1]
		} else if h.typed != nil {
			parts = h.typed(at, text, i == 0, i == messages-1)
		}
		var blocks []any
		for _, part := range parts {
			blocks = append(blocks, map[string]any{"type": kind, "text": part})
		}
		list = append(list, map[string]any{"role": role, "content": blocks})
	}
	body := map[string]any{"model": "gpt-5.1"}
	schema := map[string]any{"type": "object", "properties": map[string]any{}}
	switch format {
	case conversation.Anthropic:
		body["model"], body["max_tokens"], body["messages"], body["system"] = "claude-sonnet-4-5", 100, list, strings.Join(leading, "\n")
		body["tools"] = []any{map[string]any{"name": "read", "description": tool, "input_schema": schema}}
	case conversation.OpenAIChat:
		body["messages"] = list
		body["tools"] = []any{map[string]any{"type": "function", "function": map[string]any{"name": "read", "description": tool, "parameters": schema}}}
	case conversation.OpenAIResponses:
		body["input"] = list
		body["tools"] = []any{map[string]any{"type": "function", "name": "read", "description": tool, "parameters": schema}}
	}
	encoded, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	return encoded
}

// newDialog makes a talk up.
func newDialog(random *rand.Rand, messages int) dialog {
	words := strings.Fields("please say what these words of the paragraph mean and list all files that call the parser with it again")
	made := dialog{system: "You are helpful."}
	for i := range messages {
		var text []string
		for range 3 + random.IntN(12) {
			text = append(text, words[random.IntN(len(words))])
		}
		made.said = append(made.said, fmt.Sprintf("%s %d-%d", strings.Join(text, " "), i, random.IntN(1_000_000)))
	}
	return made
}

// W50: what a client changes when it sends a conversation again opens neither a session nor a thread, and what is sent stays as it came.
func TestClientsChangesKeepAConversationTogether(t *testing.T) {
	t.Parallel()
	for format := range paths() {
		for _, habit := range habits() {
			for _, name := range []string{"", "named"} {
				t.Run(fmt.Sprintf("%s, %s %s", format, habit.name, name), func(t *testing.T) {
					t.Parallel()
					b := newBench(t, format, 0)
					b.headers = nameOf(name)
					random := rand.New(rand.NewPCG(1, 2))
					other, talk := newDialog(random, 9), newDialog(random, 9)
					at := time.Date(2026, 11, 28, 23, 51, 17, 0, time.UTC)
					var lane, session uuid.UUID
					for n := 1; n <= len(talk.said); n += 2 {
						if name == "" {
							b.write(habit.body(t, format, other, n, at)) // a conversation beside it
						}
						body := habit.body(t, format, talk, n, at)
						written := b.write(body)
						if !bytes.Equal(written.Body, body) {
							t.Fatalf("%d messages were sent as\n%s, not as they came:\n%s", n, written.Body, body)
						}
						if n > 1 && (written.Lane.ID != lane || written.Lane.Session != session) {
							t.Fatalf("the request with %d messages is of session %s, thread %s, not of session %s, thread %s", n, written.Lane.Session, written.Lane.ID, session, lane)
						}
						lane, session = written.Lane.ID, written.Lane.Session
						at = at.Add(3*time.Minute + 7*time.Second)
					}
				})
			}
		}
	}
}

// nameOf returns headers that name a session.
func nameOf(name string) http.Header {
	if name == "" {
		return http.Header{}
	}
	return http.Header{"X-Palimpsest-Session-Id": {name}}
}

// W50: whatever clients change, conversations of different keys, end users and words stay apart, and so do forks.
func TestDifferentConversationsStayApart(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 28, 23, 51, 17, 0, time.UTC)
	for format := range paths() {
		for _, habit := range habits() {
			t.Run(fmt.Sprintf("%s, %s", format, habit.name), func(t *testing.T) {
				t.Parallel()
				random := rand.New(rand.NewPCG(3, 4))
				b := newBench(t, format, 0)
				one := newDialog(random, 9)
				for _, differs := range []struct {
					name string
					at   int // the first message from which the two are different; -1: none is
					edit func(talk dialog) dialog
					use  func(b *bench)
				}{
					{"key", -1, nil, func(b *bench) { b.scope.APIKey = uuid.New() }},
					{"end user", -1, nil, func(b *bench) { b.scope.EndUser = "someone else" }},
					{"provider", -1, nil, func(b *bench) { b.scope.Upstream = "https://example.com" }},
					{"session's name", -1, nil, func(b *bench) { b.headers = nameOf("other") }},
					{"first question", 0, saying(0, "a question of another kind"), nil},
					{"a word of the first question", 0, saying(0, one.said[0]+" elsewhere"), nil},
					{"second question", 2, saying(2, "a question of another kind"), nil},
					{"a longer second question", 2, saying(2, one.said[2]+" and more"), nil},
					{"last question", 8, saying(8, "a question of another kind"), nil},
					{"first answer", 1, saying(1, "another answer"), nil},
					{"third answer", 5, saying(5, "another answer"), nil},
				} {
					b.headers = nameOf(differs.name + "'s session")
					mine, theirs := *b, *b
					other := one
					if differs.edit != nil {
						other = differs.edit(one)
					}
					if differs.use != nil {
						differs.use(&theirs)
					}
					for n := 1; n <= len(one.said); n += 2 {
						ours := mine.write(habit.body(t, format, one, n, at))
						others := theirs.write(habit.body(t, format, other, n, at.Add(time.Minute)))
						if n > differs.at && ours.Lane.ID == others.Lane.ID {
							t.Errorf("%s: two conversations of %d messages are both in thread %s", differs.name, n, ours.Lane.ID)
						}
						if differs.at < 0 && ours.Lane.Session == others.Lane.Session {
							t.Errorf("%s: two conversations are both in session %s", differs.name, ours.Lane.Session)
						}
					}
				}
			})
		}
	}
}

// saying returns an edit of a message.
func saying(i int, text string) func(dialog) dialog {
	return func(from dialog) dialog {
		from.said = append(append(append([]string(nil), from.said[:i]...), text), from.said[i+1:]...)
		return from
	}
}
