package render

import (
	"html"
	"net/url"
	"strings"

	"github.com/yuin/goldmark/ast"
	extension "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/util"
	"golang.org/x/net/idna"
)

// Our classes in rendered text.
const (
	classHost    = "host"    // a link's target
	classPicture = "picture" // words instead of a picture
	classScroll  = "scroll"  // may be wider than the page
)

// linkRel keeps our address from the page behind every link.
const linkRel = "noopener noreferrer nofollow"

// hostile renders the elements that must not become what markdown would make of them.
type hostile struct{}

// RegisterFuncs implements renderer.NodeRenderer.
func (h hostile) RegisterFuncs(register renderer.NodeRendererFuncRegisterer) {
	register.Register(ast.KindRawHTML, h.rawHTML)
	register.Register(ast.KindHTMLBlock, h.htmlBlock)
	register.Register(ast.KindImage, h.image)
	register.Register(ast.KindLink, h.link)
	register.Register(ast.KindAutoLink, h.autoLink)
	register.Register(ast.KindHeading, h.heading)
	register.Register(ast.KindFencedCodeBlock, h.code)
	register.Register(ast.KindCodeBlock, h.code)
	register.Register(extension.KindTable, h.table)
	register.Register(extension.KindTaskCheckBox, h.task)
}

// rawHTML shows a tag as text.
func (hostile) rawHTML(w util.BufWriter, source []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	if raw, ok := node.(*ast.RawHTML); ok && entering {
		for i := range raw.Segments.Len() {
			segment := raw.Segments.At(i)
			escape(w, string(segment.Value(source)))
		}
	}
	return ast.WalkSkipChildren, nil
}

// htmlBlock shows lines of HTML as text.
func (hostile) htmlBlock(w util.BufWriter, source []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	written, ok := node.(*ast.HTMLBlock)
	if !ok || !entering {
		return ast.WalkContinue, nil
	}
	_, _ = w.WriteString(`<pre class="chroma"><code>`)
	escape(w, linesOf(written, source))
	if written.HasClosure() {
		escape(w, string(written.ClosureLine.Value(source)))
	}
	_, _ = w.WriteString("</code></pre>\n")
	return ast.WalkSkipChildren, nil
}

// image shows a picture's description, because loading the picture would tell its host who reads the page.
func (hostile) image(w util.BufWriter, source []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	if image, ok := node.(*ast.Image); ok && entering {
		_, _ = w.WriteString(`<span class="` + classPicture + `">`)
		escape(w, "image: "+strings.Join(nonEmpty(textOf(image, source), string(image.Destination)), ", "))
		_, _ = w.WriteString(`</span>`)
	}
	return ast.WalkSkipChildren, nil
}

// link shows a link with its host. A link that is not to a public web page or a mail address becomes text
// with its address.
func (hostile) link(w util.BufWriter, _ []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	link, ok := node.(*ast.Link)
	if !ok {
		return ast.WalkContinue, nil
	}
	address, host := target(string(link.Destination))
	switch {
	case entering && host != "":
		open(w, address)
	case !entering && host != "":
		closeLink(w, host)
	case !entering:
		escape(w, " ("+string(link.Destination)+")")
	}
	return ast.WalkContinue, nil
}

func (hostile) autoLink(w util.BufWriter, source []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	link, ok := node.(*ast.AutoLink)
	if !ok || !entering {
		return ast.WalkContinue, nil
	}
	written := string(link.URL(source))
	if link.AutoLinkType == ast.AutoLinkEmail && !strings.HasPrefix(strings.ToLower(written), "mailto:") {
		written = "mailto:" + written
	}
	address, host := target(written)
	if host == "" {
		escape(w, string(link.Label(source)))
		return ast.WalkContinue, nil
	}
	open(w, address)
	escape(w, string(link.Label(source)))
	closeLink(w, host)
	return ast.WalkContinue, nil
}

func open(w util.BufWriter, address string) {
	_, _ = w.WriteString(`<a rel="` + linkRel + `" href="`)
	escape(w, address)
	_, _ = w.WriteString(`">`)
}

func closeLink(w util.BufWriter, host string) {
	_, _ = w.WriteString(`</a><span class="` + classHost + `">`)
	escape(w, " ("+host+")")
	_, _ = w.WriteString(`</span>`)
}

// heading demotes the text's headings below those of the page.
func (hostile) heading(w util.BufWriter, _ []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	heading, ok := node.(*ast.Heading)
	if !ok {
		return ast.WalkContinue, nil
	}
	name := [...]string{"h4", "h5", "h6"}[min(max(heading.Level, 1), 3)-1]
	if entering {
		_, _ = w.WriteString("<" + name + ">")
	} else {
		_, _ = w.WriteString("</" + name + ">\n")
	}
	return ast.WalkContinue, nil
}

// code highlights a block in the language that its fence names.
func (hostile) code(w util.BufWriter, source []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	language := ""
	if fenced, ok := node.(*ast.FencedCodeBlock); ok {
		language = string(fenced.Language(source))
	}
	shown, _ := block(language, linesOf(node, source))
	_, _ = w.WriteString(shown + "\n")
	return ast.WalkSkipChildren, nil
}

// table scrolls on its own if it is wider than the page.
func (hostile) table(w util.BufWriter, _ []byte, _ ast.Node, entering bool) (ast.WalkStatus, error) {
	if entering {
		_, _ = w.WriteString(`<div class="` + classScroll + `" tabindex="0" role="region" aria-label="Table"><table>` + "\n")
	} else {
		_, _ = w.WriteString("</table></div>\n")
	}
	return ast.WalkContinue, nil
}

func (hostile) task(w util.BufWriter, _ []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	if task, ok := node.(*extension.TaskCheckBox); ok && entering {
		escape(w, map[bool]string{true: "☑ ", false: "☐ "}[task.IsChecked])
	}
	return ast.WalkContinue, nil
}

// target returns the normalized address that a link may have, and its host; "" as the host if the address is
// not allowed.
func target(written string) (address, host string) {
	parsed, err := url.Parse(strings.TrimSpace(html.UnescapeString(written)))
	if err != nil {
		return "", ""
	}
	switch parsed.Scheme {
	case "http", "https":
		name, err := idna.Lookup.ToASCII(parsed.Hostname())
		if err != nil || name == "" {
			return "", ""
		}
		return parsed.String(), name
	case "mailto":
		return parsed.String(), parsed.Opaque
	default:
		return "", ""
	}
}

func escape(w util.BufWriter, text string) { _, _ = w.WriteString(html.EscapeString(text)) }

func linesOf(node ast.Node, source []byte) string {
	var lines strings.Builder
	for i := range node.Lines().Len() {
		line := node.Lines().At(i)
		lines.Write(line.Value(source))
	}
	return lines.String()
}

// textOf returns the text below a node.
func textOf(node ast.Node, source []byte) string {
	var words strings.Builder
	_ = ast.Walk(node, func(child ast.Node, entering bool) (ast.WalkStatus, error) { // the walker returns no error
		switch child := child.(type) {
		case *ast.Text:
			if entering {
				words.Write(child.Segment.Value(source))
			}
		case *ast.String:
			if entering {
				words.Write(child.Value)
			}
		}
		return ast.WalkContinue, nil
	})
	return words.String()
}

func nonEmpty(texts ...string) []string {
	var kept []string
	for _, text := range texts {
		if text != "" {
			kept = append(kept, text)
		}
	}
	return kept
}
