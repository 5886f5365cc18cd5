package render

import (
	"fmt"
	"html"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Kind is a text's kind.
type Kind int

// The kinds of text.
const (
	Plain  Kind = iota // unchanged
	Prose              // markdown, as people and models write it
	Code               // source; its name is a file or a language
	Result             // a tool's result; its name is the file's, if any
	JSON               // such as a tool's arguments
	Diff               // a unified diff
)

// Limits of rendering. A larger message is shown as escaped plain text.
const (
	maxProse = 64 << 10  // bytes
	maxCode  = 256 << 10 // bytes
	maxDepth = 40        // nesting of quotes, lists and emphasis, and of JSON
	patience = 2 * time.Second
)

// HTML returns a text of a kind as one element, and false if the text exceeds the limits of its kind and is
// therefore shown as plain text. name is the file or the language of Code and Result, "" if unknown.
func HTML(kind Kind, name, text string) (shown string, whole bool) {
	text = Visible(text)
	switch kind {
	case Prose:
		if shown, ok := prose(text); ok {
			return `<div class="text">` + Visible(shown) + `</div>`, true
		}
		return plain(text), false
	case Code:
		return block(name, text)
	case JSON:
		return block("json", pretty(text))
	case Diff:
		return block("diff", text)
	case Result:
		return result(name, text)
	case Plain:
	}
	return plain(text), true
}

// result returns a tool's result. It detects JSON and diffs from the text, other languages from the file
// name.
func result(name, text string) (shown string, whole bool) {
	switch {
	case isJSON(text):
		return block("json", pretty(text))
	case isDiff(text):
		return block("diff", text)
	default:
		return block(name, text)
	}
}

// block returns code highlighted by the name of a file or a language. The name may be unknown.
func block(name, text string) (shown string, whole bool) {
	lexer := lexerOf(name)
	if lexer == nil {
		return plain(text), true
	}
	marked, ok := highlight(lexer, text)
	if !ok {
		return plain(text), false
	}
	return `<pre class="chroma"><code>` + marked + `</code></pre>`, true
}

func plain(text string) string {
	return `<pre class="chroma"><code>` + html.EscapeString(text) + `</code></pre>`
}

// Visible spells out characters that hide, reorder or control text: control characters as their pictures
// (U+2400…), and marks of direction, of no width and of tags as ⟦U+202E⟧. Invalid UTF-8 becomes U+FFFD. Line
// ends become "\n". Tabs stay, and so do joiners between the parts of one emoji.
func Visible(text string) string {
	if !needsMarks(text) {
		return text
	}
	var out strings.Builder
	out.Grow(len(text) + len(text)/8)
	previous := rune(0)
	for i, r := range text {
		size := utf8.RuneLen(r)
		if r == utf8.RuneError && text[i] != "\uFFFD"[0] {
			size = 1
		}
		next, _ := utf8.DecodeRuneInString(text[i+size:])
		switch {
		case r == '\r' && next == '\n': // the line ends with it
		case r == '\n' || r == '\t':
			out.WriteRune(r)
		case r < ' ':
			out.WriteRune('\u2400' + r)
		case r == 0x7f:
			out.WriteRune('\u2421')
		case r == '\u200D' && isEmoji(previous) && isEmoji(next):
			out.WriteRune(r)
		case isHidden(r):
			fmt.Fprintf(&out, "⟦U+%04X⟧", r)
		default:
			out.WriteRune(r)
		}
		previous = r
	}
	return out.String()
}

func needsMarks(text string) bool {
	if !utf8.ValidString(text) {
		return true
	}
	for _, r := range text {
		if r < ' ' && r != '\n' && r != '\t' || r == 0x7f || isHidden(r) {
			return true
		}
	}
	return false
}

// isHidden reports whether a character is invisible or changes the position of others: format characters,
// among them those of direction, controls, and separators and fillers without ink. A variation selector after
// an emoji is part of it and stays.
func isHidden(r rune) bool {
	switch {
	case r < 0x7f:
		return false
	case unicode.In(r, unicode.Cf, unicode.Cc, unicode.Zl, unicode.Zp, unicode.Co, unicode.Cs):
		return true
	case r == '\u034F', r == '\u115F', r == '\u1160', r == '\u17B4', r == '\u17B5', r == '\u3164', r == '\uFFA0', r == '\u2800':
		return true
	default:
		return r >= 0xE0000 && r <= 0xE0FFF || r >= 0xFE00 && r <= 0xFE0D
	}
}

func isEmoji(r rune) bool {
	return unicode.Is(unicode.So, r) || r == '\uFE0F' || r >= 0x1F3FB && r <= 0x1F3FF
}
