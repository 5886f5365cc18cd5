package render

import (
	"html"
	"time"
)

// Kind says what a text is.
type Kind int

// The kinds of text.
const (
	Plain  Kind = iota // as it stands
	Prose              // markdown, such as people and models write
	Code               // source; its name is a file or a language
	Result             // what a tool answered; its name is the file it is about, if there is one
	JSON               // such as a tool is called with
	Diff               // a unified diff
)

// Bounds of what is more than plain text. A message above them is shown, escaped.
const (
	maxProse = 64 << 10  // bytes
	maxCode  = 256 << 10 // bytes
	maxDepth = 40        // of quotes, lists and emphasis within each other, and of JSON
	patience = 2 * time.Second
)

// HTML returns the one element that shows a text of a kind, and false where the text is
// beyond the bounds of its kind and therefore shown as it stands. A name is the file or
// the language of Code and Result, and empty where that is not known.
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

// result returns what a tool answered: JSON and diffs by their look, else by the name
// of a file.
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

// block returns code that is highlighted by the name of a file or a language, which may
// be one that nobody knows.
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
