package ipc

import (
	"slices"
	"strings"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/ledger"
	"palimpsest/pipeline/modules/ipc/extract"
)

// The limits of each item at L2, in characters.
const (
	askedCharacters    = 400
	saidCharacters     = 240
	argumentCharacters = 120
	failureCharacters  = 160
	verdictCharacters  = 80
)

// record is the content of a turn for L2 and L3.
type record struct {
	lines   []line
	asked   string   // first sentence that a person typed
	said    string   // first sentence of the assistant's last text
	saidAt  int      // its line, or -1
	changed []string // files that calls wrote or deleted
	read    []string // files that calls read
	results []result // of calls with an outcome
	names   []name   // names that later turns use and only this record has
	noted   string   // the text at L2; "" until written
	size    int      // its o200k tokens; 0 until counted
	typed   typedBound

	texts   []source // the rest of the typed and said texts
	details []source // arguments and results of calls
}

// line is one line of L2.
type line struct {
	index int // message
	text  string
	typed string   // text that a person typed, word for word, after text
	names []string // names that the line leaves out and later turns use

	isCall bool // it names files relative to the base
	isLook bool // of a call that only looks, left out if no later turn uses a name in it
}

// result is the outcome of a call.
type result struct {
	subject string // the call
	text    string
	failed  bool
}

// source is a text that a line leaves out.
type source struct {
	line int
	role conversation.Role
	text string
	json bool
}

// newRecord makes the record of a turn, before enrich completes it.
func (r *records) newRecord(t *turn) error {
	if err := r.history.read(t); err != nil {
		return err
	}
	made := &record{saidAt: -1}
	calls := t.calls()
	for i, message := range t.messages {
		index, own := t.From+i, calls
		for len(calls) > 0 && calls[0].Message == index {
			calls = calls[1:]
		}
		if index < t.verbatim {
			continue
		}
		switch message.Role {
		case conversation.User:
			made.addUser(index, message)
		case conversation.Assistant:
			made.addAssistant(index, message)
			for _, call := range own[:len(own)-len(calls)] {
				if !r.comesAgain(&call, t.index) {
					made.addCall(&call, r.base, r.history.config.ObservationMasking)
				}
			}
		case conversation.System, conversation.Tool:
		}
	}
	t.record = made
	return nil
}

// addUser notes a person's text and attachments.
func (r *record) addUser(index int, message conversation.Message) {
	var media []string
	for i := range message.Blocks {
		if block := &message.Blocks[i]; block.Kind == conversation.Media {
			media = append(media, describe(index, block.Media))
		}
	}
	typed := typedIn(&message)
	asked, _ := extract.Sentence(typed, askedCharacters)
	if r.asked == "" && !strings.HasPrefix(asked, "[Request interrupted") {
		r.asked = asked
	}
	if typed != "" || len(media) > 0 {
		r.lines = append(r.lines, line{index: index, text: extract.JoinNonEmpty(" ", "User:", strings.Join(media, " ")), typed: typed})
	}
}

// noContent is the text of a message that Claude Code sends for an answer without any.
const noContent = "(no content)"

// addAssistant notes the text of an assistant message.
func (r *record) addAssistant(index int, message conversation.Message) {
	said := ""
	var rest []string
	for i := range message.Blocks {
		block := &message.Blocks[i]
		switch block.Kind {
		case conversation.Text:
			more := conversation.WithoutHeader(block.Text)
			if strings.TrimSpace(more) == noContent {
				continue
			}
			if said == "" {
				said, more = extract.Sentence(more, saidCharacters)
			}
			rest = append(rest, more)
		case conversation.Media:
			r.lines = append(r.lines, line{index: index, text: "Assistant: " + describe(index, block.Media)})
		case conversation.ToolCall, conversation.ToolResult, conversation.Thinking, conversation.Opaque:
		}
	}
	if said != "" {
		r.said, r.saidAt = said, len(r.lines)
		for _, text := range rest {
			r.texts = append(r.texts, source{line: len(r.lines), role: conversation.Assistant, text: text})
		}
		r.lines = append(r.lines, line{index: index, text: assistant + said})
	}
}

// assistant opens the line of an assistant's text.
const assistant = "Assistant: "

