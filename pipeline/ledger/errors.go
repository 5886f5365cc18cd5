package ledger

import (
	"slices"
	"strings"

	"palimpsest/pipeline/conversation"
)

// How much of a text an entry holds, in bytes.
const (
	commandCharacters   = 240
	subjectCharacters   = 200
	excerptCharacters   = 200
	decisionCharacters  = 320
	directiveCharacters = 1200
	planCharacters      = 8 << 10
	fileCharacters      = 16 << 10 // an instruction file; Claude Code warns above 40,000
)

// addCommand notes a command; one that was run before moves to its last run.
func (l *Ledger) addCommand(place Place, call *Call, failed bool) {
	line := oneLine(call.Command, commandCharacters)
	l.Commands = slices.DeleteFunc(l.Commands, func(c Command) bool { return c.Text == line })
	l.Commands = append(l.Commands, Command{Place: place, Text: line, Failed: failed})
}

// addOutcome opens an error for a call that failed, and solves those that a call
// which did not fail makes up for.
func (l *Ledger) addOutcome(place Place, call *Call, result *conversation.Block, failed bool) {
	key := call.subject(l)
	if failed {
		l.addError(Error{
			Place: place, Tool: strings.Clone(call.Tool), Subject: oneLine(call.Argument, subjectCharacters),
			Excerpt: excerpt(call, result), Solved: Never, key: key, runner: call.runner,
		})
	}
	if result == nil || failed || len(l.Errors) == 0 {
		return
	}
	for i := range l.Errors {
		if e := &l.Errors[i]; e.Open() && l.solves(call, key, e) {
			e.Solved = place.Message
		}
	}
}

// subject names what a call must succeed at: the command without its trimmings,
// the file and whether it is read or changed, or the tool and its argument.
func (c *Call) subject(l *Ledger) string {
	switch {
	case c.Command != "":
		return "run " + oneLine(c.key, 4*subjectCharacters)
	case len(c.Writes)+len(c.Deletes) > 0:
		return "write " + l.canonical(slices.Concat(c.Writes, c.Deletes)[0])
	case len(c.Reads) > 0:
		return "read " + l.canonical(c.Reads[0])
	}
	return strings.Clone(c.Tool) + " " + oneLine(c.Argument, subjectCharacters)
}

// canonical returns the path under which a file is known.
func (l *Ledger) canonical(name string) string {
	name = clean(name)
	if i, known := l.find(name); known {
		return l.Files[i].Path
	}
	return strings.Clone(name)
}

// solves reports whether a call that succeeded makes up for an error: the same
// command, all tests where some failed, or any change of the file.
func (l *Ledger) solves(call *Call, key string, e *Error) bool {
	if e.key == key {
		return true
	}
	if call.runner != "" && call.runner == e.runner {
		return isWhole(call.key)
	}
	for _, name := range slices.Concat(call.Writes, call.Deletes) {
		path := l.canonical(name)
		if e.key == "write "+path || e.key == "read "+path {
			return true
		}
	}
	return false
}

// isWhole reports whether a test or build command covers all there is: it names
// no file, package or test of its own.
func isWhole(command string) bool {
	for _, word := range strings.Fields(command)[1:] {
		switch {
		case word == "-run", word == "-k", word == "-t", strings.HasPrefix(word, "-run="), strings.HasPrefix(word, "--filter"):
			return false
		case strings.ContainsAny(word, "/.") && !strings.HasPrefix(word, "./...") && !strings.HasPrefix(word, "-") && word != ".":
			return false
		}
	}
	return true
}

// addError keeps an error; the same one again keeps its first place in the list.
func (l *Ledger) addError(e Error) {
	for i := range l.Errors {
		if l.Errors[i].key == e.key {
			l.Errors[i] = e
			return
		}
	}
	l.Errors = append(l.Errors, e)
}

// trimErrors drops solved errors where there are too many, then the oldest.
func (l *Ledger) trimErrors() {
	if len(l.Errors) <= maxErrors+maxErrors/8 {
		return
	}
	solved := 0
	for i := range l.Errors {
		if !l.Errors[i].Open() {
			solved++
		}
	}
	surplus := min(solved, len(l.Errors)-maxErrors)
	l.Errors = slices.DeleteFunc(l.Errors, func(e Error) bool {
		if e.Open() || surplus == 0 {
			return false
		}
		surplus--
		return true
	})
	l.Errors = newest(l.Errors, maxErrors, func(e *Error) Place { return e.Place })
}
