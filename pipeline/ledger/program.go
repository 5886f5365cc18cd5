package ledger

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"palimpsest/pipeline/conversation"
)

// unknown replaces the part of a tool's argument that only running a program would reveal.
const unknown = "…"

// program reads JavaScript that calls tools, and reports whether it calls any. GPT-6 writes it for
// Codex's tool exec, through which it uses all others:
//
//	const r = await tools.exec_command({cmd: "go test ./..."}); text(r.output);
//
// It knows only the values in the source: literals, and variables that hold one.
func (c *Call) program(source string) bool {
	read := programReader{tokens: tokensOf(source[:min(len(source), maxScript)]), variables: map[string]string{}}
	made := read.calls()
	if len(made) == 0 {
		return false
	}
	var commands, said []string
	for i := range made {
		if made[i].Command != "" {
			commands = append(commands, made[i].Command)
		}
	}
	separator := "; "
	if slices.ContainsFunc(commands, func(command string) bool { return strings.Contains(command, "\n") }) {
		separator = "\n" // a here-document ends with its line
	}
	c.run(strings.Join(commands, separator))
	for i := range made {
		if call := &made[i]; call.Command == "" {
			said = append(said, strings.TrimSpace(call.Tool+" "+call.Argument))
			c.Reads, c.Writes, c.Deletes = append(c.Reads, call.Reads...), append(c.Writes, call.Writes...), append(c.Deletes, call.Deletes...)
		}
	}
	c.Argument = strings.Join(append(commands, said...), "; ")
	c.line.steps += len(said)
	return true
}

// programReader finds the calls of tools in a program.
type programReader struct {
	tokens    []token
	variables map[string]string // those that hold a literal
}

// calls returns the calls of tools, in the order in which they are written.
func (p *programReader) calls() []Call {
	var made []Call
	for i := 0; i < len(p.tokens); i++ {
		if name := p.at(i); name.kind == word && p.is(i+1, "=") && p.at(i+2).kind == literal {
			p.variables[name.text] = p.at(i + 2).text
			continue
		}
		tool, inside := p.tool(i)
		if tool == "" {
			continue
		}
		var call Call
		call, i = p.call(tool, inside)
		made = append(made, call)
	}
	return made
}

// tool returns the name of the tool that is called at a token, and the beginning of its arguments;
// "" without a call.
func (p *programReader) tool(i int) (name string, inside int) {
	if at := p.at(i); at.kind != word || at.text != "tools" {
		return "", 0
	}
	switch named := p.at(i + 2); {
	case p.is(i+1, ".") && named.kind == word && p.is(i+3, "("):
		return named.text, i + 4
	case p.is(i+1, "[") && named.kind == literal && p.is(i+3, "]") && p.is(i+4, "("):
		return named.text, i + 5
	}
	return "", 0
}

// call reads the arguments of a call and returns their end.
func (p *programReader) call(tool string, i int) (Call, int) {
	args := given{values: map[string]string{}}
	for args.depth = 1; i < len(p.tokens) && args.depth > 0; i++ {
		switch at := p.tokens[i]; {
		case at.kind == mark:
			args.mark(at.text)
		case p.is(i+1, ":"):
			args.name = at.text
			i++
		case at.kind == literal:
			if !p.is(i-1, "(") || p.at(i-2).text != "join" {
				args.add(at.text)
			}
			if p.is(i+1, "+") && p.at(i+2).kind == word {
				args.add(unknown)
			}
		case !p.is(i+1, ".") && !p.is(i-1, "."):
			if value, known := p.variables[at.text]; known {
				if args.name == "" && (p.is(i-1, "{") || p.is(i-1, ",")) {
					args.name = at.text // {cmd} is {cmd: cmd}
				}
				args.add(value)
			}
		}
	}
	return ParseCall(&conversation.Block{Name: tool, Text: args.text()}), i - 1
}

// given are the arguments of a call in a program: one without a name, or the members of an object.
type given struct {
	values map[string]string // by name
	names  []string          // in the order in which they are written

	name         string // of the current member
	depth, lists int    // open brackets, and how many of them are lists'
}

// add adds a piece of a value: a joined text, or a line of a list.
func (g *given) add(value string) {
	before, known := g.values[g.name]
	switch {
	case !known:
		g.names = append(g.names, g.name)
	case g.lists > 0:
		before += "\n"
	}
	g.values[g.name] = before + value
}

