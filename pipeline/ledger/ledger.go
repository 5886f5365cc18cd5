package ledger

import (
	"slices"
	"strings"

	"palimpsest/pipeline/conversation"
)

// Never is the message index of something that has not happened.
const Never = -1

// Place is a position in a lane.
type Place struct {
	Turn    int
	Message int
}

// File is a lane's history of one file.
type File struct {
	Place // of the last call that touched it

	// Path is the file's cleaned name; of a relative and an absolute name for one file the absolute
	// one is kept.
	Path string

	// Read, Modified and Deleted are the message indexes of the last calls that did so; Never if no
	// call did.
	Read, Modified, Deleted int

	// Gone means that the last change of the file was its deletion.
	Gone bool
}

// Command is a shell command that a lane ran.
type Command struct {
	Place // of its last run

	Text   string // in one line, shortened
	Failed bool   // outcome of its last run
}

// Error is a call that failed.
type Error struct {
	Place // of the last failure

	Tool    string // as the client names it
	Subject string // the command or the file, in one line
	Excerpt string // the error in the result, in one line
	Solved  int    // message index of the call that succeeded later; Never while it is open

	// GivenUp means that it has not been retried for long, because the work went on another way.
	GivenUp bool

	key      string   // the subject that must succeed
	likeness string   // of the command
	checks   []check  // checks that must still pass
	tests    []string // failed tests that have not passed since, if the result names them all
	packages []string // with failed tests
}

// Open reports whether an error still blocks the work.
func (e *Error) Open() bool { return e.Solved == Never && !e.GivenUp }

// Decision is a sentence that decides something.
type Decision struct {
	Place

	Role conversation.Role // the sentence's author
	Text string            // in one line
}

// Kind is the origin of a directive.
type Kind string

// The kinds of directives.
const (
	Typed        Kind = "typed"        // a sentence of the person
	Instructions Kind = "instructions" // an instruction file that the client put into the conversation
	Plan         Kind = "plan"         // a plan that the person approved
)

// Directive is a standing order.
type Directive struct {
	Place

	Kind   Kind
	Source string // the instruction file's path
	Text   string // verbatim; instruction files and plans have several lines
}

// The limits of a ledger. A lane of 600 turns stays far below; the caps bound the memory of an
// endless one, at about 2 MB besides the messages it read files from.
const (
	maxFiles      = 2000 // files only read go first, then those with the oldest changes
	maxCommands   = 100  // older ones matter little for the current work
	maxErrors     = 100  // solved ones go first
	maxDecisions  = 200
	maxDirectives = 400 // a person types some 30 messages in 85 turns
	maxSources    = 8   // instruction files
)

// Ledger is the ledger of a lane. Its lists are ordered by the first appearance of their entries;
// they must not be changed. It is not safe for concurrent use.
type Ledger struct {
	fileTable
	taskTable

	Commands   []Command
	Errors     []Error
	Decisions  []Decision
	Attempts   []Attempt // without the errors that the model stopped working on
	Directives []Directive

	Base string // Text lists paths below it relative to it; "" lists all in full

	memo     *Memo
	recalled bool // the next answer is the client's summary
}

// New returns an empty ledger.
func New() *Ledger { return NewWith(NewMemo()) }

// NewWith returns an empty ledger that looks up texts in a Memo.
func NewWith(memo *Memo) *Ledger {
	return &Ledger{fileTable: newFileTable(nil), memo: memo}
}

// Add reads one whole turn, calls together with their results. first is the index
// of its first message. Turns must come in order, each once.
func (l *Ledger) Add(turn, first int, messages []conversation.Message) {
	l.AddMade(turn, first, messages, Calls(first, messages))
}

// AddMade is Add for a turn whose Calls are known.
func (l *Ledger) AddMade(turn, first int, messages []conversation.Message, calls []Made) {
	for i := range messages {
		message, place := &messages[i], Place{Turn: turn, Message: first + i}
		switch message.Role {
		case conversation.User:
			l.addUser(place, message)
		case conversation.Assistant:
			calls = l.addAssistant(place, message, calls)
		case conversation.System:
			l.addSystem(place, message)
		case conversation.Tool:
		}
	}
	giveUp(l.Errors, turn)
	l.trim()
}

// addUser notes a person's orders and decisions, and the client's instruction files.
func (l *Ledger) addUser(place Place, message *conversation.Message) {
	for i := range message.Blocks {
		block := &message.Blocks[i]
		if block.Kind != conversation.Text || message.IsPasted(i) {
			continue
		}
		text := ownWords(block.Text)
		l.recalled = l.recalled || strings.TrimSpace(text) == recallQuestion
		l.addInstructions(place, text)
		if carriesResults(text) {
			return // the rest of this message is a tool's, not the person's
		}
		l.addHooks(place, text)
		if plan, approved := startedPlan(text); approved {
			l.addPlan(place, plan)
			continue
		}
		if conversation.IsTyped(text) {
			l.addTyped(place, withoutPasted(typed(text)))
		}
	}
}

