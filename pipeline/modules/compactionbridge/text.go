package compactionbridge

import (
	"fmt"
	"slices"
	"strings"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/excerpts"
	"palimpsest/pipeline/ledger"
)

// The block's delimiters and its head.
const (
	opening = "<compaction-bridge-recovery>\n"
	closing = "</compaction-bridge-recovery>"
	heading = "[recovered context, not a new request] The client replaced the earlier conversation by a summary. " +
		"What follows stood in that conversation and is missing from the summary. " +
		"It is quoted as it was; (#12) names message 12 of the earlier conversation in the archive.\n"
)

// The sections' shares of the block's tokens: a section takes at most so many parts of the whole.
// Unused tokens go to the next sections, and the files get the rest.
const (
	parts         = 20
	directiveSize = 4
	planSize      = 10 // of directives if a plan is among them
	turnSize      = 4
	errorSize     = 1
	decisionSize  = 1
)

// The sizes of quotes of turns and errors, in characters.
const (
	typedSize  = 1500
	spokenSize = 900
	quotedSize = 240 // of calls, results, errors and decisions
)

// block is the text for the prompt.
type block struct {
	text     string // "" if there is no content
	restored map[string]int
}

// writer writes sections within a budget.
type writer struct {
	count func(string) int
	text  strings.Builder
	left  int // tokens
	whole int
}

// write writes the block of a comparison within the settings.
func (m *Module) write(found *comparison, config Config) block {
	frame := m.counter.Count(opening + heading + closing)
	w := &writer{count: m.counter.Count, left: config.MaxTokens - frame, whole: config.MaxTokens}
	restored := map[string]int{}
	if config.PreserveDirectives {
		restored[DirectivesRestored] = w.section("Standing orders and plans of the user, word for word"+ledger.WhichHolds(len(found.missing.Directives)), sizeOf(found.missing.Directives), directivesOf(found.missing.Directives))
	}
	restored[TurnsRestored] = w.section("The last turns before the summary, oldest first", turnSize, turnsOf(found.turns))
	restored[ErrorsRestored] = w.section("Errors that nothing has solved yet", errorSize, errorsOf(found.missing.Errors))
	restored[DecisionsRestored] = w.section("Decisions", decisionSize, decisionsOf(found.missing.Decisions))
	if config.PreserveActiveFiles {
		restored[FilesRestored] = w.files(found)
	}
	if w.text.Len() == 0 {
		return block{}
	}
	return block{text: opening + heading + w.text.String() + closing, restored: restored}
}

// sizeOf returns the parts of the whole that directives may take. They may take more if the
// client's summary lost the plan, so that every step of it comes back.
func sizeOf(directives []ledger.Directive) int {
	if slices.ContainsFunc(directives, func(directive ledger.Directive) bool { return directive.Kind == ledger.Plan }) {
		return planSize
	}
	return directiveSize
}

// section writes a section of entries, the most wanted first in entries, in the order of the
// history. It returns how many entries fit.
func (w *writer) section(title string, size int, entries []entry) int {
	head := "\n## " + title + "\n"
	budget := min(w.left, w.whole*size/parts) - w.count(head)
	var kept []entry
	for _, next := range entries {
		cost := w.count(next.text)
		if cost > budget && next.outline != "" {
			next.text = next.outline
			cost = w.count(next.text)
		}
		if cost > budget {
			continue // a shorter one may fit
		}
		kept, budget = append(kept, next), budget-cost
	}
	if len(kept) == 0 {
		return 0
	}
	slices.SortStableFunc(kept, func(a, b entry) int { return a.message - b.message })
	w.add(head)
	for _, one := range kept {
		w.add(one.text)
	}
	return len(kept)
}

func (w *writer) add(text string) {
	w.text.WriteString(text)
	w.left -= w.count(text)
}

// files writes the content of active files and returns how many there are.
func (w *writer) files(found *comparison) int {
	const head = "\n## Files as this conversation last read or wrote them\n"
	skip := func(known *file) bool { return found.present.shows(known) }
	chosen := choose(found.history.contents.files, found.history.newest, w.left-w.count(head), w.count, skip)
	written := 0
	var text strings.Builder
	for _, one := range chosen {
		text.Reset()
		one.write(&text)
		if w.count(text.String()) > w.left-w.count(head) {
			continue
		}
		if written == 0 {
			w.add(head)
		}
		w.add(text.String())
		written++
	}
	return written
}

