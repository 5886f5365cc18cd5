// Package browsertest drives a real Chromium for tests. It opens pages, acts as a person would, and checks
// each page for accessibility violations (axe), violations of the content security policy, console errors and
// horizontal scrolling. It needs the program chromium.
package browsertest

import (
	"cmp"
	"context"
	_ "embed"
	"iter"
	"net/http"
	"net/url"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// patience limits one step of a tab, on a busy machine.
const patience = 2 * time.Minute

// The screen widths that pages support, in px.
const (
	Desktop = 1440
	Phone   = 390
)

// height of a screen, in px.
const height = 900

// noted records policy violations before any script of the page runs, and layout shifts without input.
const noted = `window.refused = []; addEventListener('securitypolicyviolation', e => window.refused.push(e.violatedDirective + ' ' + e.blockedURI));
	window.moved = {by: 0, what: []};
	const note = entries => entries.filter(e => !e.hadRecentInput).forEach(e => {
		window.moved.by += e.value;
		window.moved.what.push(...e.sources.map(s => s.node && s.node.nodeType === 1 ? s.node.nodeName.toLowerCase() + (s.node.id ? '#' + s.node.id : '') + [...s.node.classList].map(c => '.' + c).join('') : 'a text'));
	});
	const shifts = new PerformanceObserver(list => note(list.getEntries()));
	shifts.observe({type: 'layout-shift', buffered: true});
	window.settled = () => { note(shifts.takeRecords()); return window.moved; };`

//go:embed testdata/axe-core-4.14.1/axe.min.js
var axe string

// Browser is a Chromium without a window.
type Browser struct {
	ctx context.Context //nolint:containedctx // it is the browser's life
}

// shared is the browser of this test program.
var shared = new(common)

// common is a browser that starts at its first use.
type common struct {
	mu      sync.Mutex
	browser *Browser
	stop    context.CancelFunc
}

// Start returns a Chromium that all tests of a program share, because a start costs as much CPU as several
// pages. Stop ends it.
func Start(t testing.TB) *Browser {
	t.Helper()
	browser, err := shared.get()
	if err != nil {
		t.Fatalf("start chromium (install the package chromium): %v", err)
	}
	return browser
}

// Stop ends the browser of this test program, if any: dbtest.Main(m, browsertest.Stop).
func Stop() { shared.end() }

// get returns the browser, or a new one if that has ended on its own.
func (c *common) get() (*Browser, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.browser != nil && c.browser.ctx.Err() == nil {
		return c.browser, nil
	}
	c.close() // its remains
	browser, stop, err := start()
	if err != nil {
		return nil, err
	}
	c.browser, c.stop = browser, stop
	return browser, nil
}

// end ends the browser.
func (c *common) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.close()
}

// close is end for callers that hold the lock.
func (c *common) close() {
	if c.browser != nil {
		c.stop()
		c.browser = nil
	}
}

// shell is Chromium without its window code, which would double the CPU time.
const shell = "chromium-headless-shell"

// start starts a Chromium, preferably the shell. It disables transitions, so that checks see the final
// colors.
func start() (*Browser, context.CancelFunc, error) {
	options := []chromedp.ExecAllocatorOption{
		chromedp.NoSandbox, chromedp.Headless, chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true),
		chromedp.Flag("force-prefers-reduced-motion", true),
	}
	if path, err := exec.LookPath(shell); err == nil {
		options = append(options, chromedp.ExecPath(path))
	}
	ctx, stop := chromedp.NewContext(context.Background(), chromedp.WithAllocatorOptions(options...))
	if err := chromedp.Do(ctx, chromedp.Navigate("about:blank")); err != nil {
		stop()
		return nil, nil, err
	}
	return &Browser{ctx: ctx}, stop, nil
}

// View is one person's view of a site.
type View struct {
	URL     string         // of the site, without a path
	Theme   string         // "light" or "dark"; "" means the system's
	Width   int64          // of the screen, in px; 0 means Desktop
	Cookies []*http.Cookie // that the person already has
}

// Tab is one person's browser tab.
type Tab struct {
	t        testing.TB
	ctx      context.Context //nolint:containedctx // it is the tab's life
	url      string
	width    int64 // of the screen at opening
	messages func() (chromedp.ConsoleMessage, error, bool)
	expected string // of the browser's notes; "" if absent
}

// Open opens a tab that shares no state with others. It ends with the test.
func (b *Browser) Open(t testing.TB, view View) *Tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(b.ctx, chromedp.WithNewBrowserContext())
	t.Cleanup(cancel)
	if err := chromedp.Do(ctx, chromedp.Navigate("about:blank")); err != nil {
		t.Fatalf("open a tab: %v", err)
	}
	tab := &Tab{t: t, ctx: ctx, url: view.URL, width: cmp.Or(view.Width, Desktop)}
	tab.resize(tab.width)
	// Every tab has the focus, like a person's window, despite the tabs of other tests.
	if _, err := chromedp.Call(ctx, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := chromedp.Call(ctx, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: noted + watched}); err != nil {
		t.Fatal(err)
	}
	cookies := view.Cookies
	if view.Theme != "" {
		//nolint:gosec // the browser gets name and value of it
		cookies = append([]*http.Cookie{{Name: "theme", Value: view.Theme}}, cookies...)
	}
	address, err := url.Parse(view.URL)
	if err != nil {
		t.Fatal(err)
	}
	for _, cookie := range cookies {
		kept := network.SetCookieParams{Name: cookie.Name, Value: cookie.Value, Domain: address.Hostname(), Path: "/"}
		if _, err := chromedp.Call(ctx, network.SetCookie, kept); err != nil {
			t.Fatal(err)
		}
	}
	next, end := iter.Pull2(chromedp.Console(ctx))
	t.Cleanup(end)
	tab.messages = next
	return tab
}

// resize sets the width of the tab's screen.
func (p *Tab) resize(width int64) {
	p.t.Helper()
	metrics := emulation.SetDeviceMetricsOverrideParams{Width: width, Height: height, DeviceScaleFactor: 1, Mobile: width < 600}
	if _, err := chromedp.Call(p.ctx, emulation.SetDeviceMetricsOverride, metrics); err != nil {
		p.t.Fatal(err)
	}
}
