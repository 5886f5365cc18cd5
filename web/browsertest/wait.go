package browsertest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/chromedp/chromedp"
)

// between is the polling interval. Polling on each frame would make the browser render frames all the time.
const between = 20 * time.Millisecond

// watched tracks a page's state before any script of the page runs. The page is whole once it has loaded with
// its fonts, htmx has bound its links and forms, and no swap is under way. It is still if, besides, htmx has
// no open request.
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

// A tab's first page has no tracking script.
const (
	whole = `(!window.pageIs || window.pageIs.whole())`
	still = `(!window.pageIs || window.pageIs.still())`
)

// left are Chromium's errors for a page that has been replaced since.
var left = []string{
	"Inspected target navigated or closed", "Cannot find context with specified id", "Execution context was destroyed", "Promise was collected",
}

// At is true once the page at a path with its query has loaded.
func At(path string) string {
	return fmt.Sprintf(`location.pathname + location.search === %q`, path)
}

// Until waits until an expression is true on a whole page, either this one or its successor. An expression
// that fails counts as not true yet.
func (p *Tab) Until(expression string) {
	p.t.Helper()
	tried := `(() => { try { return Boolean(` + whole + ` && (` + expression + `)); } catch { return false; } })()`
	wanted := chromedp.Poll[bool](tried, chromedp.WithPollingInterval(between), chromedp.WithPollingTimeout(0)) // patience limits it
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	for {
		_, err := chromedp.Run(ctx, wanted)
		if err == nil {
			return
		}
		if !isLeft(err) {
			p.fail("waiting for "+expression, err)
		}
	}
}

// isNow reports whether an expression is true on this page. It is false if the page is being replaced.
func isNow(p *Tab, expression string) bool {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	is, err := chromedp.Run(ctx, chromedp.Evaluate[bool](expression))
	if err != nil && !isLeft(err) {
		p.fail(expression, err)
	}
	return is && err == nil
}

// isLeft reports whether an error says that a page has been replaced.
func isLeft(err error) bool {
	return slices.ContainsFunc(left, func(said string) bool { return strings.Contains(err.Error(), said) })
}

// drawn waits for two frames, so that the last layout is drawn and its observers have run.
func (p *Tab) drawn() {
	p.t.Helper()
	Evaluate[any](p, `new Promise(drawn => requestAnimationFrame(() => requestAnimationFrame(() => drawn(null))))`)
}
