package sessiontest_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/wire/sessiontest"
)

func formats() []conversation.Format {
	return []conversation.Format{conversation.Anthropic, conversation.OpenAIChat, conversation.OpenAIResponses}
}

func rich(format conversation.Format) sessiontest.Options {
	return sessiontest.Options{
		Format: format, Turns: 80, Parallel: true, Thinking: true, Images: true, CJK: true, HugeResults: true, ToolErrors: true,
		Reminders: true, CacheMarkers: true, SessionID: "s-1",
	}
}

func TestTheSameSeedWritesTheSameSession(t *testing.T) {
	t.Parallel()
	for _, format := range formats() {
		one, two, other := sessiontest.Generate(7, rich(format)), sessiontest.Generate(7, rich(format)), sessiontest.Generate(8, rich(format))
		for _, step := range []int{0, 13, one.Steps() - 1} {
			if !bytes.Equal(one.Body(step), two.Body(step)) {
				t.Fatalf("%s: step %d differs between two runs", format, step)
			}
		}
		if bytes.Equal(one.Body(5), other.Body(5)) {
			t.Fatalf("%s: two seeds write the same body", format)
		}
	}
}

// parsed is a body cut at its list.
func parsed(t *testing.T, body []byte) (map[string]json.RawMessage, []json.RawMessage) {
	t.Helper()
	var members map[string]json.RawMessage
	if err := json.Unmarshal(body, &members); err != nil {
		t.Fatal(err)
	}
	list := members["messages"]
	if list == nil {
		list = members["input"]
	}
	var messages []json.RawMessage
	if err := json.Unmarshal(list, &messages); err != nil {
		t.Fatal(err)
	}
	return members, messages
}

func TestEachStepContinuesTheOneBefore(t *testing.T) {
	t.Parallel()
	for _, format := range formats() {
		session := sessiontest.Generate(3, rich(format))
		if session.Steps() != 80 {
			t.Fatalf("%s: %d steps, want one for each turn", format, session.Steps())
		}
		var before []json.RawMessage
		for step, body := range session.Bodies() {
			_, messages := parsed(t, body)
			if len(messages) != len(session.Messages(step)) || len(messages) <= len(before) {
				t.Fatalf("%s: step %d has %d messages after %d", format, step, len(messages), len(before))
			}
			for i, message := range before[:max(0, len(before)-1)] {
				if !bytes.Equal(message, messages[i]) {
					t.Fatalf("%s: step %d changes message %d", format, step, i)
				}
			}
			if last := messages[len(messages)-1]; bytes.Contains(last[:40], []byte(`"assistant"`)) {
				t.Fatalf("%s: step %d ends with an answer", format, step)
			}
			before = messages
		}
	}
}

func TestOptionsShowInTheBodies(t *testing.T) {
	t.Parallel()
	for _, format := range formats() {
		body := sessiontest.Generate(5, rich(format)).Body(79)
		plain := sessiontest.Generate(5, sessiontest.Options{Format: format, Turns: 80}).Body(79)
		signs := []string{"<system-reminder>", "image/png", "하", "the", "s-1", "tool_use_error"}
		switch format {
		case conversation.Anthropic:
			signs = append(signs, `"is_error":true`, `"signature"`, `"redacted_thinking"`, `"cache_control"`)
		case conversation.OpenAIResponses:
			signs = append(signs, `"encrypted_content"`, `"input_image"`)
		case conversation.OpenAIChat:
			signs = append(signs, `"image_url"`)
		}
		signs[2] = "캐시"
		for _, sign := range signs {
			if !bytes.Contains(body, []byte(sign)) {
				t.Errorf("%s: no %s in a session with everything", format, sign)
			}
			if sign != "the" && bytes.Contains(plain, []byte(sign)) {
				t.Errorf("%s: %s in a plain session", format, sign)
			}
		}
		if longest(t, body) < 80_000 || longest(t, plain) > 20_000 {
			t.Errorf("%s: longest messages have %d and %d bytes", format, longest(t, body), longest(t, plain))
		}
	}
}

func longest(t *testing.T, body []byte) int {
	t.Helper()
	_, messages := parsed(t, body)
	size := 0
	for _, message := range messages {
		size = max(size, len(message))
	}
	return size
}

