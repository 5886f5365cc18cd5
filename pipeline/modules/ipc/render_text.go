package ipc

import (
	"fmt"
	"slices"
	"strings"

	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/modules/ipc/extract"
	"palimpsest/pipeline/session"
)

// span is the folded part of a turn at L2 or L3.
type span struct {
	From, To int
	turn     int // index of the turn
	level    int
	record   *record
	written  *written
}

func (t *turn) span() *span {
	return &span{From: t.verbatim, To: t.To, turn: t.index, level: t.level, record: t.record, written: t.written}
}

// answer returns the assistant's text after a record that ends with the span.
func (s *span) answer() string {
	if s.level >= 3 {
		return s.record.said
	}
	return s.record.answer()
}

// recorded returns the text that replaces a run, with one line in place of the dropped turns.
func (r *renderer) recorded(run []*span, block int, answers bool) string {
	n := 0
	for n < len(run) && run[n].turn < r.dropped {
		n++
	}
	switch n {
	case 0:
		return r.recordText(run, block, answers)
	case len(run):
		return droppedLine(run)
	}
	return droppedLine(run[:n]) + "\n" + r.recordText(run[n:], block, answers)
}

// recordText returns the text that replaces a run, after the frame.
func (r *renderer) recordText(run []*span, block int, answers bool) string {
	text := strings.Builder{}
	text.Grow(sizeOf(run))
	for len(run) > 0 {
		if entry, spans := run[0].written.of(run); spans > 0 {
			text.WriteString(entry)
			run = run[spans:]
			continue
		}
		n := sameLevel(run)
		if run[0].level == 3 {
			for _, line := range r.lines.blockLines(run[:n], block) {
				text.WriteString(line.text + "\n")
			}
		} else {
			fmt.Fprintf(&text, "[%s, %s–%s]\n", turnRange(run[0].turn, run[n-1].turn), extract.Archived(run[0].From), extract.Archived(run[n-1].To-1))
			for i, span := range run[:n] {
				if i > 0 && span.record.isRequest() {
					text.WriteByte('\n')
				}
				if answers && n == len(run) && i == n-1 {
					text.WriteString(span.record.entryBefore())
				} else {
					text.WriteString(span.record.entry())
				}
			}
		}
		run = run[n:]
	}
	return strings.TrimSuffix(text.String(), "\n")
}

// sameLevel counts the spans at the head of a run that have one level.
func sameLevel(run []*span) int {
	n := 1
	for n < len(run) && run[n].level == run[0].level {
		n++
	}
	return n
}

// sizeOf returns about how many bytes the entries of a run have.
func sizeOf(run []*span) int {
	const frame = 64
	size := frame
	for _, span := range run {
		if span.level < 3 && span.written == nil {
			size += len(span.record.entry())
		}
	}
	return size
}

// droppedLine names the dropped turns of adjacent spans, their place in the archive, and a person's
// first request in them.
func droppedLine(spans []*span) string {
	first, last := spans[0], spans[len(spans)-1]
	line := fmt.Sprintf("[%s left out: %s messages, archived as %s to %s]",
		turnRange(first.turn, last.turn), extract.Thousands(last.To-first.From), extract.Archived(first.From), extract.Archived(last.To-1))
	for _, span := range spans {
		if span.record.asked != "" {
			return line + " The user asked first: " + span.record.asked
		}
	}
	return line
}

// leastSaved is the minimum of o200k tokens that a message must still save after it names the
// archive, so that an epoch does not spend the space it has freed.
const leastSaved = 16

// frame returns the opening of the message that replaces turns at L2 and L3. The name of the
// archive changes with each epoch, as does the text after it.
func (r *renderer) frame() string {
	return fmt.Sprintf(`[AUTO CONTEXT COMPRESSION]
This is a shortened record of earlier turns of this conversation, not a new request. The originals are archived word for word: #12 is message 12 of archive %[1]s. For a detail that is missing here, call recall_get with %[1]s#12, or recall_search, if you have these tools; else read the file or run the command again, or ask for it. A call without an outcome succeeded.
%[2]s`, r.archive, r.forms.records.base.told())
}

// nameArchive has the newest placeholder of a projection name the archive if no frame does. The
// newest one, because all bytes before it stay the same when the next epoch shortens later ones. A
// message that would save too little with the name is left without it.
func (r *renderer) nameArchive(parts parts) {
	if r.isNamed {
		return
	}
	for i := range slices.Backward(parts) {
		if parts[i].Raw != nil && r.history.nameIn(&parts[i], r.archive) {
			return
		}
	}
}

// nameIn puts the archive's name into the placeholder in a part of one message, and reports whether
// it did.
func (h *history) nameIn(part *session.Part, name archive.Name) bool {
	message, err := h.exchange.Conversation.Read(part.Raw)
	if err != nil {
		return false
	}
	plain := " as " + extract.Archived(part.From)
	for i := range slices.Backward(message.Blocks) {
		text := message.Blocks[i].Text
		end := strings.LastIndex(text, plain) + len(plain)
		if end < len(plain) || end < len(text) && text[end] != ']' && text[end] != '\n' {
			continue
		}
		message.Replace(i, fmt.Sprintf("%s of archive %s; recall_get %s%s returns it, if you have that tool%s", text[:end], name, name, extract.Archived(part.From), text[end:]))
		named, err := h.encoded(part.From, message, h.count(message))
		if err != nil || named.Tokens > h.digests[part.From].Tokens-leastSaved {
			return false
		}
		named.Level = part.Level
		*part = named
		return true
	}
	return false
}
