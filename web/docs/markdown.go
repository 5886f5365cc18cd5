package docs

import (
	"html"
	"net/url"
	"strconv"
	"strings"
	"unicode"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extensionast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/util"

	"palimpsest/web/paths"
	"palimpsest/web/render"
)

// newMarkdown returns the renderer of pages. The pages are our own, and raw HTML in them is left out.
func newMarkdown(l *library) goldmark.Markdown {
	return goldmark.New(
		goldmark.WithExtensions(extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignAttribute)), extension.Linkify),
		goldmark.WithParserOptions(parser.WithAutoHeadingID()),
		goldmark.WithRendererOptions(renderer.WithNodeRenderers(util.Prioritized(looks{l}, 1))),
	)
}

// withAnchors gives headings the anchors that links in the repository use.
func withAnchors() parser.ParseOption {
	return parser.WithContext(parser.NewContext(parser.WithIDs(&anchors{taken: map[string]int{}})))
}

// anchors generates the anchors of headings like GitHub.
type anchors struct{ taken map[string]int }

// Generate implements parser.IDs.
func (a *anchors) Generate(value []byte, _ ast.NodeKind) []byte {
	anchor := strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || unicode.IsLetter(r) || unicode.IsNumber(r):
			return unicode.ToLower(r)
		}
		return -1
	}, strings.TrimSpace(string(value)))
	count := a.taken[anchor]
	a.taken[anchor]++
	if count > 0 {
		anchor += "-" + strconv.Itoa(count)
	}
	return []byte(anchor)
}

// Put implements parser.IDs.
func (a *anchors) Put(value []byte) { a.taken[string(value)]++ }

func anchorOf(heading *ast.Heading) string {
	id, is := heading.AttributeString("id")
	anchor, isBytes := id.([]byte)
	if !is || !isBytes {
		return ""
	}
	return string(anchor)
}

// looks renders the elements that the dashboard shows in its own way.
type looks struct{ library *library }

// RegisterFuncs implements renderer.NodeRenderer.
func (l looks) RegisterFuncs(register renderer.NodeRendererFuncRegisterer) {
	register.Register(ast.KindHeading, l.heading)
	register.Register(ast.KindLink, l.link)
	register.Register(ast.KindFencedCodeBlock, l.code)
	register.Register(ast.KindCodeBlock, l.code)
	register.Register(ast.KindHTMLBlock, l.nothing)
	register.Register(ast.KindRawHTML, l.nothing)
	register.Register(extensionast.KindTable, l.table)
}

func (looks) nothing(util.BufWriter, []byte, ast.Node, bool) (ast.WalkStatus, error) {
	return ast.WalkSkipChildren, nil
}

// heading ends with a link to itself.
func (looks) heading(w util.BufWriter, source []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	heading, is := node.(*ast.Heading)
	if !is {
		return ast.WalkContinue, nil
	}
	name, anchor := "h"+strconv.Itoa(heading.Level), html.EscapeString(anchorOf(heading))
	if entering {
		_, _ = w.WriteString("<" + name + ` id="` + anchor + `">`)
		return ast.WalkContinue, nil
	}
	label := html.EscapeString("Link to " + words(heading, source))
	_, _ = w.WriteString(` <a class="anchor" href="#` + anchor + `" aria-label="` + label + `">#</a></` + name + ">\n")
	return ast.WalkContinue, nil
}

// link links to the product's page. A link to a file that only the repository has becomes text.
func (l looks) link(w util.BufWriter, _ []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	link, is := node.(*ast.Link)
	if !is {
		return ast.WalkContinue, nil
	}
	address := l.library.address(string(link.Destination))
	switch {
	case address == "":
	case !entering:
		_, _ = w.WriteString("</a>")
	case strings.HasPrefix(address, "http"):
		_, _ = w.WriteString(`<a rel="noopener noreferrer" href="` + html.EscapeString(address) + `">`)
	default:
		_, _ = w.WriteString(`<a href="` + html.EscapeString(address) + `">`)
	}
	return ast.WalkContinue, nil
}

// address returns a link's address in the product; "" if the product has no such page.
func (l *library) address(written string) string {
	target, err := url.Parse(written)
	if err != nil {
		return ""
	}
	fragment := ""
	if target.Fragment != "" {
		fragment = "#" + target.Fragment
	}
	switch {
	case target.Scheme == "http" || target.Scheme == "https":
		return target.String()
	case target.Path == "":
		return fragment
	case target.Path == "../api/manage/openapi.yaml":
		return paths.OpenAPI
	case l.byName[strings.TrimSuffix(target.Path, ".md")] != nil:
		return paths.DocsPage(strings.TrimSuffix(target.Path, ".md")) + fragment
	}
	return ""
}

// code is highlighted by the language that its fence names.
func (looks) code(w util.BufWriter, source []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	language := ""
	if fenced, is := node.(*ast.FencedCodeBlock); is {
		language = string(fenced.Language(source))
	}
	shown, _ := render.HTML(render.Code, language, string(node.Lines().Value(source)))
	_, _ = w.WriteString(shown + "\n")
	return ast.WalkSkipChildren, nil
}

// table scrolls on its own if it is wider than the page.
func (looks) table(w util.BufWriter, _ []byte, _ ast.Node, entering bool) (ast.WalkStatus, error) {
	if entering {
		_, _ = w.WriteString(`<div class="scroll" tabindex="0" role="region" aria-label="Table"><table>` + "\n")
	} else {
		_, _ = w.WriteString("</table></div>\n")
	}
	return ast.WalkContinue, nil
}

// Interface guards.
var (
	_ renderer.NodeRenderer = looks{}
	_ parser.IDs            = (*anchors)(nil)
)
