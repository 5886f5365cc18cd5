package compactionbridge

import (
	"encoding/json"
	"slices"
	"strings"
)

// edit replaces one text by another.
type edit struct {
	before, after string
	all           bool // all occurrences
}

// patch is the part of a patch about one file.
type patch struct {
	path    string
	content string // of an added file
	edits   []edit
}

// edit follows an edit of the file. If the replaced text is known, the known content stays exact;
// otherwise every line that the edit may have changed is forgotten.
func (f *file) edit(at int, change edit) {
	if change.before == change.after {
		return
	}
	grown := strings.Count(change.after, "\n") - strings.Count(change.before, "\n")
	found := false
	for i := range f.stretches {
		place, ok := f.stretches[i].replace(at, change)
		if !ok {
			continue
		}
		found = true
		if grown != 0 {
			f.shift(i, place, grown, change.all)
		}
		if !change.all {
			break
		}
	}
	if !found {
		f.editUnseen(at, change, grown)
	}
}

// shift moves the line numbers of the stretches after an edit in stretch i. If the order is
// unknown, they lose their numbers.
func (f *file) shift(i, place, grown int, all bool) {
	for j := range f.stretches {
		switch other := &f.stretches[j]; {
		case j == i || other.from == 0:
		case place == 0 || all:
			other.from = 0
		case other.from > place:
			other.from += grown
		}
	}
}

// replace makes an edit within the stretch and returns the line number of its place, or 0 if
// unknown; ok is false if the stretch lacks the text.
func (s *stretch) replace(at int, change edit) (place int, ok bool) {
	text := s.text()
	start := strings.Index(text, change.before)
	if start < 0 || change.before == "" {
		return 0, false
	}
	place = s.from
	if place > 0 {
		place += strings.Count(text[:start], "\n")
	}
	for start >= 0 {
		first := strings.Count(text[:start], "\n")
		last := first + strings.Count(change.before, "\n")
		head := text[strings.LastIndexByte(text[:start], '\n')+1 : start]
		tail, _, _ := strings.Cut(text[start+len(change.before):], "\n")
		fresh := linesOf(at, head+change.after+tail)
		s.lines = slices.Concat(s.lines[:first], fresh, s.lines[last+1:])
		if !change.all {
			break
		}
		text = s.text()
		from := start + len(change.after)
		if start = strings.Index(text[from:], change.before); start >= 0 {
			start += from
		}
	}
	return place, true
}

func (s *stretch) text() string {
	var text strings.Builder
	for i := range s.lines {
		if i > 0 {
			text.WriteByte('\n')
		}
		text.WriteString(s.lines[i].text)
	}
	return text.String()
}

// distinct is the minimum length of a line that identifies the place of an edit.
const distinct = 8

// editUnseen follows an edit of a text that is only partly known: every known line of it goes, and
// the new text is known without its number.
func (f *file) editUnseen(at int, change edit, grown int) {
	gone := map[string]bool{}
	for part := range strings.SplitSeq(change.before, "\n") {
		if part = strings.TrimSpace(part); len(part) >= distinct {
			gone[part] = true
		}
	}
	var kept []stretch
	for _, old := range f.stretches {
		start := 0
		for i := 0; i <= len(old.lines); i++ {
			if i < len(old.lines) && !gone[strings.TrimSpace(old.lines[i].text)] {
				continue
			}
			if i > start {
				part := stretch{lines: old.lines[start:i], doubt: old.doubt}
				if grown == 0 && old.from > 0 {
					part.from = old.from + start
				}
				kept = append(kept, part)
			}
			start = i + 1
		}
	}
	if len(gone) == 0 {
		kept = nil // the place of the edit is unknown
	}
	f.stretches = kept
	if strings.TrimSpace(change.after) != "" {
		f.stretches = append(f.stretches, stretch{lines: linesOf(at, strings.Trim(change.after, "\n"))})
	}
	f.tidy()
}

// editsOf reads the edits in a call's arguments, in the forms of known clients; nil if there are no
// edits or not all of them are understood.
func editsOf(arguments string) []edit {
	var members map[string]json.RawMessage
	if json.Unmarshal([]byte(arguments), &members) != nil {
		return nil
	}
	if list, ok := members["edits"]; ok {
		var elements []map[string]json.RawMessage
		if json.Unmarshal(list, &elements) != nil {
			return nil
		}
		var edits []edit
		for _, element := range elements {
			one, ok := editOf(element)
			if !ok {
				return nil
			}
			edits = append(edits, one)
		}
		return edits
	}
	if diff := textOf(members, "diff"); strings.Contains(diff, "<<<<<<< SEARCH") || strings.Contains(diff, "------- SEARCH") {
		return searchReplace(diff)
	}
	if one, ok := editOf(members); ok {
		return []edit{one}
	}
	return nil
}

