package semanticcache

import (
	"slices"
	"strings"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/wire"
)

// MaxAnswer is the largest answer to keep, in bytes as the provider sent it.
const MaxAnswer = 256 << 10

// Answered is a finished answer.
type Answered struct {
	Rules      wire.Reuse // of its format
	Complete   bool       // it reached its regular end
	StopReason string     // as the provider names it
	Messages   []conversation.Message
}

// IsKept reports whether an answer may be given again: it is complete, has text and no tool call,
// and neither the provider nor a limit cut it short.
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
