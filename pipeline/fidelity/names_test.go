package fidelity_test

import (
	"slices"
	"strings"
	"testing"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/fidelity"
)

func said(role conversation.Role, kind conversation.Kind, text string) conversation.Message {
	return conversation.Message{Role: role, Blocks: []conversation.Block{{Kind: kind, Text: text}}}
}

func TestNamesThatLaterMessagesTakeUpAreCountedOnce(t *testing.T) {
	t.Parallel()
	names := fidelity.NamesOf([]conversation.Message{
		said(conversation.User, conversation.Text, "Look at src/lane/store.go."),
		said(conversation.User, conversation.ToolResult, "ResolveLane failed with 48213, neverUsed stays"),
		said(conversation.Assistant, conversation.Text, "ResolveLane, and again ResolveLane in src/lane/store.go, is not newName."),
		said(conversation.User, conversation.ToolResult, "48213 neverUsed"), // returned, not written
		said(conversation.Assistant, conversation.ToolCall, `{"pattern":"48213\nnewName"}`),
	})

	for _, one := range []struct {
		from, to int
		want     []string
	}{
		{2, 3, []string{"ResolveLane", "src/lane/store.go"}},
		{3, 4, nil},
		{3, 5, []string{"48213", "newName"}},
		{2, 5, []string{"ResolveLane", "src/lane/store.go", "48213"}},
		{5, 5, nil},
	} {
		if taken := names.TakenUp(one.from, one.to); !slices.Equal(taken, one.want) {
			t.Errorf("messages %d to %d take up %q, want %q", one.from, one.to, taken, one.want)
		}
	}
	const said = "of src/lane/store.go and 48213"
	prompt := func(name string) bool { return strings.Contains(said, name) }
	if held, of := names.Held(2, 5, prompt); held != 2 || of != 3 {
		t.Errorf("the prompt holds %d of %d", held, of)
	}
}

// FuzzIdentifiers: identifiers finds what the expression finds in the whole text.
func FuzzIdentifiers(f *testing.F) {
	f.Add("see https://a.example/x?y=1 and ./cmd/main.go:12, TestFoo, fooBar, MAX_LEN, ECONNREFUSED, AB-12, defaced, 1234 (x.py)")
	f.Add("a b\u00a0https://x/\u2003y\vz snake_case e\tEEXIST\r\nfacade7")
	f.Fuzz(func(t *testing.T, text string) {
		var want []string
		for _, one := range fidelity.Identifier.FindAllString(text, -1) {
			if one = strings.TrimRight(one, ".,;:-/"); len(one) >= 3 {
				want = append(want, one)
			}
		}
		if got := fidelity.Identifiers(text); !slices.Equal(got, want) {
			t.Errorf("%q has %q, want %q", text, got, want)
		}
	})
}