// addCall notes a tool call and how it ended.
func (r *record) addCall(call *ledger.Made, base base, masked bool) {
	outcome, result := "", call.Result
	said, isRejected := call.Rejection()
	if call.HasFailed && !isRejected {
		outcome = "error"
	}
	switch {
	case result == nil:
	case isRejected:
		outcome = "rejected by the user"
	case masked && (call.HasFailed || call.Command != ""):
		outcome = extract.JoinNonEmpty(" ", outcome, "[TOOL OUTPUT ARCHIVED]") // it would be quoted otherwise
	case masked:
	case call.HasFailed:
		outcome = extract.JoinNonEmpty(": ", outcome, failureOf(result.Text))
	case call.Command != "":
		outcome = extract.Shorten(result.Text[extract.VerdictAt(result.Text):], verdictCharacters)
	}
	if !call.HasFailed {
		for _, name := range slices.Concat(call.Writes, call.Deletes) {
			r.changed = append(r.changed, base.below(name))
		}
		for _, name := range call.Reads {
			r.read = append(r.read, base.below(name))
		}
	}

	r.details = append(r.details, source{line: len(r.lines), role: conversation.Assistant, text: call.Block.Text, json: true})
	if result != nil && !masked {
		r.details = append(r.details, source{line: len(r.lines), role: conversation.Tool, text: result.Text})
	}
	argument := extract.Shorten(base.below(call.Argument), argumentCharacters)
	if len(call.Writes) > 0 && call.Command == "" {
		argument = extract.JoinNonEmpty(", ", extract.Shorten(base.below(strings.Join(call.Writes, " ")), argumentCharacters), extract.ChangeOf(call.Block.Text))
	}
	if outcome != "" && !isRejected {
		r.results = append(r.results, newResult(call.Tool, argument, outcome, call.HasFailed))
	}
	r.lines = append(r.lines, line{
		index: call.Message, text: extract.JoinNonEmpty(" → ", call.Tool+"("+argument+")", outcome), isCall: true, isLook: outcome == "" && call.Looks(),
	})
	if said != "" {
		r.lines = append(r.lines, line{index: call.Answered, text: "Said with it:", typed: said})
	}
}

// newestCalls returns the newest turn that makes each call, by its tool and arguments, and the
// newest that reads or changes each file, by its path.
func newestCalls(turns []*turn) map[string]int {
	newest := map[string]int{}
	for _, t := range turns {
		calls := t.calls()
		for i := range calls {
			call := &calls[i]
			newest[call.Tool+" "+call.Block.Text] = t.index
			if call.HasFailed || call.Partial || call.Command != "" {
				continue
			}
			for _, name := range slices.Concat(call.Reads, call.Writes) {
				newest[name] = t.index
			}
		}
	}
	return newest
}

// comesAgain reports whether a record needs no line for a call, because the call changes nothing
// and a later turn makes the same call or uses the files that it reads.
func (r *records) comesAgain(call *ledger.Made, turn int) bool {
	switch {
	case r.again == nil || len(call.Writes)+len(call.Deletes) > 0:
		return false
	case r.again[call.Tool+" "+call.Block.Text] > turn:
		return true
	}
	return len(call.Reads) > 0 && call.Command == "" && !slices.ContainsFunc(call.Reads, func(name string) bool { return r.again[name] <= turn })
}

// failureOf returns a failed result in one line: its beginning, and the error's line if that comes
// further down.
func failureOf(text string) string {
	at := extract.ErrorIn(text, len(text))
	if at < failureCharacters {
		return extract.Shorten(text, failureCharacters)
	}
	line, _, _ := strings.Cut(text[at:], "\n")
	return extract.JoinNonEmpty(" ", extract.Shorten(text[:at], failureCharacters/4), extract.Shorten(line, failureCharacters*3/4))
}

// entry returns the turn's text at L2: a line for each text and call, with the index of its
// message. It is made once.
func (r *record) entry() string {
	if r.noted == "" {
		r.noted = r.written(-1)
	}
	return r.noted
}

// isRequest reports whether the turn begins with typed text.
func (r *record) isRequest() bool { return len(r.lines) > 0 && r.lines[0].typed != "" }

// entryBefore returns the entry without the assistant's last sentence, for use before that sentence
// as its own message.
func (r *record) entryBefore() string { return r.written(r.saidAt) }

