package compactionbridge

import (
	"encoding/json"
	"slices"
	"strings"

	"palimpsest/pipeline"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/ledger"
)

// present is the content of the new prompt: the client's summary and everything that it kept or
// sends again.
type present struct {
	text     string
	messages map[string]bool // keyed by content
	lines    map[string]bool // of text, without line numbers and surrounding blanks
}

// presentIn reads the prompt of an exchange.
func presentIn(exchange *pipeline.View) (present, error) {
	holds := present{messages: map[string]bool{}}
	var text strings.Builder
	for _, part := range exchange.Request.Fixed {
		writeStrings(&text, part)
	}
	for i := range exchange.Conversation.Digests {
		message, err := exchange.Conversation.Message(i)
		if err != nil {
			return present{}, err
		}
		holds.messages[saying(&message)] = true
		for j := range message.Blocks {
			switch block := &message.Blocks[j]; block.Kind {
			case conversation.Text, conversation.ToolResult:
				text.WriteString(block.Text + "\n")
			case conversation.ToolCall:
				writeStrings(&text, json.RawMessage(block.Text))
			case conversation.Thinking, conversation.Media, conversation.Opaque:
			}
		}
	}
	holds.read(text.String())
	return holds, nil
}

// read uses a text as the whole content of the prompt.
func (p *present) read(text string) {
	p.text, p.lines = text, map[string]bool{}
	for part := range strings.SplitSeq(text, "\n") {
		if _, rest, ok := numbered(part); ok {
			part = rest
		}
		if part = strings.TrimSpace(part); len(part) > distinct {
			p.lines[part] = true
		}
	}
}

// writeStrings adds a JSON text as people read it.
func writeStrings(text *strings.Builder, raw json.RawMessage) {
	plain := strings.NewReplacer(`\n`, "\n", `\t`, "\t", `\"`, `"`, `\\`, `\`, `\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(string(raw))
	text.WriteString(plain + "\n")
}

// saying returns a key that is equal for messages with the same content: it ignores ids, cache
// markers, reminders and thinking.
func saying(message *conversation.Message) string {
	var text strings.Builder
	text.WriteString(string(message.Role))
	for i := range message.Blocks {
		block := &message.Blocks[i]
		switch block.Kind {
		case conversation.Text, conversation.ToolCall, conversation.ToolResult:
			if said := strings.TrimSpace(conversation.WithoutReminders(block.Text)); said != "" {
				text.WriteString("\x00" + string(block.Kind) + said)
			}
		case conversation.Media, conversation.Opaque:
			text.WriteString("\x00" + string(block.Kind))
		case conversation.Thinking:
		}
	}
	return text.String()
}

// comparison is the content of a history that the new prompt lacks.
type comparison struct {
	history *history
	present present
	missing ledger.Missing
	turns   []turn // the newest ones, if the client kept no turns

	directives, files, errors, decisions int // in the history
}

// compare finds the content of a history that the new prompt lacks. Instruction files do not count
// because clients send them with every request.
func compare(left *history, lastTurns int, holds present) *comparison {
	found := &comparison{history: left, present: holds, missing: left.ledger.Missing(holds.text)}
	found.missing.Directives = withoutInstructions(found.missing.Directives)
	found.directives = len(withoutInstructions(left.ledger.Directives))
	for i := range left.ledger.Files {
		if file := &left.ledger.Files[i]; file.Modified != ledger.Never && !file.Gone {
			found.files++
		}
	}
	for i := range left.ledger.Errors {
		if left.ledger.Errors[i].Open() {
			found.errors++
		}
	}
	found.decisions = len(left.ledger.Decisions)
	found.turns = dropped(left.turns, lastTurns, holds)
	return found
}

func withoutInstructions(directives []ledger.Directive) []ledger.Directive {
	var kept []ledger.Directive
	for _, directive := range directives {
		if directive.Kind != ledger.Instructions {
			kept = append(kept, directive)
		}
	}
	return kept
}

// dropped returns the newest turns after the last answer that the client kept, at most so many,
// oldest first. It returns no turns if the client kept its tail.
func dropped(turns []turn, most int, holds present) []turn {
	var gone []turn
	for i := len(turns) - 1; i >= 0 && len(gone) < most; i-- {
		missing := false
		for j := range turns[i].messages {
			message := &turns[i].messages[j]
			kept := holds.messages[saying(message)]
			if kept && message.Role == conversation.Assistant {
				slices.Reverse(gone)
				return gone
			}
			missing = missing || !kept && message.Role != conversation.System && isSaid(message)
		}
		if missing {
			gone = append(gone, turns[i])
		}
	}
	slices.Reverse(gone)
	return gone
}

// isSaid reports whether a message has any content besides injected text.
func isSaid(message *conversation.Message) bool {
	for i := range message.Blocks {
		block := &message.Blocks[i]
		if block.Kind != conversation.Text || own(message.Role, block.Text) != "" {
			return true
		}
	}
	return false
}

// own returns the part of a text that a person typed; "" if the client wrote all of it.
func own(role conversation.Role, text string) string {
	if role == conversation.User && !conversation.IsTyped(text) {
		return ""
	}
	return strings.TrimSpace(ledger.OwnWords(text))
}

// counts returns how much there was and how much of it is missing.
func (c *comparison) counts() map[string]int {
	return map[string]int{
		Directives: c.directives, DirectivesLost: len(c.missing.Directives),
		Files: c.files, FilesLost: len(c.missing.Modified),
		Errors: c.errors, ErrorsLost: len(c.missing.Errors),
		Decisions: c.decisions, DecisionsLost: len(c.missing.Decisions),
	}
}
