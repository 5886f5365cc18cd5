package compactionbridge

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"palimpsest/pipeline"
	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/client"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/ledger"
	"palimpsest/pipeline/summary"
)

// answerSize limits an answer in o200k tokens, besides the model's summary of the oldest turns.
// Clients' own summaries have up to so many, see docs/compaction.md.
const answerSize = 4000

// The sections' shares of the tokens of an answer, in parts of the whole. The notes get the rest.
const (
	orderSize   = 4
	earlierSize = 7
	messageSize = 3
	newestSize  = 5
	taskSize    = 1
	pathSize    = 2
)

// The sizes of quotes of the person in an answer, in characters.
const (
	firstSize   = 1200 // of the first and the last request
	messageChar = 400
)

// ownWords identify an answer in the prompt that continues from it.
const ownWords = "This summary was put together by Palimpsest, which stands between the client and the model, from its compaction of the conversation."

// answerHead opens an answer.
const answerHead = ownWords + " No model wrote it. " +
	"What is quoted stands as it was said; (#12) and [#12] name message 12. The originals are archived word for word: for a detail that is missing here, call recall_get with %[1]s#12, or recall_search, if you have these tools; " +
	"else read the file or run the command again.\n"

// analysis replaces a model's thoughts before it writes.
const analysis = "This answer comes from Palimpsest's compaction of the conversation. No model was asked."

// section is one section of an answer.
type section struct {
	tagged, handover string // its heading in each form
	size             int    // parts of the whole that it may take
	entries          []entry
	count            string // the event's count of its entries
	text             string // the finished text
}

// compose writes the answer to a request for a summary; reason says why there is no answer.
func (m *Module) compose(ctx context.Context, exchange *pipeline.View, asked *asked) (text string, counts map[string]int, reason string, err error) {
	w := &writer{count: m.counter.Count, whole: answerSize, left: answerSize}
	head := fmt.Sprintf(answerHead, archive.NameOf(exchange.Conversation.Chain[len(exchange.Conversation.Digests)])) // the archive's name for this request
	w.left -= w.count(head)
	earlier := strings.TrimSpace(untagged(asked.earlier))
	if cost := w.count(earlier); cost > answerSize*earlierSize/parts {
		return "", nil, tooMuch, nil
	}
	w.left -= w.count(earlier)
	sections := asked.sections(configOf(exchange).PreserveLastTurns)
	counts = map[string]int{}
	for i := range sections {
		one := &sections[i]
		kept := w.fit(one)
		if one.count != "" {
			counts[one.count] += kept
		}
	}
	left := w.left
	if exchange.Lane.Summary != nil {
		left += w.count(exchange.Lane.Summary.Text)
	}
	notes, err := m.notes(ctx, exchange, asked.messages, max(left, 0))
	if err != nil {
		return "", nil, "", fmt.Errorf("notes of the history: %w", err)
	}
	record := section{tagged: "5. Problem Solving (the course of the work, oldest first)", handover: "The course of the work, oldest first", text: untagged(notes) + "\n"}
	sections = slices.Insert(sections, recordAt, record)
	if earlier != "" {
		counts[EarlierSummary] = 1
		before := section{tagged: "0. Summary of the conversation before this one", handover: "Summary of the conversation before this one", text: earlier + "\n"}
		sections = slices.Insert(sections, 0, before)
	}
	return written(asked.form, head, sections), counts, "", nil
}

// recordAt is the place of the course of the work among the sections.
const recordAt = 4

// sections returns the sections of an answer besides the course of the work. Those that matter most
// get their budget first.
func (a *asked) sections(lastTurns int) []section {
	typed := a.typed()
	return []section{
		{tagged: "1. Primary Request and Intent", handover: "The task, and the user's standing orders word for word", size: orderSize, entries: a.intent(typed), count: StandingOrders},
		{tagged: "3. Files and Code Sections (changed)", handover: "Files that were changed", size: pathSize, entries: a.changed(), count: ChangedFiles},
		{tagged: "3. Files and Code Sections (read)", handover: "Files that were read", size: pathSize / 2, entries: a.read()},
		{tagged: "4. Errors and fixes (errors that nothing has solved yet)", handover: "Errors that nothing has solved yet", size: errorSize, entries: errorsOf(openOf(a.ledger.Errors))},
		{tagged: "5. Problem Solving (decisions)", handover: "Decisions", size: decisionSize, entries: decisionsOf(a.ledger.Decisions)},
		{tagged: "6. All user messages", handover: "What the user said", size: messageSize, entries: typed, count: UserMessages},
		{tagged: "7. Pending Tasks", handover: "What remains to be done", size: taskSize, entries: a.tasks(), count: OpenTasks},
		{tagged: "8. Current Work (the newest turns)", handover: "The newest turns", size: newestSize, entries: a.newestTurns(max(1, lastTurns)), count: NewestTurns},
		{tagged: "9. Optional Next Step", handover: "Next step", size: taskSize, entries: a.next(typed)},
	}
}

// written puts an answer together.
func written(form client.Form, head string, sections []section) string {
	var text strings.Builder
	if form == client.Tagged {
		text.WriteString("<analysis>\n" + analysis + "\n</analysis>\n\n<summary>\n" + head)
	} else {
		text.WriteString(head)
	}
	for _, one := range sections {
		switch {
		case strings.TrimSpace(one.text) == "":
		case form == client.Tagged:
			text.WriteString("\n" + one.tagged + ":\n" + one.text)
		default:
			text.WriteString("\n## " + one.handover + "\n" + one.text)
		}
	}
	if form == client.Tagged {
		text.WriteString("</summary>")
	}
	return text.String()
}

