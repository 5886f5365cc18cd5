package web_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"palimpsest/web/webtest"
)

const (
	tabTime = 4 * time.Minute // for all that one tab does, on a busy machine
	endMark = "end of the page"

	// faults notes what the policy refused before any script of the page runs.
	faults = `window.refused = []; addEventListener('securitypolicyviolation', e => window.refused.push(e.violatedDirective + ' ' + e.blockedURI));`
)

// browser is a Chromium without a window.
type browser struct {
	t   *testing.T
	ctx context.Context
	axe string
}

// openBrowser starts a Chromium that ends with the test.
func openBrowser(t *testing.T) *browser {
	t.Helper()
	axe, err := os.ReadFile(filepath.Join("testdata", "axe-core-4.14.1", "axe.min.js"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := chromedp.NewContext(t.Context(), chromedp.WithAllocatorOptions(
		chromedp.NoSandbox, chromedp.Headless, chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true),
	))
	t.Cleanup(cancel)
	if err := chromedp.Do(ctx, chromedp.Navigate("about:blank")); err != nil {
		t.Fatalf("start chromium: %v", err)
	}
	return &browser{t: t, ctx: ctx, axe: string(axe)}
}

// tab is a page of the browser as one person sees it.
type tab struct {
	t        *testing.T
	ctx      context.Context
	axe      string
	messages func() (chromedp.ConsoleMessage, error, bool)
}

// open opens a tab for a person in a theme on a screen of a width.
func (b *browser) open(t *testing.T, person *webtest.Person, theme string, width int64) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(b.ctx, chromedp.WithNewBrowserContext())
	t.Cleanup(cancel)
	ctx, stop := context.WithTimeout(ctx, tabTime)
	t.Cleanup(stop)
	if err := chromedp.Do(ctx, chromedp.Navigate("about:blank")); err != nil {
		t.Fatal(err)
	}
	metrics := emulation.SetDeviceMetricsOverrideParams{Width: width, Height: 900, DeviceScaleFactor: 1, Mobile: width < 600}
	if _, err := chromedp.Call(ctx, emulation.SetDeviceMetricsOverride, metrics); err != nil {
		t.Fatal(err)
	}
	if _, err := chromedp.Call(ctx, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: faults}); err != nil {
		t.Fatal(err)
	}
	address, err := url.Parse(person.URL)
	if err != nil {
		t.Fatal(err)
	}
	cookies := map[string]string{"theme": theme}
	for _, cookie := range person.Cookies() {
		cookies[cookie.Name] = cookie.Value
	}
	for name, value := range cookies {
		if _, err := chromedp.Call(ctx, network.SetCookie, network.SetCookieParams{Name: name, Value: value, Domain: address.Hostname(), Path: "/"}); err != nil {
			t.Fatal(err)
		}
	}
	next, end := iter.Pull2(chromedp.Console(ctx))
	t.Cleanup(end)
	return &tab{t: t, ctx: ctx, axe: b.axe, messages: next}
}

// do runs steps and fails the test where one fails.
func (p *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	if err := chromedp.Do(p.ctx, steps...); err != nil {
		p.t.Fatal(err)
	}
}

// until waits for an expression to become true.
func (p *tab) until(expression string) {
	p.t.Helper()
	if _, err := chromedp.Run(p.ctx, chromedp.Poll[bool](expression)); err != nil {
		p.t.Fatalf("waiting for %s: %v", expression, err)
	}
}

// text returns the text of the first element that matches.
func (p *tab) text(selector string) string {
	p.t.Helper()
	text, err := chromedp.Run(p.ctx, chromedp.Evaluate[string](fmt.Sprintf("(document.querySelector(%q) || {textContent: ''}).textContent.trim()", selector)))
	if err != nil {
		p.t.Fatal(err)
	}
	return text
}

// check fails the test for what axe finds, what the policy refused, what the
// console says and for a page that scrolls sideways.
func (p *tab) check(name string) {
	p.t.Helper()
	wide, err := chromedp.Run(p.ctx, chromedp.Evaluate[bool](`document.documentElement.scrollWidth > innerWidth`))
	if err != nil {
		p.t.Fatal(err)
	}
	if wide {
		p.t.Errorf("%s scrolls sideways", name)
	}
	if err := chromedp.Do(p.ctx, func(ctx context.Context, target *chromedp.Target) (chromedp.Void, error) {
		_, err := chromedp.Evaluate[*json.RawMessage](p.axe+"; null")(ctx, target)
		return chromedp.Void{}, err
	}); err != nil {
		p.t.Fatalf("load axe: %v", err)
	}
	found, err := chromedp.Run(p.ctx, chromedp.Evaluate[string](`axe.run(document, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa']})
		.then(r => r.violations.map(v => v.id + ': ' + v.help + '\n' + v.nodes.map(n => '    ' + n.target.join(' ') + ' | ' + n.failureSummary.replace(/\s+/g, ' ')).join('\n')).join('\n'))`, chromedp.EvalAwaitPromise))
	if err != nil {
		p.t.Fatalf("run axe: %v", err)
	}
	if found != "" {
		p.t.Errorf("%s: axe finds\n%s", name, found)
	}
	refused, err := chromedp.Run(p.ctx, chromedp.Evaluate[[]string](`window.refused`))
	if err != nil {
		p.t.Fatal(err)
	}
	if len(refused) > 0 {
		p.t.Errorf("%s: the policy refused %v", name, refused)
	}
}

// quiet fails the test for errors and warnings on the console so far.
func (p *tab) quiet(name string) {
	p.t.Helper()
	p.do(func(ctx context.Context, target *chromedp.Target) (chromedp.Void, error) {
		_, err := chromedp.Evaluate[*json.RawMessage](`console.log('`+endMark+`'), null`)(ctx, target)
		return chromedp.Void{}, err
	})
	for {
		message, err, more := p.messages()
		if err != nil || !more {
			p.t.Fatalf("console ended: %v", err)
		}
		if message.Text == endMark {
			return
		}
		if message.Type != chromedp.ConsoleLog && message.Type != chromedp.ConsoleDebug && message.Type != chromedp.ConsoleInfo {
			p.t.Errorf("%s: console: %s (%s)", name, message, message.URL)
		}
	}
}

// picture writes what the tab shows into the folder that SCREENSHOTS names, if it
// names one.
func (p *tab) picture(name string) {
	p.t.Helper()
	folder := os.Getenv("SCREENSHOTS")
	if folder == "" {
		return
	}
	image, err := chromedp.Run(p.ctx, chromedp.FullScreenshot(100))
	if err != nil {
		p.t.Fatal(err)
	}
	file := filepath.Join(folder, strings.ReplaceAll(name, " ", "-")+".png")
	if err := os.WriteFile(file, image, 0o600); err != nil {
		p.t.Fatal(err)
	}
}
