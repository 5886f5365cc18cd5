// Package docs shows the documentation of this version of the program. It is public, like the README.
package docs

import (
	"errors"
	"fmt"
	"html"
	"strings"
	"sync"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/text"

	"palimpsest"
	"palimpsest/web/paths"
)

// group is some pages about one topic.
type group struct {
	Title string
	Pages []*page
}

// page is a page of the documentation.
type page struct {
	Name     string // of its file, without ".md"
	Title    string
	HTML     string // below the title
	About    string // its first paragraph
	Sections []section
}

// Path returns a page's address.
func (p *page) Path() string { return paths.DocsPage(p.Name) }

// section is the text below a heading.
type section struct {
	Title  string
	Anchor string // "" before the first heading
	Level  int
	Text   string // without marks
}

// library holds all pages.
type library struct {
	groups []group
	byName map[string]*page
}

// contents lists the pages for people who use or run the program. Benchmark tables and the list of decisions
// stay in the repository.
func contents() []group {
	return []group{
		{"Get started", named("connect", "clients", "terminal", "api-keys", "providers", "models")},
		{"Use it", named("compaction", "kept", "settings", "savings", "memory", "requests", "answer-cache")},
		{"Your workspace", named("sign-on", "spend", "alerts", "data", "billing")},
		{"Run it", named("operations", "monitoring", "runbook", "security", "performance", "architecture", "wire-formats")},
	}
}

func named(names ...string) []*page {
	pages := make([]*page, len(names))
	for i, name := range names {
		pages[i] = &page{Name: name}
	}
	return pages
}

// everything reads the pages once, because they are part of the program.
var everything = sync.OnceValue(load)

// load reads all pages. It panics if a page cannot be read, because that is a mistake in the program.
func load() *library {
	l := &library{groups: contents(), byName: map[string]*page{}}
	for _, group := range l.groups {
		for _, page := range group.Pages {
			l.byName[page.Name] = page
		}
	}
	for _, page := range l.byName {
		source, err := palimpsest.Docs.ReadFile("docs/" + page.Name + ".md")
		if err == nil {
			err = l.read(page, source)
		}
		if err != nil {
			panic(fmt.Sprintf("docs: %s: %v", page.Name, err))
		}
	}
	return l
}

var errNoTitle = errors.New("does not begin with a title")

// read fills a page from its markdown, which begins with its title.
func (l *library) read(page *page, source []byte) error {
	md := newMarkdown(l)
	document := md.Parser().Parse(text.NewReader(source), withAnchors())
	title, is := document.FirstChild().(*ast.Heading)
	if !is || title.Level != 1 {
		return errNoTitle
	}
	page.Title = words(title, source)
	document.RemoveChild(document, title)
	page.Sections = sections(document, source, page.Title)
	for node := document.FirstChild(); node != nil && page.About == ""; node = node.NextSibling() {
		if node.Kind() == ast.KindParagraph {
			page.About = words(node, source)
		}
	}
	var out strings.Builder
	if err := md.Renderer().Render(&out, source, document); err != nil {
		return err
	}
	page.HTML = out.String()
	return nil
}

// sections splits a page at its headings.
func sections(document ast.Node, source []byte, title string) []section {
	all := []section{{Title: title, Level: 1}}
	for node := document.FirstChild(); node != nil; node = node.NextSibling() {
		if heading, is := node.(*ast.Heading); is {
			all = append(all, section{Title: words(heading, source), Anchor: anchorOf(heading), Level: heading.Level})
			continue
		}
		last := &all[len(all)-1]
		last.Text = strings.TrimSpace(last.Text + " " + words(node, source))
	}
	return all
}

// words returns a node's text without marks, on one line.
func words(node ast.Node, source []byte) string {
	var out strings.Builder
	_ = ast.Walk(node, func(child ast.Node, entering bool) (ast.WalkStatus, error) { // the walker returns no error
		if !entering {
			if child.Type() == ast.TypeBlock {
				out.WriteByte(' ')
			}
			return ast.WalkContinue, nil
		}
		switch child := child.(type) {
		case *ast.Text:
			out.Write(child.Segment.Value(source))
			if child.SoftLineBreak() {
				out.WriteByte(' ')
			}
		case *ast.String:
			out.Write(child.Value)
		case *ast.AutoLink:
			out.Write(child.Label(source))
		case *ast.FencedCodeBlock, *ast.CodeBlock:
			out.Write(child.Lines().Value(source))
		}
		return ast.WalkContinue, nil
	})
	return strings.Join(strings.Fields(html.UnescapeString(out.String())), " ")
}
