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
// portable is false if it belongs to the very prompt that it answered, as signed
// thinking does, so that it may not answer another wording.
func (a Answered) IsKept() (kept, portable bool) {
	if !a.Complete || !slices.Contains(a.Rules.Ends, a.StopReason) || len(a.Messages) == 0 {
		return false, false
	}
	says := false
	portable = true
	for _, message := range a.Messages {
		for _, block := range message.Blocks {
			switch block.Kind {
			case conversation.Text:
				says = says || strings.TrimSpace(block.Text) != ""
			case conversation.Thinking:
				portable = false
			default:
				return false, false
			}
		}
	}
	return says, says && portable
}
