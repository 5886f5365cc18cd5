package render

import (
	"bytes"
	"strings"
	"sync"
	"time"

	"github.com/microcosm-cc/bluemonday"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// maxAtOnce limits the texts in progress, including abandoned ones, because the parser cannot be interrupted.
const maxAtOnce = 8

// markdown turns prose into HTML. It is built once and shared.
type markdown struct {
	parser   parser.Parser
	renderer renderer.Renderer
	policy   *bluemonday.Policy
	running  chan struct{}
}

var shared = sync.OnceValue(newMarkdown)

func newMarkdown() *markdown {
	made := goldmark.New(
		goldmark.WithExtensions(
			extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignAttribute)),
			extension.Strikethrough,
			extension.NewLinkify(extension.WithLinkifyAllowedProtocols([]string{"http", "https"})),
			extension.TaskList,
		),
		goldmark.WithRendererOptions(html.WithHardWraps(), renderer.WithNodeRenderers(util.Prioritized(hostile{}, 1))),
	)
	return &markdown{parser: made.Parser(), renderer: made.Renderer(), policy: newPolicy(), running: make(chan struct{}, maxAtOnce)}
}

// prose returns markdown as HTML, or false if it exceeds the limits.
func prose(source string) (string, bool) {
	if len(source) > maxProse || isNested(source) {
		return "", false
	}
	md := shared()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case md.running <- struct{}{}:
	case <-timer.C:
		return "", false
	}
	done := make(chan string, 1)
	go func() {
		defer func() { <-md.running }()
		defer close(done)
		defer func() { _ = recover() }() // a panic of the parser only costs the formatting
		if shown, ok := md.render([]byte(source)); ok {
			done <- shown
		}
	}()
	select {
	case shown, ok := <-done:
		return shown, ok
	case <-timer.C:
		return "", false
	}
}

func (m *markdown) render(source []byte) (string, bool) {
	document := m.parser.Parse(text.NewReader(source))
	if isDeep(document) {
		return "", false
	}
	var out bytes.Buffer
	if err := m.renderer.Render(&out, source, document); err != nil {
		return "", false
	}
	return m.policy.Sanitize(out.String()), true
}

// isDeep reports whether elements are nested too deep.
func isDeep(document ast.Node) bool {
	depth, deepest := 0, 0
	_ = ast.Walk(document, func(_ ast.Node, entering bool) (ast.WalkStatus, error) { // the walker returns no error
		if !entering {
			depth--
			return ast.WalkContinue, nil
		}
		depth++
		deepest = max(deepest, depth)
		if deepest > maxDepth {
			return ast.WalkStop, nil
		}
		return ast.WalkContinue, nil
	})
	return deepest > maxDepth
}

// isNested reports whether a line begins with too many nested quotes and lists, because the parser's work
// grows with their square.
func isNested(source string) bool {
	for line := range strings.SplitSeq(source, "\n") {
		marks, last := 0, byte(0)
		for i := 0; i < len(line) && strings.IndexByte(" \t>-+*0123456789.)", line[i]) >= 0; i++ {
			// A run of the same mark, such as a rule, counts once.
			if c := line[i]; c == '>' || strings.IndexByte("-+*.)", c) >= 0 && c != last {
				marks++
			}
			last = line[i]
		}
		if marks > maxDepth {
			return true
		}
	}
	return false
}
