package ipc

import (
	"path"
	"strings"
)

// leastBelow is how many bytes a base must save before a record names it.
const leastBelow = 200

// base is the directory that contains most paths in the calls of a conversation. Records name it
// once and write paths below it relative to it. If it is "", they write all paths in full.
type base string

// baseOf returns the base of turns that have been read. It depends on the originals alone.
func baseOf(turns []*turn) base {
	uses := map[string]int{}
	for _, t := range turns {
		calls := t.calls()
		for i := range calls {
			for _, names := range [][]string{calls[i].Reads, calls[i].Writes, calls[i].Deletes} {
				for _, name := range names {
					for dir := path.Dir(path.Clean(name)); path.IsAbs(dir) && dir != "/"; dir = path.Dir(dir) {
						uses[dir]++
					}
				}
			}
		}
	}
	best, most := "", leastBelow
	for dir, count := range uses {
		if saved := count * len(dir); saved > most || saved == most && dir < best {
			best, most = dir, saved
		}
	}
	return base(best)
}

// below returns a text with the paths below the base made relative to it.
func (b base) below(text string) string {
	if b == "" || !strings.Contains(text, string(b)) {
		return text
	}
	text = strings.ReplaceAll(text, "cd "+string(b)+" && ", "")
	var short strings.Builder
	for {
		at := strings.Index(text, string(b))
		if at < 0 {
			short.WriteString(text)
			return short.String()
		}
		end := at + len(b)
		isStart := at == 0 || kindOf[text[at-1]] == 0
		switch {
		case isStart && end+1 < len(text) && text[end] == '/' && kindOf[text[end+1]] != 0:
			short.WriteString(text[:at])
			end++
		default:
			short.WriteString(text[:end])
		}
		text = text[end:]
	}
}

// hashBelow returns the hash of the path that a name is below the base.
func (b base) hashBelow(name string) uint64 { return hashOn(hashOn(hashOf(string(b)), "/"), name) }

// told returns the sentence that explains relative paths in a record, or "" without a base.
func (b base) told() string {
	if b == "" {
		return ""
	}
	return "Paths below " + string(b) + " are written without it.\n"
}
