package web_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/PuerkitoBio/goquery"
	"golang.org/x/net/html"

	"palimpsest/web/webtest"
)

// inside are words of the code. Pages say compaction, thread and compacted prompt.
var inside = regexp.MustCompile(`(?i)\b(epoch|lane|blob|projection)s?\b`)

// Code, header names and values, and names in the API are shown as they are, and so is what was
// said in a session.
const verbatim = `pre, code, .mono, script, style, template, [data-testid="turns"], [data-testid="pane"]`

// checkWords: no page has a word of those who made it.
func checkWords(t *testing.T, pages map[string]webtest.Page) {
	t.Helper()
	for name, page := range pages {
		if strings.HasPrefix(page.Path, "/docs") {
			continue
		}
		for _, text := range readText(page) {
			if word := inside.FindString(text); word != "" {
				t.Errorf("%s (%s) says %q: %.160s", name, page.Path, word, strings.TrimSpace(text))
			}
		}
	}
}

// readText returns the texts of a page that a person reads, sees on hover or hears.
func readText(page webtest.Page) []string {
	body := page.Find("html").Clone()
	texts := body.Find(`[data-testid="pane"] dt, [data-testid="pane"] button`).Map(func(_ int, s *goquery.Selection) string { return s.Text() })
	body.Find(verbatim).Remove()
	for _, root := range body.Nodes {
		for node := range root.Descendants() {
			if node.Type == html.TextNode {
				texts = append(texts, node.Data)
			}
			for _, attribute := range node.Attr {
				switch attribute.Key {
				case "title", "aria-label", "placeholder", "alt":
					texts = append(texts, attribute.Val)
				}
			}
		}
	}
	return texts
}
