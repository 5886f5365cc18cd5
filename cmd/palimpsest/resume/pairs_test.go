package resume

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"palimpsest/api/upstream/providerdouble"
	"palimpsest/cmd/palimpsest/connect"
	"palimpsest/pipeline/archive/export"
	"palimpsest/pipeline/client"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/fidelity"
	"palimpsest/pipeline/sharedtest"
	"palimpsest/pipeline/wire/formats"
	"palimpsest/pipeline/wire/sessiontest"
)

// keptTurns are the turns at the end of a session of which the next client has to know what is named in them.
const keptTurns = 20

// source is a recorded session.
type source struct {
	name string
	main export.Main
}

// sources are sessions of each client and format.
func sources(t *testing.T) []source {
	t.Helper()
	var all []source
	for _, one := range []struct{ file, client, format, model string }{
		{"cc-image-fc.anthropic", "claude-code", "anthropic", "claude-opus-4-5"},
		{"pi-large-session.openai", "pi", "openai-chat", "gpt-5.5"},
		{"cline-small.openai", "cline", "openai-chat", "gpt-5.5"},
		{"openhands-multiswe-2.openai", "opencode", "openai-chat", "gpt-5.5"},
	} {
		body, err := os.ReadFile(sharedtest.Path(t, "data", "transcripts", one.file+".json"))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, source{one.file, recorded(t, one.client, one.format, one.model, body)})
	}
	made := sessiontest.Generate(7, sessiontest.Options{Format: "openai-responses", Turns: 60, Parallel: true, ToolErrors: true, Images: true, Varied: true, Thinking: true, Facts: true})
	return append(all, source{"generated.responses", recorded(t, "codex", "openai-responses", "gpt-5.5", made.Body(made.Steps()-1))})
}

// recorded is the session of which a body is the last request.
func recorded(t *testing.T, of, format, model string, body []byte) export.Main {
	t.Helper()
	var read struct{ Messages, Input []json.RawMessage }
	if err := json.Unmarshal(body, &read); err != nil {
		t.Fatal(err)
	}
	return export.Main{
		ID: uuid.New(), Lane: uuid.New(), Name: uuid.NewString(), Title: "Mend the parser", Client: of, Model: model,
		Format: conversation.Format(format), Messages: append(read.Messages, read.Input...),
	}
}

// here is a machine with nothing on it.
func here(t *testing.T) connect.Place {
	t.Helper()
	return connect.Place{OS: "linux", Home: t.TempDir(), Project: t.TempDir(), Env: func(string) string { return "" }, Program: func(string) string { return "" }}
}

// written returns a session's file for a client.
func written(t *testing.T, main export.Main, at int, target Target) File {
	t.Helper()
	session, err := Cut(main, at)
	if err != nil {
		t.Fatal(err)
	}
	file, err := target.Write(&session, here(t), time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC))
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// lastNames are the identifiers of the last turns of a session, each once.
func lastNames(t *testing.T, main export.Main) []string {
	t.Helper()
	var messages []conversation.Message
	var digests []conversation.Digest
	for _, raw := range main.Messages {
		message, err := formats.Parse(main.Format, raw)
		if err != nil {
			t.Fatal(err)
		}
		messages = append(messages, message)
		digests = append(digests, conversation.Digest{Role: message.Role, Flags: message.Flags()})
	}
	turns := conversation.Turns(digests)
	from := turns[max(0, len(turns)-keptTurns)].From
	known := map[string]bool{}
	var names []string
	for _, of := range fidelity.NamesOf(messages[from:]).All {
		for _, name := range of {
			if !known[name] {
				known[name] = true
				names = append(names, name)
			}
		}
	}
	return names
}

// Of each pair of clients: the next client has at least 95 % of what the last 20 turns name, and its first request is one that the provider takes.
func TestEveryClientContinuesSessionsOfEveryOther(t *testing.T) {
	t.Parallel()
	for _, source := range sources(t) {
		names := lastNames(t, source.main)
		for _, target := range Targets() {
			t.Run(source.name+" in "+target.ID, func(t *testing.T) {
				t.Parallel()
				format, body := request(t, target, written(t, source.main, -1, target))
				if err := providerdouble.NewHandler(providerdouble.Config{Window: 2_000_000}).Judge(format, nil, body); err != nil {
					t.Errorf("the provider refuses the first request: %v", err)
				}
				var value any
				if err := json.Unmarshal(body, &value); err != nil {
					t.Fatal(err)
				}
				var text strings.Builder
				textOf(value, &text)
				held, lost := 0, []string{}
				for _, name := range names {
					if strings.Contains(text.String(), name) {
						held++
					} else if len(lost) < 10 {
						lost = append(lost, name)
					}
				}
				share := float64(held) / float64(len(names))
				t.Logf("%d of %d identifiers, %.1f %%", held, len(names), 100*share)
				if len(names) < 20 || share < 0.95 {
					t.Errorf("%d of %d identifiers of the last %d turns are there, lost %q", held, len(names), keptTurns, lost)
				}
				carried, is := client.CarriedFrom(1, func(int) (conversation.Message, error) { return firstUser(t, format, value), nil })
				if want := (client.Carried{Client: source.main.Client, Session: source.main.ID, Thread: source.main.Lane, Last: len(source.main.Messages) - 1}); !is || carried != want {
					t.Errorf("the proxy reads %+v of the first request, want %+v", carried, want)
				}
			})
		}
	}
}

// firstUser returns the first message of a request.
func firstUser(t *testing.T, format string, body any) conversation.Message {
	t.Helper()
	list, is := body.(object)["messages"].([]any)
	if !is {
		list = body.(object)["input"].([]any)
	}
	raw, err := json.Marshal(list[0])
	if err != nil {
		t.Fatal(err)
	}
	message, err := formats.Parse(conversation.Format(format), raw)
	if err != nil {
		t.Fatal(err)
	}
	return message
}
