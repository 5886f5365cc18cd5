package ipc

import "strings"

// entry returns what L2 leaves of a turn: a line for each thing said and done,
// with the index of its message. Without its last sentence of the assistant if
// that follows as a message of its own.
func (r *record) entry(withoutLastSaid bool) string {
	var text strings.Builder
	for i, line := range r.lines {
		if withoutLastSaid && i == r.saidAt {
			continue
		}
		text.WriteString(archived(line.index))
		text.WriteByte(' ')
		line.write(&text)
		text.WriteByte('\n')
	}
	return text.String()
}

// answer returns what L2 leaves of what the assistant said last.
func (r *record) answer() string {
	var text strings.Builder
	r.lines[r.saidAt].write(&text)
	return strings.TrimPrefix(text.String(), assistant)
}

// write writes the line and the names that it leaves out otherwise.
func (l *line) write(text *strings.Builder) {
	text.WriteString(l.text)
	for i, name := range l.names {
		if i == 0 {
			text.WriteString(" · ")
		} else {
			text.WriteString(", ")
		}
		text.WriteString(name)
	}
}