func TestDirectivesAndFilesAreThoseOfTheBodies(t *testing.T) {
	t.Parallel()
	session := sessiontest.Generate(11, rich(conversation.Anthropic))
	var directives, modified []string
	edits := map[string]string{}
	_, messages := parsed(t, session.Body(session.Steps()-1))
	for _, raw := range messages {
		var message struct {
			Content []struct {
				Text  string `json:"text"`
				ID    string `json:"id"`
				Name  string `json:"name"`
				Input struct {
					File string `json:"file_path"`
				} `json:"input"`
				ToolUseID string `json:"tool_use_id"`
				IsError   bool   `json:"is_error"`
			} `json:"content"`
		}
		if err := json.Unmarshal(raw, &message); err != nil {
			t.Fatal(err)
		}
		for _, block := range message.Content {
			if _, order, ok := strings.Cut(block.Text, "\n"); ok && strings.HasPrefix(block.Text, "Step ") {
				directives = append(directives, order)
			}
			if block.Name == "Edit" {
				edits[block.ID] = block.Input.File
			}
			if file := edits[block.ToolUseID]; file != "" && !block.IsError && !slices.Contains(modified, file) {
				modified = append(modified, file)
			}
		}
	}
	if len(directives) == 0 || !slices.Equal(directives, session.Directives) {
		t.Errorf("directives are %q, the bodies have %q", session.Directives, directives)
	}
	if len(modified) == 0 || !slices.Equal(modified, session.Modified) {
		t.Errorf("modified files are %q, the bodies have %q", session.Modified, modified)
	}
	if len(session.Read) == 0 {
		t.Error("no file was read")
	}
}

func TestALongSessionHoldsEachMessageOnce(t *testing.T) {
	t.Parallel()
	options := rich(conversation.Anthropic)
	options.Turns = 600
	session := sessiontest.Generate(1, options)
	held, sent := 0, 0
	for _, message := range session.Messages(session.Steps() - 1) {
		held += len(message)
	}
	for step := range session.Steps() {
		for _, message := range session.Messages(step) {
			sent += len(message)
		}
	}
	if last := len(session.Body(session.Steps() - 1)); held > last || sent < 100*held {
		t.Fatalf("%d bytes held for %d sent; the last body has %d", held, sent, last)
	}
	if &session.Messages(1)[0][0] != &session.Messages(599)[0][0] {
		t.Fatal("two steps hold copies of their first message")
	}
}

func TestATargetIsMet(t *testing.T) {
	t.Parallel()
	for _, format := range formats() {
		for _, target := range []int{100_000, 400_000} {
			size := len(sessiontest.Generate(2, sessiontest.Options{Format: format, Turns: 200, Parallel: true, TargetTokens: target}).Body(199))
			if size < target*7/2 || size > target*9/2 {
				t.Errorf("%s: %d bytes for %d tokens", format, size, target)
			}
		}
	}
}

func TestModelsThatAdaptGetAdaptiveThinking(t *testing.T) {
	t.Parallel()
	for model, want := range map[string]string{
		"claude-sonnet-4-5": `"enabled"`, "claude-opus-4-5-20251101": `"enabled"`, "claude-opus-4-6": `"adaptive"`, "claude-opus-5-5": `"adaptive"`, "claude-sonnet-5": `"adaptive"`,
	} {
		body := sessiontest.Generate(1, sessiontest.Options{Model: model, Thinking: true, Turns: 2}).Body(0)
		members, _ := parsed(t, body)
		if !bytes.Contains(members["thinking"], []byte(want)) {
			t.Errorf("%s thinks with %s", model, members["thinking"])
		}
	}
}

func TestFactsStandWhereTheyAreSaidToAndAreComeBackTo(t *testing.T) {
	t.Parallel()
	for _, format := range formats() {
		session := sessiontest.Generate(5, sessiontest.Options{Format: format, Turns: 200, Parallel: true, ToolErrors: true, Facts: true})
		again := 0
		for _, fact := range session.Facts {
			first, last := -1, -1
			for i, message := range session.Messages(session.Steps() - 1) {
				if bytes.Contains(message, []byte(fact)) {
					last = i
					if first < 0 {
						first = i
					}
				}
			}
			if first < 0 {
				t.Errorf("%s: no message holds %s", format, fact)
			}
			if last > first {
				again++
			}
		}
		if len(session.Facts) < 40 || again < len(session.Facts)*3/4 {
			t.Errorf("%s: %d facts, %d come up again", format, len(session.Facts), again)
		}
	}
}

func TestAHeadIsAsLongAsAskedFor(t *testing.T) {
	t.Parallel()
	const tokens = 20_000
	body := sessiontest.Generate(1, sessiontest.Options{Turns: 2, HeadTokens: tokens}).Body(0)
	if size := len(body); size < tokens*7/2 || size > tokens*9/2 {
		t.Errorf("%d bytes for %d tokens", size, tokens)
	}
}