// editOf reads one edit.
func editOf(members map[string]json.RawMessage) (edit, bool) {
	before := textOf(members, "old_string", "old_str", "oldString", "oldText", "old_text", "search")
	if before == "" {
		return edit{}, false
	}
	all := false
	for _, name := range []string{"replace_all", "replaceAll"} {
		all = all || string(members[name]) == "true"
	}
	return edit{before: before, after: textOf(members, "new_string", "new_str", "newString", "newText", "new_text", "replace"), all: all}, true
}

// textOf returns the first non-empty string of some members.
func textOf(members map[string]json.RawMessage, names ...string) string {
	for _, name := range names {
		var text string
		if value, ok := members[name]; ok && json.Unmarshal(value, &text) == nil && text != "" {
			return text
		}
	}
	return ""
}

// searchReplace reads Cline's blocks of SEARCH and REPLACE.
func searchReplace(diff string) []edit {
	var edits []edit
	var sides [2][]string
	side := -1
	for text := range strings.SplitSeq(diff, "\n") {
		switch trimmed := strings.TrimSpace(text); {
		case strings.HasSuffix(trimmed, " SEARCH"):
			side, sides = 0, [2][]string{}
		case side == 0 && strings.Trim(trimmed, "=") == "" && len(trimmed) >= 7:
			side = 1
		case side == 1 && strings.HasSuffix(trimmed, " REPLACE"):
			edits = append(edits, edit{before: strings.Join(sides[0], "\n"), after: strings.Join(sides[1], "\n")})
			side = -1
		case side >= 0:
			sides[side] = append(sides[side], text)
		}
	}
	return edits
}

// patchOf returns the patch among a call's arguments; "" if absent.
func patchOf(arguments string) string {
	var members map[string]json.RawMessage
	if json.Unmarshal([]byte(arguments), &members) != nil {
		return arguments
	}
	return textOf(members, "patch", "patchText", "input", "diff")
}

// patches reads a patch in Codex's form.
func patches(text string) []patch {
	_, body, found := strings.Cut(text, "*** Begin Patch")
	if !found {
		return nil
	}
	body, _, _ = strings.Cut(body, "*** End Patch")
	var all []patch
	var content, before, after strings.Builder // of the last file, and of its last edit
	endEdit := func() {
		if last := len(all) - 1; last >= 0 && before.Len()+after.Len() > 0 && content.Len() == 0 {
			all[last].edits = append(all[last].edits, edit{
				before: strings.TrimSuffix(before.String(), "\n"), after: strings.TrimSuffix(after.String(), "\n"),
			})
		}
		before.Reset()
		after.Reset()
	}
	endFile := func() {
		endEdit()
		if last := len(all) - 1; last >= 0 {
			all[last].content = content.String()
		}
		content.Reset()
	}
	adding := false
	for text := range strings.SplitSeq(body, "\n") {
		switch {
		case strings.HasPrefix(text, "*** Update File: "), strings.HasPrefix(text, "*** Add File: "):
			endFile()
			adding = strings.HasPrefix(text, "*** Add")
			_, path, _ := strings.Cut(text, "File: ")
			all = append(all, patch{path: strings.TrimSpace(path)})
		case strings.HasPrefix(text, "*** Move to: ") && len(all) > 0:
			all[len(all)-1].path = strings.TrimSpace(strings.TrimPrefix(text, "*** Move to: "))
		case strings.HasPrefix(text, "*** "), strings.HasPrefix(text, "@@"):
			endEdit()
		case len(all) == 0 || text == "":
		case adding && text[0] == '+':
			writeLine(text[1:], &content)
		case text[0] == '+':
			writeLine(text[1:], &after)
		case text[0] == '-':
			writeLine(text[1:], &before)
		case text[0] == ' ':
			writeLine(text[1:], &before, &after)
		}
	}
	endFile()
	return all
}

// writeLine adds a line to each of some texts.
func writeLine(line string, to ...*strings.Builder) {
	for _, text := range to {
		text.WriteString(line)
		text.WriteByte('\n')
	}
}
