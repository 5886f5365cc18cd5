package ledger

import "strings"

// simple is one command of a shell script: its words, and its redirections.
type simple struct {
	words  []string
	into   []string // files that it writes by redirection
	from   []string // files that it reads by redirection
	here   string   // its here-document, if it has no expansions
	piped  bool     // reads the previous command's output
	isNext bool     // runs only if the previous command succeeded
	opened bool     // has a here-document
}

// opaque marks the part of a word that only the shell can know.
const opaque = '\x00'

// lexer splits a script into its simple commands. It knows just enough of the shell's grammar not
// to mistake a text for a command: quotes, substitutions, here-documents, comments. Keywords become
// the first word of a command.
type lexer struct {
	script   string
	at       int
	commands *[]simple // includes those of surrounding substitutions
	depth    int       // number of surrounding substitutions
	endless  bool      // no arithmetic ends after at

	now     simple
	word    strings.Builder
	inWord  bool
	bare    bool      // the word has no quotes: digits before a redirection are a descriptor
	target  direction // the role of the next word
	waiting []document
}

type direction int

const (
	nowhere direction = iota
	into
	from
	aside // of another descriptor, or a string
)

// document is a here-document that starts after the current line.
type document struct {
	end     string // its last line
	indents bool   // <<-
	literal bool
	command int // index of its command
}

// maxDepth is the maximum nesting of substitutions. People don't nest them so deep.
const maxDepth = 50

// simpleCommands reads a script.
func simpleCommands(script string) []simple {
	var commands []simple
	lex := lexer{script: script, commands: &commands}
	lex.list(0)
	return commands
}

// list reads commands up to a closing byte, or to the end for 0.
func (l *lexer) list(closing byte) {
	for l.at < len(l.script) {
		c := l.script[l.at]
		if c == closing && closing != 0 {
			l.at++
			break
		}
		l.at++
		l.step(c)
	}
	l.endCommand(false)
}

// step reads the element that a byte outside of quotes begins.
func (l *lexer) step(c byte) {
	switch c {
	case ' ', '\t', '\r':
		l.endWord()
	case '\n':
		l.endCommand(false)
		l.documents()
	case ';', '&', '|', '(', ')':
		l.operator(c)
	case '<', '>':
		l.redirection(c)
	case '#':
		if l.inWord {
			l.word.WriteByte(c)
			return
		}
		if end := strings.IndexByte(l.script[l.at:], '\n'); end >= 0 {
			l.at += end
			return
		}
		l.at = len(l.script)
	default:
		l.part(c)
	}
}

// part adds the element that a byte begins to the word.
func (l *lexer) part(c byte) {
	if !l.inWord {
		l.inWord, l.bare = true, true
	}
	switch c {
	case '\\':
		l.bare = false
		if l.at < len(l.script) {
			if l.script[l.at] != '\n' {
				l.word.WriteByte(l.script[l.at])
			}
			l.at++
		}
	case '\'':
		l.bare = false
		end := strings.IndexByte(l.script[l.at:], '\'')
		if end < 0 {
			end = len(l.script) - l.at
		}
		l.word.WriteString(l.script[l.at : l.at+end])
		l.at = min(l.at+end+1, len(l.script))
	case '"':
		l.bare = false
		l.quoted()
	case '`':
		l.backquoted()
	case '$':
		l.dollar()
	default:
		l.word.WriteByte(c)
	}
}

// quoted reads to the end of a double-quoted part.
func (l *lexer) quoted() {
	for l.at < len(l.script) {
		c := l.script[l.at]
		l.at++
		switch c {
		case '"':
			return
		case '\\':
			if l.at < len(l.script) {
				l.word.WriteByte(l.script[l.at])
				l.at++
			}
		case '`':
			l.backquoted()
		case '$':
			l.dollar()
		default:
			l.word.WriteByte(c)
		}
	}
}

// backquoted leaves out the output of `…`.
func (l *lexer) backquoted() {
	l.word.WriteByte(opaque)
	end := strings.IndexByte(l.script[l.at:], '`')
	if end < 0 {
		l.at = len(l.script)
		return
	}
	l.at += end + 1
}

