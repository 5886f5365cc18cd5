package semanticcache_test

import (
	"testing"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/modules/semanticcache"
	"palimpsest/pipeline/wire"
)

func TestOnlyWholeAnswersInWordsAreKept(t *testing.T) {
	t.Parallel()
	says := conversation.Block{Kind: conversation.Text, Text: "yes"}
	for name, test := range map[string]struct {
		format conversation.Format
		reason string
		blocks []conversation.Block
		cut    bool
		kept   bool
	}{
		"anthropic":    {conversation.Anthropic, "end_turn", []conversation.Block{says}, false, true},
		"at a stop":    {conversation.Anthropic, "stop_sequence", []conversation.Block{says}, false, true},
		"chat":         {conversation.OpenAIChat, "stop", []conversation.Block{says}, false, true},
		"responses":    {conversation.OpenAIResponses, "completed", []conversation.Block{says}, false, true},
		"thinking":     {conversation.Anthropic, "end_turn", []conversation.Block{{Kind: conversation.Thinking}, says}, false, true},
		"cut":          {conversation.Anthropic, "end_turn", []conversation.Block{says}, true, false},
		"max_tokens":   {conversation.Anthropic, "max_tokens", []conversation.Block{says}, false, false},
		"refusal":      {conversation.Anthropic, "refusal", []conversation.Block{says}, false, false},
		"pause":        {conversation.Anthropic, "pause_turn", []conversation.Block{says}, false, false},
		"length":       {conversation.OpenAIChat, "length", []conversation.Block{says}, false, false},
		"filter":       {conversation.OpenAIChat, "content_filter", []conversation.Block{says}, false, false},
		"incomplete":   {conversation.OpenAIResponses, "max_output_tokens", []conversation.Block{says}, false, false},
		"call":         {conversation.Anthropic, "end_turn", []conversation.Block{says, {Kind: conversation.ToolCall}}, false, false},
		"opaque":       {conversation.OpenAIChat, "stop", []conversation.Block{says, {Kind: conversation.Opaque, Name: "refusal"}}, false, false},
		"empty":        {conversation.Anthropic, "end_turn", []conversation.Block{{Kind: conversation.Text, Text: " "}}, false, false},
		"only thought": {conversation.Anthropic, "end_turn", []conversation.Block{{Kind: conversation.Thinking}}, false, false},
		"no message":   {conversation.Anthropic, "end_turn", nil, false, false},
		"no format":    {"x", "stop", []conversation.Block{says}, false, false},
	} {
		var rules wire.Reuse
		if codec, known := codecs()[test.format]; known {
			rules = codec.Reuse()
		}
		answered := semanticcache.Answered{Rules: rules, Complete: !test.cut, StopReason: test.reason}
		if test.blocks != nil {
			answered.Messages = []conversation.Message{{Role: conversation.Assistant, Blocks: test.blocks}}
		}
		if kept := answered.IsKept(); kept != test.kept {
			t.Errorf("%s: kept %t", name, kept)
		}
	}
}
