package compactionbridge

import (
	"slices"
	"strings"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/ledger"
)

// line is a line of a file, and the message in which the lane last saw or wrote it.
type line struct {
	text string
	at   int
}

// stretch is a run of adjacent lines of a file.
type stretch struct {
	from  int // number of the first line, from 1; 0 if unknown
	lines []line
	doubt string // command run since that may have changed the file, or ""
}

// newest returns the message in which a line of the stretch was last seen.
func (s *stretch) newest() int {
	at := 0
	for i := range s.lines {
		at = max(at, s.lines[i].at)
	}
	return at
}

// file is a lane's knowledge of a file's content.
type file struct {
	path      string
	stretches []stretch
	touched   int // message of the last call that read or changed it
	reads     int
	changes   int
}

// contents follows which parts of files a lane read and wrote. It forgets a line that a later call
// may have changed, so that it never keeps an outdated one.
type contents struct {
	files []*file // in the order in which they were first touched
}

// maxStretches bounds the known pieces of one file.
const maxStretches = 40

// add reads the calls of a turn with their results; first is the index of its first
// message.
func (c *contents) add(first int, messages []conversation.Message) {
	results := map[string]*conversation.Block{}
	for i := range messages {
		for j := range messages[i].Blocks {
			if block := &messages[i].Blocks[j]; block.Kind == conversation.ToolResult {
				results[block.ID] = block
			}
		}
	}
	for i := range messages {
		for j := range messages[i].Blocks {
			block := &messages[i].Blocks[j]
			if block.Kind != conversation.ToolCall {
				continue
			}
			if result := results[block.ID]; result != nil {
				c.addCall(first+i, block, result)
			}
		}
	}
}

// addCall follows one call.
func (c *contents) addCall(at int, block, result *conversation.Block) {
	call := ledger.ParseCall(block)
	if call.Failed(result) {
		if call.Command != "" { // some of its commands may have succeeded
			c.forget(at, call.Writes)
			c.doubt(call.Command)
		}
		return
	}
	for _, path := range call.Deletes {
		c.remove(path)
	}
	if call.Command != "" {
		c.addCommand(at, &call, result)
		return
	}
	for _, path := range call.Reads {
		if known := c.file(path); known != nil {
			known.touched, known.reads = at, known.reads+1
			if len(call.Reads) == 1 && len(result.Media) == 0 {
				known.see(shown(at, result.Text, startOf(block.Text, call.Partial)))
			}
		}
	}
	if len(call.Writes) > 0 {
		c.addWrites(at, &call, block, result)
	}
}

// addCommand follows a shell command.
func (c *contents) addCommand(at int, call *ledger.Call, result *conversation.Block) {
	for _, path := range call.Reads {
		if known := c.file(path); known != nil {
			known.touched, known.reads = at, known.reads+1
			if start, plain := printed(call.Command); plain && len(call.Reads) == 1 {
				known.see(shown(at, outputOf(result.Text), start))
			}
		}
	}
	switch patched := patches(call.Command); {
	case len(patched) > 0:
		c.apply(at, patched)
	case len(call.Writes) == 1 && call.Content != "":
		c.file(call.Writes[0]).write(at, call.Content)
	default:
		c.forget(at, call.Writes)
	}
	c.doubt(call.Command)
}

// addWrites follows a call of a tool that changes files.
func (c *contents) addWrites(at int, call *ledger.Call, block, result *conversation.Block) {
	if patched := patches(call.Argument + "\n" + patchOf(block.Text)); len(patched) > 0 {
		c.apply(at, patched)
		return
	}
	if len(call.Writes) != 1 {
		c.forget(at, call.Writes)
		return
	}
	known := c.file(call.Writes[0])
	changes := editsOf(block.Text)
	switch {
	case known == nil:
	case len(changes) > 0:
		known.touch(at)
		for _, change := range changes {
			known.edit(at, change)
		}
		if numbered := shown(at, result.Text, 0); len(numbered) > 0 {
			known.see(numbered) // some clients show the lines around an edit
		}
	case call.Content != "" && !call.Partial:
		known.write(at, call.Content)
	default:
		c.forget(at, call.Writes)
	}
}

// apply follows patches.
func (c *contents) apply(at int, patched []patch) {
	for _, one := range patched {
		known := c.file(one.path)
		if known == nil {
			continue
		}
		if one.content != "" {
			known.write(at, one.content)
			continue
		}
		known.touch(at)
		for _, change := range one.edits {
			known.edit(at, change)
		}
	}
}

