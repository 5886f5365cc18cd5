package ipc

import (
	"fmt"
	"strings"
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
			fmt.Fprintf(&text, "[%s, %s–%s]\n", turnRange(run[0].turn, run[n-1].turn), archived(run[0].From), archived(run[n-1].To-1))
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
		turnRange(first.turn, last.turn), thousands(last.To-first.From), archived(first.From), archived(last.To-1))
	for _, span := range spans {
		if span.record.asked != "" {
			return line + " The user asked first: " + span.record.asked
		}
	}
	return line
}
