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
		text.WriteString(line.text)
		text.WriteByte('\n')
	}
	return text.String()
}
