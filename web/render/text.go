package render

import (
	"html"
	"time"
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
