package client

import (
	"slices"
	"strings"

	"palimpsest/pipeline/expression"
	"palimpsest/pipeline/wire"
)

// Form is the expected form of a summary that a client asks for.
type Form string

// The forms of summaries.
const (
	Tagged   Form = "tagged"   // <analysis>, then <summary>: Claude Code
	Handover Form = "handover" // plain text for the next model: Codex
)

// Wanted is a client's request for a summary of the history before it.
type Wanted struct {
	Form    Form
	Message int // index of the message whose last text is the request
}

// The reasons why only a model can write a requested summary.
const (
	UnknownRequest     = "the client's request for a summary is not one that is known"
	CustomInstructions = "the summary is to follow instructions"
)

// The parts of Claude Code's request. Between the last example and the reminder are the instructions of a
// person or a hook for the summary.
const (
	claudeOpening  = "CRITICAL: Respond with TEXT ONLY. Do NOT call any tools."
	claudeTask     = "Your task is to create a detailed summary of the conversation so far, paying close attention to the user's explicit requests and your previous actions."
	claudeTags     = "an <analysis> block followed by a <summary> block"
	claudeReminder = "REMINDER: Do NOT call any tools."
	claudeCustom   = "\nAdditional Instructions:\n"
	claudeExample  = "</example>"
)

// codexRequest is Codex' request, which its settings can replace.
const codexRequest = `You are performing a CONTEXT CHECKPOINT COMPACTION. Create a handoff summary for another LLM that will resume the task.

Include:
- Current progress and key decisions made
- Important context, constraints, or user preferences
- What remains to be done (clear next steps)
- Any critical data, examples, or references needed to continue

Be concise, structured, and focused on helping the next LLM seamlessly continue the work.`

// WantedSummary returns which summary the last message of a body asks for. It returns a reason why only a
// model can write it, unless the request is word for word that of a known client.
func WantedSummary(body *wire.Envelope) (wanted Wanted, reason string) {
	r := &reading{body: body, last: -1}
	r.readLast()
	asked, asks := r.ownRequest()
	if !asks || asked.kind != Compaction {
		return Wanted{}, UnknownRequest
	}
	wanted.Message = r.last
	said := lastText(body.Element(r.last))
	switch asked.client {
	case ClaudeCode:
		wanted.Form, reason = Tagged, claudeReason(said.String())
	case Codex:
		wanted.Form = Handover
		if strings.TrimSpace(said.String()) != codexRequest {
			reason = CustomInstructions
		}
	default:
		reason = UnknownRequest
	}
	return wanted, reason
}

// claudeReason returns why a Claude Code request for a summary differs from the plain one; "" if it is the
// plain one.
func claudeReason(request string) string {
	if !strings.HasPrefix(strings.TrimSpace(request), claudeOpening) || !strings.Contains(request, claudeTask) || !strings.Contains(request, claudeTags) {
		return UnknownRequest // of a part of the conversation, or in another form
	}
	if strings.Contains(request, claudeCustom) {
		return CustomInstructions
	}
	last := strings.LastIndex(request, claudeExample)
	if last < 0 {
		return UnknownRequest
	}
	end := strings.TrimSpace(request[last+len(claudeExample):])
	if !strings.HasPrefix(end, claudeReminder) || strings.Contains(end, "\n") {
		return CustomInstructions
	}
	return ""
}

// instructions matches headings for instructions on how to summarize conversations, in the files that clients
// put into a prompt.
var instructions = expression.New(`(?im)^[#*\s]{1,8}(?:compact(?:ion)?|summar(?:y|ization)) instructions\b`)

// InstructsSummaries reports whether a client's text contains instructions on how to summarize conversations.
func InstructsSummaries(text string) bool { return instructions.MatchString(text) }

// WantsText reports whether a request asks for one text answer that the provider does not store.
func WantsText(body *wire.Envelope) bool {
	for _, name := range [...]string{"stop_sequences", "stop"} {
		if raw, has := body.Member(name); has && wire.HasElements(raw) {
			return false
		}
	}
	if choice, has := body.Member("tool_choice"); has && !isOneOf(choice, `"auto"`, `"none"`) && !isOneOf(wire.Get(choice, "type"), `"auto"`, `"none"`) {
		return false
	}
	if wire.RestrictsAnswer(body) {
		return false
	}
	if text, has := body.Member("text"); has {
		if kind := wire.Get(wire.Get(text, "format"), "type"); len(kind) > 0 && string(kind) != `"text"` {
			return false
		}
	}
	if format, has := body.Member("output_format"); has && !wire.IsNull(format) {
		return false
	}
	if config, has := body.Member("output_config"); has && len(wire.Get(config, "format")) > 0 {
		return false
	}
	if background, has := body.Member("background"); has && string(background) != "false" {
		return false
	}
	store, stores := body.Member("store")
	_, isResponses := body.Member("input")
	return !isResponses || stores && string(store) == "false"
}

func isOneOf(raw []byte, words ...string) bool { return slices.Contains(words, string(raw)) }
