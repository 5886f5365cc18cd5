package render

import (
	"html"
	"path"
	"sort"
	"strings"
	"time"

	"github.com/alecthomas/chroma/v2"
)

// maxLine limits the bytes of a highlighted line, because minified code is expensive and tells the reader
// little.
const maxLine = 16 << 10

// highlight returns code as HTML with a class for each token, or false if the code exceeds the limits.
func highlight(lexer chroma.Lexer, text string) (marked string, ok bool) {
	if len(text) > maxCode || longestLine(text) > maxLine {
		return "", false
	}
	defer func() {
		// A language's rules are a library's data, so an error in them only costs the colors.
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
	// A rule that drops or adds text would show a different text.
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

// classOf returns the class of a token type, or that of its family if the style has no rule for the type
// itself; "" means plain text.
func classOf(kind chroma.TokenType) string {
	for kind > 0 {
		if _, styled := look[kind]; styled {
			return chroma.StandardTypes[kind]
		}
		kind = kind.Parent()
	}
	return ""
}

// lexerOf returns the lexer of a language, by its own name or a file's; nil if unknown.
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

// lexerOfFile returns the lexer for a file name; nil if unknown. It is faster than
// [chroma.LexerRegistry.Match], which tries some 600 patterns, each with the endings of backup copies too.
// That takes a millisecond a name, and a page has dozens of names.
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

// isDiff reports whether text begins like a diff.
func isDiff(text string) bool {
	start := strings.TrimLeft(text, "\n ")
	for _, mark := range []string{"diff --git ", "diff -", "@@ -", "*** Begin Patch\n", "Index: "} {
		if strings.HasPrefix(start, mark) {
			return true
		}
	}
	return strings.HasPrefix(start, "--- ") && strings.Contains(start, "\n+++ ")
}
