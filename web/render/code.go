package render

import (
	"html"
	"path"
	"sort"
	"strings"
	"time"

	"github.com/alecthomas/chroma/v2"
)

// maxLine is how many bytes a line may have to be highlighted: minified code costs
// much and tells nothing.
const maxLine = 16 << 10

// highlight returns code as HTML in which each piece has the class of what it is, and
// false where the code is beyond the bounds.
func highlight(lexer chroma.Lexer, text string) (marked string, ok bool) {
	if len(text) > maxCode || longestLine(text) > maxLine {
		return "", false
	}
	defer func() {
		// A language's rules are data of a library; a fault in them costs the colors.
		if recover() != nil {
			marked, ok = "", false
		}
	}()
	next, err := lexer.Tokenise(nil, text)
	if err != nil {
		return "", false
	}
	var out strings.Builder
	out.Grow(2 * len(text))
	until, read := time.Now().Add(patience), 0
	for token := next(); token != chroma.EOF; token = next() {
		if time.Now().After(until) {
			return "", false
		}
		write(&out, token)
		read += len(token.Value)
	}
	// A rule that swallows or invents text would show another text than there was.
	if read < len(text) || read > len(text)+1 {
		return "", false
	}
	return out.String(), true
}

func write(out *strings.Builder, token chroma.Token) {
	class := classOf(token.Type)
	if class == "" || strings.TrimSpace(token.Value) == "" {
		out.WriteString(html.EscapeString(token.Value))
		return
	}
	out.WriteString(`<span class="` + class + `">` + html.EscapeString(token.Value) + `</span>`)
}

// classOf returns the class of a kind of piece, that of its family where the style
// says nothing of it alone; empty: it looks like text.
func classOf(kind chroma.TokenType) string {
	for kind > 0 {
		if _, styled := look[kind]; styled {
			return chroma.StandardTypes[kind]
		}
		kind = kind.Parent()
	}
	return ""
}

// lexerOf returns what reads a language, named itself or by a file; nil if unknown.
func lexerOf(name string) chroma.Lexer {
	name = strings.TrimSpace(name)
	if name == "" || len(name) > 1024 {
		return nil
	}
	if lexer := lexerOfFile(path.Base(strings.ReplaceAll(name, `\`, "/"))); lexer != nil {
		return chroma.Coalesce(lexer)
	}
	if lexer := languages().Get(name); lexer != nil {
		return chroma.Coalesce(lexer)
	}
	return nil
}

// lexerOfFile returns what reads a file of a name; nil if unknown. It is [chroma.LexerRegistry.Match], which tries each of some 600
// patterns with each ending of backup copies as well: a millisecond for a name, of which a page has dozens.
func lexerOfFile(base string) chroma.Lexer {
	var found chroma.PrioritisedLexers
	for _, lexer := range languages().Lexers {
		for _, pattern := range lexer.Config().Filenames {
			if ok, err := path.Match(pattern, base); ok && err == nil {
				found = append(found, lexer)
				break
			}
		}
	}
	if len(found) == 0 {
		return languages().Match(base)
	}
	sort.Sort(found)
	return found[0]
}

func longestLine(text string) int {
	longest := 0
	for line := range strings.SplitSeq(text, "\n") {
		longest = max(longest, len(line))
	}
	return longest
}

// isDiff reports whether text begins as a diff does.
func isDiff(text string) bool {
	start := strings.TrimLeft(text, "\n ")
	for _, mark := range []string{"diff --git ", "diff -", "@@ -", "*** Begin Patch\n", "Index: "} {
		if strings.HasPrefix(start, mark) {
			return true
		}
	}
	return strings.HasPrefix(start, "--- ") && strings.Contains(start, "\n+++ ")
}