// fit writes as many entries of a section as its share allows and returns how many.
func (w *writer) fit(one *section) int {
	own := &writer{count: w.count, whole: w.whole, left: w.left}
	kept := own.section(one.tagged, one.size, one.entries)
	_, text, _ := strings.Cut(strings.TrimPrefix(own.text.String(), "\n"), "\n") // without its heading
	one.text = untagged(text)
	w.left = own.left
	return kept
}

// typed returns the person's messages, the newest first.
func (a *asked) typed() []entry {
	var entries []entry
	for i := range a.turns {
		for j := range a.turns[i].messages {
			message, index := &a.turns[i].messages[j], a.turns[i].first+j
			if message.Role != conversation.User || index == a.boundary {
				continue
			}
			if said := wordsOf(message); said != "" {
				entries = append(entries, entry{message: index, text: quote(index, said, messageChar)})
			}
		}
	}
	slices.Reverse(entries)
	return entries
}

// intent returns the person's first and newest words and their standing orders.
func (a *asked) intent(typed []entry) []entry {
	entries := directivesOf(withoutInstructions(a.ledger.Directives))
	if len(typed) == 0 {
		return entries
	}
	first := typed[len(typed)-1].message
	asked := quote(first, a.saidAt(first), firstSize)
	entries = slices.DeleteFunc(entries, func(order entry) bool {
		return order.message == first && strings.Contains(asked, strings.TrimSuffix(strings.TrimPrefix(order.text, "- "), fmt.Sprintf(" (#%d)\n", first)))
	})
	return append([]entry{{message: first, text: asked}}, entries...)
}

// next returns the last message of each side.
func (a *asked) next(typed []entry) []entry {
	var entries []entry
	if len(typed) > 0 {
		newest := typed[0].message
		entries = append(entries, entry{message: newest, text: "- the user's newest message: " + strings.TrimPrefix(quote(newest, a.saidAt(newest), firstSize), "- ")})
	}
	for i := range slices.Backward(a.turns) {
		for j := range slices.Backward(a.turns[i].messages) {
			message, index := &a.turns[i].messages[j], a.turns[i].first+j
			if said := wordsOf(message); message.Role == conversation.Assistant && said != "" {
				text := "- the assistant said last: " + strings.TrimPrefix(quote(index, said, messageChar), "- ")
				return append(entries, entry{message: index, text: text})
			}
		}
	}
	return entries
}

// saidAt returns the own words of a message.
func (a *asked) saidAt(index int) string {
	for i := range a.turns {
		if at := index - a.turns[i].first; at >= 0 && at < len(a.turns[i].messages) {
			return wordsOf(&a.turns[i].messages[at])
		}
	}
	return ""
}

// newestTurns returns the newest turns.
func (a *asked) newestTurns(count int) []entry {
	return turnsOf(a.turns[max(0, len(a.turns)-count):])
}

// changed returns the changed files, the newest first.
func (a *asked) changed() []entry {
	return a.paths(func(file *ledger.File) bool { return file.Modified != ledger.Never || file.Gone })
}

// read returns the files that were only read, the newest first.
func (a *asked) read() []entry {
	return a.paths(func(file *ledger.File) bool { return file.Modified == ledger.Never && !file.Gone })
}

func (a *asked) paths(wanted func(*ledger.File) bool) []entry {
	var entries []entry
	for i := range a.ledger.Files {
		file := &a.ledger.Files[i]
		if !wanted(file) {
			continue
		}
		text := "- " + conversation.Quoted(file.Path)
		if file.Gone {
			text += " (deleted)"
		}
		entries = append(entries, entry{message: file.Message, text: fmt.Sprintf("%s (#%d)\n", text, file.Message)})
	}
	slices.SortStableFunc(entries, func(a, b entry) int { return b.message - a.message })
	return entries
}

// tasks returns the open tasks of the model's own plan.
func (a *asked) tasks() []entry {
	var entries []entry
	for i := range a.ledger.Tasks {
		if task := &a.ledger.Tasks[i]; task.Open() {
			entries = append(entries, entry{message: task.Message, text: fmt.Sprintf("- [%s] %s (#%d)\n", task.Status, quoted(task.Text), task.Message)})
		}
	}
	return entries
}

// openOf returns the unsolved errors.
func openOf(mistakes []ledger.Error) []ledger.Error {
	var open []ledger.Error
	for i := range mistakes {
		if mistakes[i].Open() {
			open = append(open, mistakes[i])
		}
	}
	return open
}

// wordsOf returns the text that a person typed in a message.
func wordsOf(message *conversation.Message) string {
	var texts []string
	for i := range message.Blocks {
		block := &message.Blocks[i]
		if block.Kind != conversation.Text {
			continue
		}
		if said := own(message.Role, summary.Plain(block.Text)); said != "" {
			texts = append(texts, said)
		}
	}
	return strings.Join(texts, "\n")
}

func quote(index int, text string, size int) string {
	return fmt.Sprintf("- %s (#%d)\n", indented(conversation.Quoted(shortened(text, size))), index)
}

// plainly returns a JSON text as people read it.
func plainly(raw json.RawMessage) string {
	var text strings.Builder
	writeStrings(&text, raw)
	return text.String()
}

// tags escapes the tags by which a client finds the summary in an answer.
var tags = strings.NewReplacer("<summary>", "&lt;summary>", "</summary>", "&lt;/summary>", "<analysis>", "&lt;analysis>", "</analysis>", "&lt;/analysis>")

// untagged returns a text with the tags of an answer escaped.
func untagged(text string) string { return tags.Replace(text) }