// addTyped notes a person's orders and decisions.
func (l *Ledger) addTyped(place Place, text string) {
	for _, one := range l.memo.typedIn(text) {
		if one.kind == orders {
			l.addDirective(Directive{Place: place, Kind: Typed, Text: one.text})
		} else {
			l.addDecision(Decision{Place: place, Role: conversation.User, Text: one.text})
		}
	}
}

// addSystem notes instruction files and standing orders in a system message within the
// conversation.
func (l *Ledger) addSystem(place Place, message *conversation.Message) {
	for i := range message.Blocks {
		block := &message.Blocks[i]
		if block.Kind != conversation.Text {
			continue
		}
		text := ownWords(block.Text)
		l.addInstructions(place, text)
		l.addOrders(place, conversation.WithoutReminders(text))
		l.addHooks(place, text)
	}
}

// addHooks notes the standing orders in texts that the person's hooks added to the conversation,
// such as "UserPromptSubmit hook additional context: Always run the linter".
func (l *Ledger) addHooks(place Place, text string) {
	text = withoutMaterial(text, false)
	for _, content := range conversation.Reminders(text) {
		event, rest, found := strings.Cut(strings.TrimSpace(content), " hook ")
		_, said, hasText := strings.Cut(rest, ":")
		if found && hasText && !strings.ContainsAny(event, " \n") {
			l.addOrders(place, said)
		}
	}
}

// addOrders notes the standing orders in a text.
func (l *Ledger) addOrders(place Place, text string) {
	for line := range sentences(text) {
		if order, found := ordered(line); found {
			l.addDirective(Directive{Place: place, Kind: Typed, Text: bounded(order, directiveCharacters)})
		}
	}
}

// addAssistant notes the model's decisions and calls, and returns the calls after the message.
func (l *Ledger) addAssistant(place Place, message *conversation.Message, calls []Made) []Made {
	for i := range message.Blocks {
		block := &message.Blocks[i]
		switch block.Kind {
		case conversation.Text:
			l.addSaid(place, block.Text)
		case conversation.ToolCall:
			l.addCall(place, &calls[0])
			calls = calls[1:]
		case conversation.ToolResult, conversation.Thinking, conversation.Media, conversation.Opaque:
		}
	}
	return calls
}

// addSaid notes the model's decisions.
func (l *Ledger) addSaid(place Place, said string) {
	if l.recalled {
		l.recalled = false
		return
	}
	for _, one := range l.memo.saidIn(said) {
		if one.kind == fails {
			l.addAttempt(place, one.text)
		} else {
			l.addDecision(Decision{Place: place, Role: conversation.Assistant, Text: one.text})
		}
	}
}

// addCall notes a call and its outcome.
func (l *Ledger) addCall(place Place, call *Made) {
	result, failed := call.Result, call.HasFailed
	if result != nil && refused(result) {
		return // the person rejected it
	}
	if call.asks && result != nil {
		l.addAnswers(place, result)
	}
	if call.plans && result != nil && !failed {
		l.addPlan(place, approved(&call.Call, result))
	}
	if !failed {
		l.addTasks(place, call)
	}
	if call.Command != "" {
		l.addCommand(place, &call.Call, failed)
		if undone := discards(&call.Call); undone != "" && !failed {
			l.addAttempt(place, "Took back changes: "+undone)
		}
	}
	// A line of several commands may fail after some of them have succeeded.
	if !failed || call.line.steps > 1 {
		l.addFiles(place, &call.Call)
	}
	l.addOutcome(place, call)
}

// trim drops the entries above the caps.
func (l *Ledger) trim() {
	l.trimFiles()
	l.Commands = newest(l.Commands, maxCommands, func(c *Command) Place { return c.Place })
	l.Attempts = newest(l.Attempts, maxAttempts, func(a *Attempt) Place { return a.Place })
	l.Decisions = newest(l.Decisions, maxDecisions, func(d *Decision) Place { return d.Place })
	l.trimErrors()
	l.trimDirectives()
}

// newest drops the oldest entries, some more than needed so that it need not drop some every turn.
func newest[T any](entries []T, most int, place func(*T) Place) []T {
	if len(entries) <= most+most/8 {
		return entries
	}
	messages := make([]int, len(entries))
	for i := range entries {
		messages[i] = place(&entries[i]).Message
	}
	slices.Sort(messages)
	oldest := messages[len(messages)-most]
	kept := entries[:0]
	for i := range entries {
		if place(&entries[i]).Message >= oldest {
			kept = append(kept, entries[i])
		}
	}
	clear(entries[len(kept):])
	return kept
}

// IsDirective reports whether a sentence that a person typed is a standing order, as
// the ledger judges it.
func IsDirective(sentence string) bool { return isDirective(sentence) }

// IsDecision reports whether a sentence decides something, as the ledger judges it.
func IsDecision(sentence string) bool { return isDecision(sentence) }
