package render

import (
	"context"
	"html"
	"io"
	"time"

	"github.com/a-h/templ"
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

// Text returns the component that shows a text of a kind. A name is the file or the
// language of Code and Result, and empty where that is not known. The component holds
// one element and never fails on what the text holds.
func Text(kind Kind, name, text string) templ.Component {
	return templ.ComponentFunc(func(_ context.Context, w io.Writer) error {
		_, err := io.WriteString(w, HTML(kind, name, text))
		return err
	})
}

// HTML returns what Text writes.
func HTML(kind Kind, name, text string) string {
	text = Visible(text)
	switch kind {
	case Prose:
		if shown, ok := prose(text); ok {
			return `<div class="text">` + Visible(shown) + `</div>`
		}
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
	return plain(text)
}

// result returns what a tool answered: JSON and diffs by their look, else by the name
// of a file.
func result(name, text string) string {
	switch {
	case isJSON(text):
		return block("json", pretty(text))
	case isDiff(text):
		return block("diff", text)
	default:
		return block(name, text)
	}
}

// block returns code that is highlighted by the name of a file or a language.
func block(name, text string) string {
	marked, ok := highlight(name, text)
	if !ok {
		return plain(text)
	}
	return `<pre class="chroma"><code>` + marked + `</code></pre>`
}

func plain(text string) string {
	return `<pre class="chroma"><code>` + html.EscapeString(text) + `</code></pre>`
}
