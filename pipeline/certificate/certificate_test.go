package certificate_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"palimpsest/pipeline/certificate"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/ledger"
	"palimpsest/pipeline/session"
)

// originals is a conversation of eight messages, six of which a projection stands for.
func originals() *certificate.Originals {
	block := func(kind conversation.Kind, id, name, text string, failed bool) conversation.Block {
		return conversation.Block{Kind: kind, ID: id, Name: name, Text: text, IsError: failed}
	}
	message := func(role conversation.Role, blocks ...conversation.Block) conversation.Message {
		return conversation.Message{Role: role, Blocks: blocks}
	}
	turns := [][]conversation.Message{
		{
			message(conversation.User, block(conversation.Text, "", "", "Always run\nthe \"tests\".", false)),
			message(conversation.Assistant,
				block(conversation.Text, "", "", "We'll use Postgres for the queue, because it is there already.", false),
				block(conversation.ToolCall, "1", "Edit", `{"file_path":"/p/cmd/a.go","old_string":"a","new_string":"b"}`, false),
				block(conversation.ToolCall, "2", "TodoWrite", `{"todos":[{"content":"Write the docs","status":"pending"},{"content":"Old","status":"completed"}]}`, false)),
			message(conversation.User, block(conversation.ToolResult, "1", "", "ok", false), block(conversation.ToolResult, "2", "", "ok", false)),
		},
		{
			message(conversation.Assistant,
				block(conversation.ToolCall, "3", "Bash", `{"command":"go test ./a"}`, false),
				block(conversation.ToolCall, "4", "Bash", `{"command":"go vet ./b"}`, false)),
			message(conversation.User, block(conversation.ToolResult, "3", "", "Exit code 1\nFAIL", true), block(conversation.ToolResult, "4", "", "Exit code 1\nx", true)),
		},
		{message(conversation.Assistant, block(conversation.Text, "", "", "The first parser didn't work because of the comments.", false))},
	}
	all, first := certificate.NewOriginals(ledger.NewMemo()), 0
	for _, turn := range turns {
		all.Add(first, turn, ledger.Calls(first, turn))
		first += len(turn)
	}
	later := []conversation.Message{
		message(conversation.Assistant, block(conversation.ToolCall, "5", "Bash", `{"command":"go test ./..."}`, false)),
		message(conversation.User, block(conversation.ToolResult, "5", "", "ok  \tp/a", false)),
	}
	all.Follow(ledger.Calls(first, later))
	return all
}

// raw writes a message that says a text.
func raw(t *testing.T, text string) json.RawMessage {
	t.Helper()
	written, err := json.Marshal(map[string]string{"role": "user", "content": text})
	if err != nil {
		t.Fatal(err)
	}
	return written
}

func line(what string, all, inPrompt, archived int, missing ...int) session.Kept {
	return session.Kept{What: what, All: all, InPrompt: inPrompt, Archived: archived, Missing: missing}
}

func TestCertificateCountsWhatIsInThePromptOrOneRecallAway(t *testing.T) {
	t.Parallel()
	const whole = "#0 User: Always run\n  the \"tests\".\n#1 We'll use Postgres for the queue, because it is there already. Write the docs\nchanged: cmd/a.go\n" +
		"#3 go vet ./b\nThe first parser didn't work because of the comments."
	for _, test := range []struct {
		name, text string
		want       session.Certificate
	}{
		{"all of it", whole, session.Certificate{
			line("orders", 1, 1, 0), line("typed messages", 1, 1, 0), line("plan", 0, 0, 0), line("open tasks", 1, 1, 0), line("changed files", 1, 1, 0),
			line("open errors", 1, 1, 0), line("decisions", 1, 1, 0), line("failed attempts", 1, 1, 0),
		}},
		{"only pointers", "[turns 1–3, #0–#5] something", session.Certificate{
			line("orders", 1, 0, 1), line("typed messages", 1, 0, 1), line("plan", 0, 0, 0), line("open tasks", 1, 0, 1), line("changed files", 1, 0, 1),
			line("open errors", 1, 0, 1), line("decisions", 1, 0, 1), line("failed attempts", 1, 0, 1),
		}},
		{"no pointer", "The originals are archived: #0 is message 0 of archive x; recall_get x#1, &#3", session.Certificate{
			line("orders", 1, 0, 0, 0), line("typed messages", 1, 0, 0, 0), line("plan", 0, 0, 0), line("open tasks", 1, 0, 0, 1), line("changed files", 1, 0, 0, 1),
			line("open errors", 1, 0, 0, 3), line("decisions", 1, 0, 0, 1), line("failed attempts", 1, 0, 0, 5),
		}},
	} {
		projection := &session.Projection{Covers: 6, Parts: []session.Part{{From: 0, To: 6, Level: 2, Raw: raw(t, test.text), Messages: 1}}}
		got := certificate.Make(projection, originals())
		if !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s:\n%+v, want\n%+v", test.name, got, test.want)
		}
		if got.IsComplete() != (test.name != "no pointer") {
			t.Errorf("%s: complete %v, %d lost", test.name, got.IsComplete(), got.Lost())
		}
	}
}

// Messages that go out as they came hold all that they say.
func TestOriginalsInTheProjectionLoseNothing(t *testing.T) {
	t.Parallel()
	projection := &session.Projection{Covers: 6, Parts: []session.Part{{From: 0, To: 6}}}
	for _, kept := range certificate.Make(projection, originals()) {
		if kept.InPrompt != kept.All {
			t.Errorf("%s", &kept)
		}
	}
}

// Texts are compared as the model reads them, whatever the JSON of the message escapes.
func TestTextsAreComparedDecoded(t *testing.T) {
	t.Parallel()
	projection := &session.Projection{Covers: 6, Parts: []session.Part{
		{From: 0, To: 1, Level: 1, Raw: json.RawMessage(`{"content":"\u0041lways run\nthe \"tests\".","x":"\ud83d\ude00\t\u00e9"}`), Messages: 1},
		{From: 1, To: 6},
	}}
	if got := certificate.Make(projection, originals()); got[0].InPrompt != 1 || !got.IsComplete() {
		t.Errorf("%+v", got)
	}
}