// forget notes that files were changed in an unknown way.
func (c *contents) forget(at int, paths []string) {
	for _, path := range paths {
		if known := c.file(path); known != nil {
			known.touch(at)
			known.stretches = nil
		}
	}
}

// doubt notes a command that may have changed any file.
func (c *contents) doubt(command string) {
	rewriter := rewriterIn(command)
	if rewriter == "" {
		return
	}
	for _, known := range c.files {
		for i := range known.stretches {
			if known.stretches[i].doubt == "" {
				known.stretches[i].doubt = rewriter
			}
		}
	}
}

// remove forgets a file, or all of a folder.
func (c *contents) remove(path string) {
	c.files = slices.DeleteFunc(c.files, func(known *file) bool {
		return same(known.path, path) || strings.HasPrefix(known.path, strings.TrimSuffix(path, "/")+"/")
	})
}

// file returns the entry of a path, a new one if it does not exist; nil for "".
func (c *contents) file(path string) *file {
	path = strings.TrimPrefix(strings.TrimSpace(path), "./")
	if path == "" || strings.ContainsAny(path, "\n\x00") {
		return nil
	}
	for _, known := range c.files {
		if same(known.path, path) {
			if len(path) > len(known.path) {
				known.path = path
			}
			return known
		}
	}
	made := &file{path: path}
	c.files = append(c.files, made)
	return made
}

// same reports whether two paths name one file: a relative path with a folder matches an absolute
// one that ends in it.
func same(a, b string) bool {
	if a == b {
		return true
	}
	if len(a) < len(b) {
		a, b = b, a
	}
	return strings.HasPrefix(a, "/") && !strings.HasPrefix(b, "/") && strings.Contains(b, "/") && strings.HasSuffix(a, "/"+b)
}

// touch notes a change.
func (f *file) touch(at int) {
	f.touched, f.changes = at, f.changes+1
}

// write notes a file's whole new content.
func (f *file) write(at int, content string) {
	if f == nil {
		return
	}
	f.touch(at)
	f.stretches = []stretch{{from: 1, lines: linesOf(at, strings.TrimRight(content, "\n"))}}
}

// see notes lines that a read showed, and replaces older knowledge of them.
func (f *file) see(seen []stretch) {
	for _, fresh := range seen {
		if fresh.from == 0 || len(fresh.lines) == 0 {
			continue
		}
		var kept []stretch
		for _, old := range f.stretches {
			kept = append(kept, old.without(fresh.from, fresh.from+len(fresh.lines))...)
		}
		kept = append(kept, fresh)
		f.stretches = kept
		f.tidy()
	}
}

// without returns the rest of a stretch without the lines in [from, to). A stretch at an unknown
// place goes completely, because it may be among them.
func (s *stretch) without(from, to int) []stretch {
	end := s.from + len(s.lines)
	switch {
	case s.from == 0:
		return nil
	case to <= s.from || end <= from:
		return []stretch{*s}
	}
	var left []stretch
	if s.from < from {
		left = append(left, stretch{from: s.from, lines: s.lines[:from-s.from], doubt: s.doubt})
	}
	if to < end {
		left = append(left, stretch{from: to, lines: s.lines[to-s.from:], doubt: s.doubt})
	}
	return left
}

// tidy puts the stretches in order and joins those that follow each other.
func (f *file) tidy() {
	slices.SortStableFunc(f.stretches, func(a, b stretch) int { return a.from - b.from })
	var joined []stretch
	for _, next := range f.stretches {
		if last := len(joined) - 1; last >= 0 && joined[last].from > 0 && joined[last].doubt == next.doubt &&
			joined[last].from+len(joined[last].lines) == next.from {
			joined[last].lines = slices.Concat(joined[last].lines, next.lines)
			continue
		}
		joined = append(joined, next)
	}
	if len(joined) > maxStretches {
		slices.SortStableFunc(joined, func(a, b stretch) int { return b.newest() - a.newest() })
		joined = joined[:maxStretches]
		slices.SortStableFunc(joined, func(a, b stretch) int { return a.from - b.from })
	}
	f.stretches = joined
}

// linesOf cuts a text into lines.
func linesOf(at int, text string) []line {
	var lines []line
	for part := range strings.SplitSeq(text, "\n") {
		lines = append(lines, line{text: strings.TrimSuffix(part, "\r"), at: at})
	}
	return lines
}