// written returns the record's lines except one.
func (r *record) written(but int) string {
	const around = len("#100000 \n · ")
	size := 0
	for i := range r.lines {
		size += len(r.lines[i].text) + len(r.lines[i].typed) + around
		for _, name := range r.lines[i].names {
			size += len(name) + len(", ")
		}
	}
	var text strings.Builder
	text.Grow(size)
	for i := range r.lines {
		if i == but || r.lines[i].text == "" {
			continue
		}
		r.lines[i].writeAt(&text, r.typed.of(r.lines[i].index))
	}
	return text.String()
}

// answer returns the assistant's last text at L2.
func (r *record) answer() string {
	var text strings.Builder
	r.lines[r.saidAt].write(&text, 0)
	return strings.TrimPrefix(text.String(), assistant)
}

// writeAt writes the line with the index of its message.
func (l *line) writeAt(text *strings.Builder, longest int) {
	text.WriteString(extract.Archived(l.index))
	text.WriteByte(' ')
	l.write(text, longest)
	text.WriteByte('\n')
}

// write writes the line, the kept part of the typed text, and the names that it leaves out
// otherwise.
func (l *line) write(text *strings.Builder, longest int) {
	text.WriteString(l.text)
	if l.typed != "" {
		text.WriteByte(' ')
		text.WriteString(withoutMiddle(l.typed, longest, l.index))
	}
	for i, name := range l.names {
		if i == 0 {
			text.WriteString(" · ")
		} else {
			text.WriteString(", ")
		}
		text.WriteString(name)
	}
}

// records renders turns at L2, and collects the data for L3.
type records struct {
	history    *history
	protection *protection
	uses       *extract.Uses // nil until computed
	typed      typedBound
	base       base
	again      map[string]int // the newest turn that makes a call or touches a file
	isAlone    bool           // no frame precedes the records
}

// note renders the turn at L2 and collects its data for L3.
func (r *records) note(t *turn) error {
	if err := r.noteBand(t); err != nil {
		return err
	}
	if err := r.keep(t); err != nil {
		return err
	}
	return r.weighRecord(t)
}

// bandTurns is how many adjacent turns get their records at once.
const bandTurns = 96

// noteBand makes the records of a turn and its neighbors that may go to L2, the newest first,
// because an older one goes deeper sooner and need not repeat what a newer one has.
func (r *records) noteBand(t *turn) error {
	if t.record != nil {
		return nil
	}
	if err := r.findUses(); err != nil {
		return err
	}
	first := t.index - t.index%bandTurns
	end := min(first+bandTurns, len(r.history.turns))
	var band []*turn
	for _, neighbor := range r.history.turns[first:end] {
		if neighbor.deepest >= 2 || neighbor == t {
			band = append(band, neighbor)
		}
	}
	if err := r.history.each(band, r.newRecord); err != nil {
		return err
	}
	for _, neighbor := range slices.Backward(band) {
		r.enrich(neighbor, end)
	}
	return r.history.each(band, r.weighRecord)
}

// findUses finds out which turns use which names.
func (r *records) findUses() error {
	if r.uses != nil {
		return nil
	}
	used := make([][]extract.HashedName, len(r.history.turns))
	err := r.history.each(r.history.turns, func(t *turn) error {
		err := r.history.read(t)
		if err == nil {
			used[t.index] = t.names()
			t.calls()
		}
		return err
	})
	if err != nil {
		return err
	}
	r.typed = r.boundTyped()
	if !r.isAlone {
		r.base, r.again = baseOf(r.history.turns), newestCalls(r.history.turns)
	}
	r.uses = extract.NewUses()
	for i := range used {
		r.uses.Add(i, used[i])
	}
	if order := r.history.exchange.Lane.Order; order != nil {
		r.uses.Add(len(r.history.turns), extract.AppendNames(nil, order.Instructions, false)) // names in it count as used
	}
	return nil
}

// weighRecord counts the tokens of the turn at L2.
func (r *records) weighRecord(t *turn) error {
	if t.record.typed != r.typed {
		t.record.typed, t.record.noted, t.record.size = r.typed, "", 0
	}
	if t.record.size == 0 {
		t.record.size = r.history.countText(t.record.entry())
	}
	return nil
}