// shows reports whether the prompt holds most of the known content of a file.
func (p *present) shows(known *file) bool {
	lines, held := 0, 0
	for i := range known.stretches {
		for _, one := range known.stretches[i].lines {
			if text := strings.TrimSpace(one.text); len(text) > distinct {
				lines++
				if p.lines[text] {
					held++
				}
			}
		}
	}
	return lines > 0 && held*5 >= lines*4
}

// entry is one item of a section.
type entry struct {
	message int
	text    string
	outline string // replaces a text that does not fit; may be ""
}

// directivesOf returns directives: the current plan, then the newest first.
func directivesOf(directives []ledger.Directive) []entry {
	var entries []entry
	for i := range slices.Backward(directives) {
		directive := &directives[i]
		said := ledger.OwnWords(directive.Text)
		write := func(title, text string) string {
			return fmt.Sprintf("- %s%s (#%d)\n", title, indented(conversation.Quoted(text)), directive.Message)
		}
		one := entry{message: directive.Message, text: write("", said)}
		if directive.Kind == ledger.Plan {
			one.text = write("approved plan:\n  ", said)
			one.outline = write("approved plan, each step by its first sentence:\n  ", ledger.Outline(said))
		}
		entries = append(entries, one)
	}
	slices.SortStableFunc(entries, func(a, b entry) int { return len(b.outline) - len(a.outline) })
	return entries
}

// errorsOf returns open errors, the newest first.
func errorsOf(mistakes []ledger.Error) []entry {
	var entries []entry
	for i := range slices.Backward(mistakes) {
		mistake := &mistakes[i]
		text := fmt.Sprintf("- %s %s: %s (#%d)\n", mistake.Tool, quoted(mistake.Subject), quoted(mistake.Excerpt), mistake.Message)
		entries = append(entries, entry{message: mistake.Message, text: text})
	}
	return entries
}

// decisionsOf returns decisions, the newest first.
func decisionsOf(decisions []ledger.Decision) []entry {
	var entries []entry
	for i := range slices.Backward(decisions) {
		decision := &decisions[i]
		entries = append(entries, entry{message: decision.Message, text: fmt.Sprintf("- %s (%s, #%d)\n", quoted(decision.Text), decision.Role, decision.Message)})
	}
	return entries
}

// turnsOf returns turns, the newest first.
func turnsOf(turns []turn) []entry {
	var entries []entry
	for i := range slices.Backward(turns) {
		var text strings.Builder
		for j := range turns[i].messages {
			writeMessage(&text, turns[i].first+j, &turns[i].messages[j])
		}
		if text.Len() > 0 {
			entries = append(entries, entry{message: turns[i].first, text: text.String()})
		}
	}
	return entries
}

// writeMessage writes the content of a message, results at the length of L1.
func writeMessage(text *strings.Builder, index int, message *conversation.Message) {
	for i := range message.Blocks {
		block := &message.Blocks[i]
		switch block.Kind {
		case conversation.Text:
			size := spokenSize
			if message.Role == conversation.User {
				size = typedSize
			}
			if said := own(message.Role, block.Text); said != "" && message.Role != conversation.System {
				fmt.Fprintf(text, "[#%d %s] %s\n", index, message.Role, indented(conversation.Quoted(shortened(said, size))))
			}
		case conversation.ToolCall:
			call := ledger.ParseCall(block)
			fmt.Fprintf(text, "[#%d call] %s %s\n", index, call.Tool, quoted(call.Argument))
		case conversation.ToolResult:
			if said := quoted(block.Text); said != "" {
				fmt.Fprintf(text, "[#%d result] %s\n", index, said)
			}
		case conversation.Thinking, conversation.Media, conversation.Opaque:
		}
	}
}

// quoted returns a text in one line, shortened, as data.
func quoted(text string) string {
	return conversation.Quoted(shortened(strings.Join(strings.Fields(conversation.WithoutReminders(text)), " "), quotedSize))
}

// shortened returns the beginning and the end of a text if it has more than so many characters.
func shortened(text string, characters int) string {
	return excerpts.Ends(text, characters, func(int) string { return " … " })
}

// indented keeps the lines of an entry together.
func indented(text string) string {
	return strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n  ")
}
