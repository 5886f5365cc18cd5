package semanticcache

import (
	"slices"
	"strings"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/wire"
)

// MaxAnswer is the largest answer that is kept, in bytes as the provider sent it.
const MaxAnswer = 256 << 10

// Answered is what is known of an answer that has come to its end.
type Answered struct {
	Rules      wire.Reuse // of its format
	Complete   bool       // it reached its regular end
	StopReason string     // as the provider names it
	Messages   []conversation.Message
}

// IsKept reports whether an answer may be given again: a whole one that says
// something and calls no tool, and that neither the provider nor a limit cut short.
func (a Answered) IsKept() bool {
	if !a.Complete || !slices.Contains(a.Rules.Ends, a.StopReason) || len(a.Messages) == 0 {
		return false
	}
	says := false
	for _, message := range a.Messages {
		for _, block := range message.Blocks {
			switch block.Kind {
			case conversation.Text:
				says = says || strings.TrimSpace(block.Text) != ""
			case conversation.Thinking:
			default:
				return false
			}
		}
	}
	return says
}
