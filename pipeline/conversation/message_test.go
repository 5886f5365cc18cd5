package conversation_test

import (
	"encoding/json"
	"testing"

	"palimpsest/pipeline/conversation"
)

func TestReplaceKeepsWhatABlockIsAndLeavesTheOriginalMessageAlone(t *testing.T) {
	t.Parallel()

	sent := conversation.Message{
		Role: conversation.User, Raw: json.RawMessage(`{"role":"user"}`),
		Blocks: []conversation.Block{
			{Kind: conversation.Text, Text: "question", Raw: json.RawMessage(`1`)},
			{
				Kind: conversation.ToolResult, ID: "t1", Text: "long", IsError: true, Raw: json.RawMessage(`2`),
				Media: []conversation.Attachment{{Type: "image/png", Size: 5}},
			},
		},
	}
	changed := sent
	changed.Replace(1, "short")

	if block := sent.Blocks[1]; block.Text != "long" || block.Raw == nil || sent.Changed {
		t.Errorf("the original changed: %+v", sent)
	}
	block := changed.Blocks[1]
	if !changed.Changed || block.Kind != conversation.ToolResult || block.ID != "t1" || !block.IsError {
		t.Errorf("the block is another one: %+v", changed)
	}
	if block.Text != "short" || block.Raw != nil || block.Media != nil {
		t.Errorf("the block holds %+v", block)
	}
	if string(changed.Blocks[0].Raw) != "1" || string(changed.Raw) != `{"role":"user"}` {
		t.Errorf("the rest changed: %+v", changed)
	}
}

func TestFlagsSayWhatAMessageHolds(t *testing.T) {
	t.Parallel()

	block := func(kind conversation.Kind, text string) conversation.Block {
		return conversation.Block{Kind: kind, Text: text}
	}
	picture := conversation.Block{Kind: conversation.ToolResult, Media: []conversation.Attachment{{Type: "image/png"}}}
	for _, test := range []struct {
		name    string
		message conversation.Message
		want    conversation.Flags
	}{
		{"nothing", conversation.Message{Role: conversation.User}, 0},
		{"typed", conversation.Message{Role: conversation.User, Blocks: []conversation.Block{block(conversation.Text, "x")}}, conversation.HasTyped},
		{"an answer is not typed", conversation.Message{Role: conversation.Assistant, Blocks: []conversation.Block{block(conversation.Text, "x")}}, 0},
		{"a reminder is not typed", conversation.Message{Role: conversation.User, Blocks: []conversation.Block{block(conversation.Text, "<system-reminder>x</system-reminder>")}}, 0},
		{"results only", conversation.Message{Role: conversation.User, Blocks: []conversation.Block{block(conversation.ToolResult, "x")}}, conversation.HasResult},
		{"a result with a picture", conversation.Message{Role: conversation.Tool, Blocks: []conversation.Block{picture}}, conversation.HasResult | conversation.HasMedia},
		{
			"everything else", conversation.Message{Role: conversation.Assistant, Traits: conversation.IsPart | conversation.IsPinned, Blocks: []conversation.Block{
				block(conversation.Thinking, "x"), block(conversation.ToolCall, "{}"), block(conversation.Media, ""), block(conversation.Opaque, ""),
			}},
			conversation.HasThinking | conversation.HasCall | conversation.HasMedia | conversation.HasOpaque | conversation.IsPart | conversation.IsPinned,
		},
	} {
		if got := test.message.Flags(); got != test.want {
			t.Errorf("%s: %010b, want %010b", test.name, got, test.want)
		}
	}
}

func TestHasAsksForAnyOfTheFlags(t *testing.T) {
	t.Parallel()

	flags := conversation.HasCall | conversation.HasThinking
	if !flags.Has(conversation.HasCall|conversation.HasMedia) || flags.Has(conversation.HasMedia|conversation.IsPinned) || flags.Has(0) {
		t.Errorf("%b", flags)
	}
}

func TestTextIsTypedUnlessAllOfItIsInjected(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]bool{
		"":      false,
		" \n\t": false,
		"hello": true,
		"Base directory for this skill: /s\n\nReview it.": false,
		"<b>":                                  true,
		"<system-reminder>x</system-reminder>": false,
		" <system-reminder>\nx\n</system-reminder>\n":                             false,
		"<system-reminder>x</system-reminder><system-reminder></system-reminder>": false,
		"<system-reminder>x</system-reminder> and you?":                           true,
		"why? <system-reminder>x</system-reminder>":                               true,
		"<system-reminder>never closed":                                           true,
		"</system-reminder>":                                                      true,
		"<environment_context>\n<cwd>/</cwd>\n</environment_context>":             false,
		"<user_instructions>be brief</user_instructions>":                         false,
		"<local-command-stdout>ok</local-command-stdout>\n":                       false,
		"<div>typed <system-reminder>x</system-reminder></div>":                   true,
	} {
		if got := conversation.IsTyped(text); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func TestRemindersAreTakenOutWhereverTheyStand(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]string{
		"a": "a",
		"a<system-reminder>1</system-reminder>b<system-reminder>2</system-reminder>c": "abc",
		"<system-reminder>1</system-reminder>":                                        "",
		"a<system-reminder>1</system-reminder>b<system-reminder>open":                 "ab<system-reminder>open",
		"<environment_context>stays</environment_context>":                            "<environment_context>stays</environment_context>",
	} {
		if got := conversation.WithoutReminders(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// C5: a link tells histories apart by content and order.
func TestLinksOfAChainDependOnEveryMessageBefore(t *testing.T) {
	t.Parallel()

	a, b := conversation.Hash{1}, conversation.Hash{2}
	root := conversation.Hash{}
	ab := conversation.Extend(conversation.Extend(root, a), b)
	if ab != conversation.Extend(conversation.Extend(root, a), b) {
		t.Error("the same history has two links")
	}
	seen := map[conversation.Hash]bool{ab: true}
	for _, other := range []conversation.Hash{
		conversation.Extend(conversation.Extend(root, b), a), conversation.Extend(root, b), conversation.Extend(root, a),
		conversation.Extend(conversation.Extend(a, a), b), root,
	} {
		if seen[other] {
			t.Errorf("two histories have the link %x", other[:4])
		}
		seen[other] = true
	}
}
