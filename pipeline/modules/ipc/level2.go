package ipc

import "strings"

// entry returns what L2 leaves of a turn: a line for each thing said and done,
// with the index of its message. It is made once.
func (r *record) entry() string {
	if r.noted == "" {
		r.noted = r.written(-1)
	}
	return r.noted
}

// entryBefore returns the entry without its last sentence of the assistant, for where
// that follows as a message of its own.
func (r *record) entryBefore() string { return r.written(r.saidAt) }

// written returns the record's lines but for one.
func (r *record) written(but int) string {
	const around = len("#100000 \n · ")
	size := 0
	for i := range r.lines {
		size += len(r.lines[i].text) + around
		for _, name := range r.lines[i].names {
			size += len(name) + len(", ")
		}
	}
	var text strings.Builder
	text.Grow(size)
	for i := range r.lines {
		if i == but {
			continue
		}
		text.WriteString(archived(r.lines[i].index))
		text.WriteByte(' ')
		r.lines[i].write(&text)
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