// dollar reads the element after a $: the commands of $(…) run too. $NAME stays in the word so that
// loops can replace it by its value.
func (l *lexer) dollar() {
	if !strings.HasPrefix(l.script[l.at:], "(") {
		l.word.WriteByte('$')
		return
	}
	l.at++
	if strings.HasPrefix(l.script[l.at:], "(") { // arithmetic
		l.word.WriteByte(opaque)
		end := -1
		if !l.endless {
			end = strings.Index(l.script[l.at:], "))")
		}
		if l.endless = end < 0; !l.endless {
			l.at += end + len("))")
		}
		return
	}
	l.word.WriteByte(opaque)
	if l.depth == maxDepth {
		l.at = len(l.script)
		return
	}
	inner := lexer{script: l.script, at: l.at, commands: l.commands, depth: l.depth + 1, endless: l.endless}
	inner.list(')')
	l.at, l.endless = inner.at, inner.endless
}

// operator reads the end of a command.
func (l *lexer) operator(c byte) {
	if c == '&' && strings.HasPrefix(l.script[l.at:], ">") {
		l.endWord()
		l.at++
		l.redirection('>')
		return
	}
	double := l.at < len(l.script) && l.script[l.at] == c && c != '(' && c != ')'
	if double {
		l.at++
	}
	l.endCommand(c == '|' && !double)
	l.now.isNext = c == '&' && double
}

// redirection reads < and >.
func (l *lexer) redirection(c byte) {
	descriptor := ""
	if l.inWord && l.bare && strings.Trim(l.word.String(), "0123456789") == "" {
		descriptor = l.word.String()
		l.word.Reset()
		l.inWord = false
	}
	l.endWord()
	rest := l.script[l.at:]
	switch {
	case strings.HasPrefix(rest, "("): // the commands of <(…) run
		l.part('$')
	case c == '<' && strings.HasPrefix(rest, "<<"):
		l.at += 2
		l.target = aside
	case c == '<' && strings.HasPrefix(rest, "<"):
		l.at++
		l.document()
	case strings.HasPrefix(rest, "&"):
		l.at++
		l.target = aside
	case c == '<':
		l.target = from
	default:
		if strings.HasPrefix(rest, ">") || strings.HasPrefix(rest, "|") {
			l.at++
		}
		l.target = into
		if descriptor != "" && descriptor != "1" {
			l.target = aside
		}
	}
}

// document reads the word after << and notes that its text follows.
func (l *lexer) document() {
	next := document{}
	if strings.HasPrefix(l.script[l.at:], "-") {
		l.at++
		next.indents = true
	}
	for l.at < len(l.script) && l.script[l.at] == ' ' {
		l.at++
	}
	start := l.at
	for l.at < len(l.script) && !strings.ContainsRune(" \t\n;&|<>()", rune(l.script[l.at])) {
		l.at++
	}
	word := l.script[start:l.at]
	next.end = strings.Trim(strings.TrimPrefix(word, `\`), `'"`)
	next.literal = next.end != word
	next.command = len(*l.commands)
	l.now.opened = true
	l.waiting = append(l.waiting, next)
}

// documents reads the here-documents that begin on this line.
func (l *lexer) documents() {
	for _, next := range l.waiting {
		start, end := l.at, len(l.script)
		for l.at < len(l.script) {
			line, _, _ := strings.Cut(l.script[l.at:], "\n")
			lineStart := l.at
			l.at = min(l.at+len(line)+1, len(l.script))
			if next.indents {
				line = strings.TrimLeft(line, "\t")
			}
			if line == next.end {
				end = lineStart
				break
			}
		}
		if next.command < len(*l.commands) && start <= end {
			body := l.script[start:end]
			if next.literal || !strings.ContainsAny(body, "$`\\") {
				(*l.commands)[next.command].here = body
			}
		}
	}
	l.waiting = nil
}

func (l *lexer) endWord() {
	if !l.inWord {
		return
	}
	word := l.word.String()
	l.word.Reset()
	l.inWord = false
	switch l.target {
	case into:
		l.now.into = append(l.now.into, word)
	case from:
		l.now.from = append(l.now.from, word)
	case nowhere:
		l.now.words = append(l.now.words, word)
	case aside:
	}
	l.target = nowhere
}

// endCommand ends the command; piped means that the next one reads its output.
func (l *lexer) endCommand(piped bool) {
	l.endWord()
	l.target = nowhere
	if len(l.now.words) > 0 || len(l.now.into) > 0 || l.now.opened {
		*l.commands = append(*l.commands, l.now)
	}
	l.now = simple{piped: piped}
}
