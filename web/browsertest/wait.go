package browsertest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/chromedp/chromedp"
)

// between is the time between two looks at whether something has happened. To look at each frame would
// have the browser make frames all the time.
const between = 20 * time.Millisecond

// watched says what a page is about, before any script of the page runs. It is whole once
// it is loaded with its fonts, once htmx has bound its links and forms, and while nothing
// of it is being swapped; it is still while, besides, nothing that htmx asked for is on
// its way.
const watched = `window.pageIs = {};
	(() => {
		let isBound = false, swaps = 0, requests = 0;
		addEventListener('htmx:after:process', () => { isBound = true; });
		addEventListener('htmx:before:swap', () => { swaps++; });
		addEventListener('htmx:finally:swap', () => { swaps = Math.max(0, swaps - 1); });
		addEventListener('htmx:before:request', () => { requests++; });
		addEventListener('htmx:finally:request', () => { requests = Math.max(0, requests - 1); });
		window.pageIs.whole = () => document.readyState === 'complete' && document.fonts.status === 'loaded' && swaps === 0
			&& (isBound || document.querySelector('script[src*="/htmx"]') === null);
		window.pageIs.still = () => window.pageIs.whole() && requests === 0;
	})();`

// A tab's first page has no script that watches it.
const (
	whole = `(!window.pageIs || window.pageIs.whole())`
	still = `(!window.pageIs || window.pageIs.still())`
)

// What Chromium says of a page, and of an element, that has been replaced since.
var (
	left = []string{
		"Inspected target navigated or closed", "Cannot find context with specified id", "Execution context was destroyed", "Promise was collected",
	}
	replaced = []string{"Could not find node with given id", "Node is detached from document", "Node does not have a layout object"}
)

// At is true once the page of a path with its query is there.
func At(path string) string {
	return fmt.Sprintf(`location.pathname + location.search === %q`, path)
}

// Until waits for an expression to become true of a whole page: of this one, or of the one
// that takes its place. Where it cannot be computed it is not true yet.
func (p *Tab) Until(expression string) {
	p.t.Helper()
	tried := `(() => { try { return Boolean(` + whole + ` && (` + expression + `)); } catch { return false; } })()`
	p.again("waiting for "+expression, left, func(ctx context.Context) error {
		_, err := chromedp.Run(ctx, chromedp.Poll[bool](tried, chromedp.WithPollingInterval(between), chromedp.WithPollingTimeout(0))) // patience bounds it
		return err
	})
}

// again does something once more whenever Chromium says that what it was about has been
// replaced since. Any other error fails the test.
func (p *Tab) again(what string, gone []string, do func(context.Context) error) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	for {
		err := do(ctx)
		if err == nil {
			return
		}
		if !slices.ContainsFunc(gone, func(said string) bool { return strings.Contains(err.Error(), said) }) {
			p.fail(what, err)
		}
	}
}

// drawn waits for two frames: what was laid out last is drawn, and who watches it was told.
func (p *Tab) drawn() {
	p.t.Helper()
	Evaluate[any](p, `new Promise(drawn => requestAnimationFrame(() => requestAnimationFrame(() => drawn(null))))`)
}
