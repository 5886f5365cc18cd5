package semanticcache_test

import (
	"math"
	"testing"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/modules/semanticcache"
	"palimpsest/pipeline/wire"
)

func TestOnlyWholeAnswersInWordsAreKept(t *testing.T) {
	t.Parallel()
	says := conversation.Block{Kind: conversation.Text, Text: "yes"}
	for name, test := range map[string]struct {
		format         conversation.Format
		reason         string
		blocks         []conversation.Block
		cut            bool
		kept, portable bool
	}{
		"anthropic":    {conversation.Anthropic, "end_turn", []conversation.Block{says}, false, true, true},
		"at a stop":    {conversation.Anthropic, "stop_sequence", []conversation.Block{says}, false, true, true},
		"chat":         {conversation.OpenAIChat, "stop", []conversation.Block{says}, false, true, true},
		"responses":    {conversation.OpenAIResponses, "completed", []conversation.Block{says}, false, true, true},
		"thinking":     {conversation.Anthropic, "end_turn", []conversation.Block{{Kind: conversation.Thinking}, says}, false, true, false},
		"cut":          {conversation.Anthropic, "end_turn", []conversation.Block{says}, true, false, false},
		"max_tokens":   {conversation.Anthropic, "max_tokens", []conversation.Block{says}, false, false, false},
		"refusal":      {conversation.Anthropic, "refusal", []conversation.Block{says}, false, false, false},
		"pause":        {conversation.Anthropic, "pause_turn", []conversation.Block{says}, false, false, false},
		"length":       {conversation.OpenAIChat, "length", []conversation.Block{says}, false, false, false},
		"filter":       {conversation.OpenAIChat, "content_filter", []conversation.Block{says}, false, false, false},
		"incomplete":   {conversation.OpenAIResponses, "max_output_tokens", []conversation.Block{says}, false, false, false},
		"call":         {conversation.Anthropic, "end_turn", []conversation.Block{says, {Kind: conversation.ToolCall}}, false, false, false},
		"opaque":       {conversation.OpenAIChat, "stop", []conversation.Block{says, {Kind: conversation.Opaque, Name: "refusal"}}, false, false, false},
		"empty":        {conversation.Anthropic, "end_turn", []conversation.Block{{Kind: conversation.Text, Text: " "}}, false, false, false},
		"only thought": {conversation.Anthropic, "end_turn", []conversation.Block{{Kind: conversation.Thinking}}, false, false, false},
		"no message":   {conversation.Anthropic, "end_turn", nil, false, false, false},
		"no format":    {"x", "stop", []conversation.Block{says}, false, false, false},
	} {
		var rules wire.Reuse
		if codec, known := codecs()[test.format]; known {
			rules = codec.Reuse()
		}
		answered := semanticcache.Answered{Rules: rules, Complete: !test.cut, StopReason: test.reason}
		if test.blocks != nil {
			answered.Messages = []conversation.Message{{Role: conversation.Assistant, Blocks: test.blocks}}
		}
		if kept, portable := answered.IsKept(); kept != test.kept || portable != test.portable {
			t.Errorf("%s: kept %t, portable %t", name, kept, portable)
		}
	}
}

func TestSimilarityIsTheCosine(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		a, b []float32
		want float64
	}{
		{[]float32{1, 0}, []float32{2, 0}, 1}, {[]float32{1, 0}, []float32{0, 3}, 0}, {[]float32{1, 1}, []float32{-1, -1}, -1},
		{[]float32{1, 0}, []float32{1, 1}, math.Sqrt2 / 2}, {[]float32{1}, []float32{1, 1}, 0}, {[]float32{0}, []float32{1}, 0}, {nil, nil, 0},
	} {
		if got := semanticcache.Similarity(test.a, test.b); math.Abs(got-test.want) > 1e-9 {
			t.Errorf("%v and %v: %f, want %f", test.a, test.b, got, test.want)
		}
	}
}