// mark notes a bracket, or a separator of members.
func (g *given) mark(text string) {
	switch text {
	case "(", "{":
		g.depth++
	case "[":
		g.depth, g.lists = g.depth+1, g.lists+1
	case ")", "}":
		g.depth--
	case "]":
		g.depth, g.lists = g.depth-1, g.lists-1
	case ",":
		if g.lists == 0 {
			g.name = ""
		}
	}
}

// text returns the arguments in the form of a direct call of the tool: a text, or a JSON object.
func (g *given) text() string {
	if text, alone := g.values[""]; alone {
		return text
	}
	members := make([]string, len(g.names))
	for i, name := range g.names {
		members[i] = quoted(name) + ":" + quoted(g.values[name])
	}
	return "{" + strings.Join(members, ",") + "}"
}

// quoted returns a text as JSON.
func quoted(text string) string {
	encoded, err := json.Marshal(text)
	if err != nil {
		panic("ledger: a text as JSON: " + err.Error()) // any text can be encoded
	}
	return string(encoded)
}

func (p *programReader) at(i int) token {
	if i < 0 || i >= len(p.tokens) {
		return token{}
	}
	return p.tokens[i]
}

func (p *programReader) is(i int, text string) bool {
	at := p.at(i)
	return at.kind == mark && at.text == text
}

// tokenKind is the kind of a token.
type tokenKind int

const (
	mark    tokenKind = iota // one character
	word                     // a name or a number
	literal                  // a string, decoded
)

// token is a piece of a program.
type token struct {
	kind tokenKind
	text string
}

// tokensOf splits JavaScript into its tokens, without comments.
func tokensOf(source string) []token {
	var tokens []token
	for at := 0; at < len(source); {
		switch c := source[at]; {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == ';':
			at++
		case strings.HasPrefix(source[at:], "//"):
			at += lengthTo(source[at:], "\n")
		case strings.HasPrefix(source[at:], "/*"):
			at += lengthTo(source[at:], "*/")
		case c == '"' || c == '\'' || c == '`':
			text, length := literalOf(source[at:])
			tokens, at = append(tokens, token{literal, text}), at+length
		case isWordInProgram(c):
			end := at + 1
			for end < len(source) && isWordInProgram(source[end]) {
				end++
			}
			tokens, at = append(tokens, token{word, source[at:end]}), end
		default:
			tokens, at = append(tokens, token{mark, source[at : at+1]}), at+1
		}
	}
	return tokens
}

// lengthTo returns the length of a text up to and including an end mark.
func lengthTo(text, end string) int {
	if i := strings.Index(text, end); i >= 0 {
		return i + len(end)
	}
	return len(text)
}

func isWordInProgram(c byte) bool {
	return c == '_' || c == '$' || c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z' || c >= utf8.RuneSelf
}

// literalOf decodes the string that a text begins with, and returns its length in the text.
func literalOf(source string) (text string, length int) {
	quote := source[0]
	var decoded strings.Builder
	for at := 1; at < len(source); {
		switch c := source[at]; {
		case c == quote:
			return decoded.String(), at + 1
		case c == '\\' && at+1 < len(source):
			value, length := escapeOf(source[at:])
			decoded.WriteString(value)
			at += length
		default:
			decoded.WriteByte(c)
			at++
		}
	}
	return decoded.String(), len(source)
}

// escapeOf decodes the escape that a text begins with, and returns its length in the text.
func escapeOf(source string) (text string, length int) {
	switch source[1] {
	case 'n':
		return "\n", 2
	case 't':
		return "\t", 2
	case 'r', '\n':
		return "", 2
	case 'x':
		return runeOf(source, 2, 4)
	case 'u':
		if end := strings.IndexByte(source, '}'); strings.HasPrefix(source[2:], "{") && end > 0 {
			text, _ = runeOf(source, 3, end)
			return text, end + 1
		}
		return runeOf(source, 2, 6)
	}
	_, size := utf8.DecodeRuneInString(source[1:])
	return source[1 : 1+size], 1 + size
}

// runeOf decodes the digits of an escape.
func runeOf(source string, from, to int) (text string, length int) {
	to = min(to, len(source))
	code, err := strconv.ParseUint(source[from:to], 16, 32)
	if err != nil {
		return source[1:2], 2
	}
	return string(rune(code)), to //nolint:gosec // 32 bits; a number that stands for no character becomes U+FFFD
}
