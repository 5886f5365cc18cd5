package search

import (
	"strings"

	"palimpsest/pipeline/conversation"
)

// Kind is the kind of a document.
type Kind int

// The kinds of documents.
const (
	Typed Kind = iota // a person's text
	Said              // the assistant's text
	Call              // a call and its results
)

// Document is the unit of search: a call with its results, or the text of one message. From and To bound its
// messages as indices into the list, To excluded. Part counts the documents that begin in the same message.
type Document struct {
	From, To, Part int

	Kind  Kind
	Tool  string   // of a Call, as named by the client
	Paths []string // files in a Call's arguments, as written

	Reads bool // a Call that returns a file's content

	fields []field
	blocks []conversation.Block // unchanged from the messages
}

// field is text of a document with the weight of its words.
type field struct {
	text   string
	weight float64
	name   bool // a description or title, which can be searched as a whole
	spoken bool // the complete text of a message
}

// The weights of a word by its place. The figures come from make bench-memory.
const (
	inName    = 4.0
	inPath    = 3.0
	inCommand = 3.0
	inTyped   = 2.0
	inSaid    = 1.5
	inContent = 1.0
	inResult  = 1.0
)

// maxFieldBytes is how much of each end of a long text is read.
const maxFieldBytes = 128 << 10

// Documents splits messages of one lane into documents, in the order of their first message. first is the
// place of messages[0] in its lane. A call without its result among the messages is a document of its own,
// and so is a result without its call. Recalls are left out, because they repeat other documents.
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

// of returns the place of the result of a call in message i: the first one after it.
func (a answers) of(i int, id string) (place, bool) {
	for _, at := range a[id] {
		if at.message > i {
			return at, true
		}
	}
	return place{}, false
}

// spoken returns the document of a message's text.
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

// lead returns the assistant's last paragraph before its calls.
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

// Text returns a document as text for a model. It shortens a document longer than about most bytes to its
// beginning and its end.
func (d *Document) Text(most int) string { return Bounded(strings.TrimSpace(d.text()), most) }

// Bounded returns a text, shortened to its beginning and its end if it is longer than most bytes.
func Bounded(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most/2], "") + "\n" + strings.ToValidUTF8(text[len(text)-most/2:], "")
}

// Open returns the first message with a call that may still get its result: the result is missing, and only
// further calls and results follow. It returns -1 if there is no such call.
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

// Orphaned reports whether the call of any result is missing from the messages before it.
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
