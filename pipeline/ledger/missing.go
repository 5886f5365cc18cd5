package ledger

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Missing is the part of a ledger that a text lacks.
type Missing struct {
	Directives []Directive
	Modified   []File // changed and not deleted since
	Errors     []Error
	Decisions  []Decision
}

// Empty reports whether the text lacks no entry.
func (m Missing) Empty() bool {
	return len(m.Directives)+len(m.Modified)+len(m.Errors)+len(m.Decisions) == 0
}

// Missing returns the entries that a text, such as a summary, lacks: directives, which it must hold
// word for word, apart from white space and capitals; modified files, which it may name by the end
// of their path, or by a unique last element alone; open errors, by their command, file or message;
// decisions, if it has less than four fifths of their longer words.
func (l *Ledger) Missing(text string) Missing {
	var missing Missing
	told := flat(text)
	for _, directive := range l.Directives {
		if !strings.Contains(told, flat(directive.Text)) {
			missing.Directives = append(missing.Directives, directive)
		}
	}
	for _, file := range l.Changed() {
		if !Mentions(text, file.Path, file.IsOnly) {
			missing.Modified = append(missing.Modified, *file.File)
		}
	}
	for i := range l.Errors {
		if e := &l.Errors[i]; e.Open() && !tells(told, e.Subject) && !tells(told, e.Excerpt) {
			missing.Errors = append(missing.Errors, *e)
		}
	}
	words := wordSet(told)
	for _, decision := range l.Decisions {
		if !covers(words, flat(decision.Text)) {
			missing.Decisions = append(missing.Decisions, decision)
		}
	}
	return missing
}

// ChangedFile is a changed file that still exists.
type ChangedFile struct {
	*File

	IsOnly bool // no other changed file has the same last element
}

// Changed returns the changed files that have not been deleted since.
func (l *Ledger) Changed() []ChangedFile {
	alike := map[string]int{}
	for i := range l.Files {
		if file := &l.Files[i]; file.Modified != Never {
			alike[base(file.Path)]++
		}
	}
	var changed []ChangedFile
	for i := range l.Files {
		if file := &l.Files[i]; file.Modified != Never && !file.Gone {
			changed = append(changed, ChangedFile{File: file, IsOnly: alike[base(file.Path)] == 1})
		}
	}
	return changed
}

// flat returns a text in lower case and with single spaces.
func flat(text string) string {
	return strings.Join(strings.Fields(lower(text)), " ")
}

// tells reports whether a flat text holds words, shortened ones without their end.
func tells(told, words string) bool {
	words = strings.TrimSuffix(flat(words), "…")
	return words != "" && strings.Contains(told, words)
}

// Mentions reports whether a text names a file, in full or by the end of its path: by the last
// element alone if it is unique.
func Mentions(text, path string, unique bool) bool {
	name := base(path)
	for at := 0; ; {
		i := strings.Index(text[at:], name)
		if i < 0 {
			return false
		}
		i += at
		at = i + len(name)
		start := i
		for start > 0 && isPathByte(text[start-1]) {
			start--
		}
		if at < len(text) && isNameByte(text[at]) || at+1 < len(text) && text[at] == '.' && isNameByte(text[at+1]) {
			continue
		}
		named := strings.TrimPrefix(text[start:at], "./")
		switch {
		case named == path, strings.HasSuffix(named, "/"+path):
			return true
		case strings.HasSuffix(path, "/"+named):
			if unique || strings.Contains(named, "/") {
				return true
			}
		}
	}
}

func isNameByte(c byte) bool {
	return isWordByte(c|0x20) && c != '\'' || c == '-' || c == '_' || c >= utf8.RuneSelf
}

func isPathByte(c byte) bool {
	return isNameByte(c) || strings.IndexByte("/.~+@", c) >= 0
}

// wordSet returns the words of a flat text.
func wordSet(told string) map[string]bool {
	words := map[string]bool{}
	for word := range strings.FieldsFuncSeq(told, isNoWord) {
		words[word] = true
	}
	return words
}

func isNoWord(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' && r != '\''
}

// covers reports whether four fifths of a sentence's longer words are known.
func covers(words map[string]bool, sentence string) bool {
	known, all := 0, 0
	for word := range strings.FieldsFuncSeq(sentence, isNoWord) {
		if len(word) < 4 {
			continue
		}
		all++
		if words[word] {
			known++
		}
	}
	return all > 0 && known*5 >= all*4
}
