package search

import (
	"strings"

	"palimpsest/pipeline/conversation"
)

// Kind says what a document is.
type Kind int

// The kinds of documents.
const (
	Typed Kind = iota // what a person wrote
	Said              // what the assistant wrote
	Call              // a call and its results
)

// Document is what is found as one: a call with its results, or the text of one
// message. From and To bound the messages it stands in as indices into the list, To
// excluded; Part counts the documents that begin in the same message.
type Document struct {
	From, To, Part int

	Kind  Kind
	Tool  string   // of a Call, as the client names it
	Paths []string // files that a Call's arguments name, as written

	Reads bool // a Call that returns what stands in a file

	fields []field
	blocks []conversation.Block // as they stand in the messages
}

// field is text of a document and how much a word in it counts.
type field struct {
	text   string
	weight float64
	name   bool // a description or title: can be asked for as a whole
	spoken bool // all that a message says
}

// What a word counts by where it stands. The figures come from make bench-memory.
const (
	inName    = 4.0
	inPath    = 3.0
	inCommand = 3.0
	inTyped   = 2.0
	inSaid    = 1.5
	inContent = 1.0
	inResult  = 1.0
)

// maxFieldBytes is how much of one text is read: the beginning and, of a longer one,
// as much of its end.
const maxFieldBytes = 128 << 10

// Documents cuts messages of one lane into documents, in the order of their first
// message. first is the place of messages[0] in its lane. A call whose result is not
// among the messages is a document without one; so is a result without its call. Recalls
// make none: they say again what other documents say.
func Documents(first int, messages []conversation.Message) []Document {
	messages, _ = WithoutRecalls(messages)
	results := resultsOf(messages)
	taken := map[place]bool{}
	var documents []Document
	for i := range messages {
		part, message := 0, &messages[i]
		add := func(document Document) {
			if len(document.fields) == 0 {
				return
			}
			document.From, document.To, document.Part = first+i, max(document.To, first+i+1), part
			documents = append(documents, document)
			part++
		}
		add(spoken(message))
		for j := range message.Blocks {
			block := &message.Blocks[j]
			switch block.Kind {
			case conversation.ToolCall:
				document := called(block, lead(message))
				if at, answered := results.of(i, block.ID); answered {
					taken[at] = true
					document.answer(&messages[at.message].Blocks[at.block])
					document.To = first + at.message + 1
				}
				add(document)
			case conversation.ToolResult:
				if !taken[place{i, j}] {
					document := Document{Kind: Call}
					document.answer(block)
					add(document)
				}
			case conversation.Text, conversation.Thinking, conversation.Media, conversation.Opaque:
			}
		}
	}
	return documents
}

// place is a block of a message.
type place struct{ message, block int }

// answers are the places of results by the ids of their calls.
type answers map[string][]place

func resultsOf(messages []conversation.Message) answers {
	found := answers{}
	for i := range messages {
		for j := range messages[i].Blocks {
			if block := &messages[i].Blocks[j]; block.Kind == conversation.ToolResult {
				found[block.ID] = append(found[block.ID], place{i, j})
			}
		}
	}
	return found
}

// of returns where the result of a call in message i stands: the first behind it.
func (a answers) of(i int, id string) (place, bool) {
	for _, at := range a[id] {
		if at.message > i {
			return at, true
		}
	}
	return place{}, false
}

// spoken is the document of what is written in a message.
func spoken(message *conversation.Message) Document {
	document := Document{Kind: Said}
	weight := inSaid
	if message.Role == conversation.User {
		document.Kind, weight = Typed, inTyped
	}
	if message.Role == conversation.System {
		return Document{}
	}
	for i := range message.Blocks {
		block := &message.Blocks[i]
		if block.Kind != conversation.Text {
			continue
		}
		text := block.Text
		if message.Role == conversation.User {
			text = conversation.WithoutReminders(text)
		}
		if text = strings.TrimSpace(text); text != "" {
			document.blocks = append(document.blocks, conversation.Block{Kind: conversation.Text, Text: text})
			document.fields = append(document.fields, field{text: text, weight: weight, spoken: true})
		}
	}
	return document
}

// lead is what the assistant says before its calls: its last paragraph.
func lead(message *conversation.Message) string {
	text := ""
	for i := range message.Blocks {
		if message.Blocks[i].Kind == conversation.Text {
			text = message.Blocks[i].Text
		}
	}
	text = strings.TrimSpace(text)
	if cut := strings.LastIndex(text, "\n\n"); cut >= 0 {
		text = text[cut+2:]
	}
	return text
}

// answer adds a result to a call.
func (d *Document) answer(block *conversation.Block) {
	d.blocks = append(d.blocks, *block)
	if text := strings.TrimSpace(block.Text); text != "" {
		d.fields = append(d.fields, field{text: text, weight: inResult})
	}
}

// Text returns what a document says, in words that a model reads: of one longer than
// about most bytes its beginning and its end.
func (d *Document) Text(most int) string { return Bounded(strings.TrimSpace(d.text()), most) }

// Bounded returns a text, or of one longer than most bytes its beginning and, as much,
// its end.
func Bounded(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most/2], "") + "\n" + strings.ToValidUTF8(text[len(text)-most/2:], "")
}

// Open returns the first message with a call that may still get its result: none has
// come, and what follows are only further calls and results. It returns -1 if there is
// none.
func Open(messages []conversation.Message) int {
	results := resultsOf(messages)
	open := -1
	for i := len(messages) - 1; i >= 0; i-- {
		flags := messages[i].Flags()
		if messages[i].Role == conversation.User && !flags.Has(conversation.HasResult) {
			return open
		}
		for j := range messages[i].Blocks {
			block := &messages[i].Blocks[j]
			if _, answered := results.of(i, block.ID); block.Kind == conversation.ToolCall && !answered {
				open = i
			}
		}
		if len(messages)-i >= mostOpen {
			return open
		}
	}
	return open
}

// Orphaned reports whether some result's call is not among the messages before it.
func Orphaned(messages []conversation.Message) bool {
	called := map[string]bool{}
	for i := range messages {
		for j := range messages[i].Blocks {
			switch block := &messages[i].Blocks[j]; block.Kind {
			case conversation.ToolCall:
				called[block.ID] = true
			case conversation.ToolResult:
				if !called[block.ID] {
					return true
				}
			case conversation.Text, conversation.Thinking, conversation.Media, conversation.Opaque:
			}
		}
	}
	return false
}

// mostOpen is how many messages at the end of a lane may wait for a result.
const mostOpen = 16
