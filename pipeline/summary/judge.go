package summary

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/wire"
)

// The reasons for which an answer is rejected. Other reasons are "provider_<status>" and
// "missing_<section>".
const (
	ReasonEmpty       = "empty"          // only white space
	ReasonReasoning   = "reasoning_only" // thoughts without an answer
	ReasonTruncated   = "truncated"      // it had no room to end
	ReasonToolCall    = "tool_call"      // it called a tool
	ReasonRefusal     = "refusal"
	ReasonError       = "error_text" // an error in place of an answer
	ReasonBroken      = "broken"     // the answer did not reach its end
	ReasonLarger      = "larger"     // than the replaced turns
	ReasonCoverage    = "coverage"   // the person's orders do not fit
	ReasonOverflow    = "overflow"   // the provider rejects every form of the request as too long
	ReasonTimeout     = "timeout"
	ReasonUnreachable = "unreachable"
	ReasonNoProvider  = "no_provider"  // the workspace has no key for it
	ReasonBudget      = "budget"       // its workspace or key has reached its budget
	ReasonNotArchived = "not_archived" // the originals are not durable yet
)

// rejection is why an answer is not used.
type rejection struct{ reason string }

// Error implements error.
func (r rejection) Error() string { return "summary rejected: " + r.reason }

func reject(reason string) error { return rejection{reason: reason} }

// Reply is a provider's answer.
type Reply struct {
	Status int
	Stream bool // Body is a stream of events
	Body   []byte
}

// read returns the text of a provider's answer. A bad answer is a rejection. It returns the usage
// in any case.
func (r Reply) read(codec wire.Codec) (text string, usage wire.Usage, err error) {
	if r.Status != http.StatusOK {
		return "", wire.Usage{}, reject(fmt.Sprintf("provider_%d", r.Status))
	}
	tap := codec.Tap(r.Stream)
	_, _ = tap.Write(r.Body)
	answer := tap.Answer()
	text, err = answerText(codec, answer)
	return text, answer.Usage, err
}

// answerText returns the text of an answer without any other content.
func answerText(codec wire.Codec, answer wire.Answer) (string, error) {
	switch {
	case answer.ErrorType != "":
		return "", reject(ReasonError)
	case isRefusal(answer.StopReason):
		return "", reject(ReasonRefusal)
	case isCut(answer.StopReason):
		return "", reject(ReasonTruncated)
	case !answer.Complete:
		return "", reject(ReasonBroken)
	}
	var text strings.Builder
	thought := false
	for _, raw := range answer.Messages {
		message, err := codec.Parse(raw)
		if err != nil {
			return "", reject(ReasonBroken)
		}
		flags := message.Flags()
		if flags.Has(conversation.HasCall | conversation.HasPending) {
			return "", reject(ReasonToolCall)
		}
		if holdsRefusal(raw) {
			return "", reject(ReasonRefusal)
		}
		thought = thought || flags.Has(conversation.HasThinking)
		for i := range message.Blocks {
			if block := &message.Blocks[i]; block.Kind == conversation.Text {
				text.WriteString(block.Text)
			}
		}
	}
	said := strings.TrimSpace(strings.ReplaceAll(strings.ToValidUTF8(text.String(), "\uFFFD"), "\x00", ""))
	switch {
	case said == "" && thought:
		return "", reject(ReasonReasoning)
	case said == "":
		return "", reject(ReasonEmpty)
	default:
		return said, nil
	}
}

// isRefusal reports whether the provider or the model refused to answer.
func isRefusal(stopReason string) bool {
	switch stopReason {
	case "refusal", "content_filter", "safety", "prohibited_content", "blocklist", "spii", "recitation":
		return true
	default:
		return false
	}
}

// isCut reports whether an answer ended for lack of room.
func isCut(stopReason string) bool {
	switch stopReason {
	case "max_tokens", "length", "max_output_tokens", "model_context_window_exceeded", "incomplete":
		return true
	default:
		return false
	}
}

// holdsRefusal reports whether a message of OpenAI's carries a refusal.
func holdsRefusal(raw []byte) bool {
	if refusal := wire.Text(raw, "refusal"); refusal != "" {
		return true
	}
	for _, part := range wire.Elements(wire.Get(raw, "content")) {
		if bytes.Contains(part, []byte(`"refusal"`)) && wire.Text(part, "type") == "refusal" {
			return true
		}
	}
	return false
}

// unfit returns the reason for rejecting a text without sections: an error, a refusal, or another
// text.
func unfit(text, missing string) string {
	start := strings.ToLower(text[:min(len(text), 80)])
	for _, opening := range []string{"error", "api error", "{\"error", "{\"type\":\"error", "exception", "upstream", "internal server", "traceback"} {
		if strings.HasPrefix(start, opening) {
			return ReasonError
		}
	}
	for _, opening := range []string{"i can't", "i can’t", "i cannot", "i'm sorry", "i’m sorry", "i am sorry", "i'm unable", "i am unable", "sorry"} {
		if strings.HasPrefix(start, opening) {
			return ReasonRefusal
		}
	}
	return "missing_" + strings.ReplaceAll(strings.ReplaceAll(missing, " & ", "_and_"), " ", "_")
}
