package browsertest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// Go opens a path of the site and waits until the page and its resources have loaded.
func (p *Tab) Go(path string) {
	p.t.Helper()
	p.Until(still) // requests that are still open when the page is left would fail there
	p.Do(chromedp.Navigate(p.url + path))
	p.Until(still)
}

// Back goes back as the browser's button does, to a page loaded by htmx, and waits until it has loaded.
func (p *Tab) Back() {
	p.t.Helper()
	p.Run(`window.pageIs.isBack = false; addEventListener('htmx:finally:swap', () => { window.pageIs.isBack = true; }, {once: true}); history.back()`)
	p.Until(`window.pageIs.isBack`)
}

// Do runs steps one after the other, each on a whole page. A step that fails or takes longer than patience
// fails the test.
func (p *Tab) Do(steps ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	do := func(i int) error {
		ctx, cancel := context.WithTimeout(p.ctx, patience)
		defer cancel()
		return chromedp.Do(ctx, steps[i])
	}
	for i := range steps {
		p.Until(whole)
		if err := do(i); err != nil {
			p.fail(fmt.Sprintf("step %d", i+1), err)
		}
	}
}

// See waits until the first matching element is visible on a whole page. The content of closed details isn't.
func (p *Tab) See(selector string) {
	p.t.Helper()
	p.Until(fmt.Sprintf(`document.querySelector(%q)?.checkVisibility({visibilityProperty: true})`, selector))
}

// mostMisses bounds how often Click tries again.
const mostMisses = 5

// Click clicks the center of the first matching element, or of its first line. If the page has moved it
// meanwhile, Click tries again.
func (p *Tab) Click(selector string) {
	p.t.Helper()
	for range mostMisses {
		var at []float64
		for len(at) == 0 { // the page may replace it once it was seen
			p.See(selector)
			at = Evaluate[[]float64](p, fmt.Sprintf(`(found => {
				found?.scrollIntoViewIfNeeded();
				window.isMissed = true;
				found?.addEventListener('pointerdown', () => { window.isMissed = false; }, {capture: true, once: true});
				return [...found?.getClientRects() ?? []].filter(box => box.width > 0 && box.height > 0)
					.flatMap(box => [box.x + box.width / 2, box.y + box.height / 2]);
			})(document.querySelector(%q))`, selector))
		}
		p.Do(chromedp.MouseClickXY(at[0], at[1]))
		if !isNow(p, `window.isMissed === true`) {
			return
		}
	}
	p.fail("clicking "+selector, errors.New("something else is in its place"))
}

// Type types into the first matching field.
func (p *Tab) Type(selector, text string) {
	p.t.Helper()
	p.See(selector)
	p.act(fmt.Sprintf(`document.querySelector(%q)`, selector), `found.focus()`)
	p.Do(chromedp.KeyEvent(text))
}

// Press presses the button with a text on the page or in its dialog.
func (p *Tab) Press(text string) {
	p.t.Helper()
	p.act(fmt.Sprintf(`[...document.querySelectorAll("main button, dialog button")].find(button => button.textContent.trim() === %q)`, text), `found.click()`)
}

// Fill types into the named field on the page or in its dialog.
func (p *Tab) Fill(name, text string) {
	p.t.Helper()
	p.act(fmt.Sprintf(`document.querySelector('main [name="%[1]s"], dialog [name="%[1]s"]')`, name), `found.focus()`)
	p.Do(chromedp.KeyEvent(text))
}

// Set sets the value of the first matching field, as typing or moving the slider would.
func (p *Tab) Set(selector, value string) {
	p.t.Helper()
	p.act(fmt.Sprintf(`document.querySelector(%q)`, selector),
		fmt.Sprintf(`found.value = %q; found.dispatchEvent(new Event('input', {bubbles: true}))`, value))
}

// act waits until an element is on a whole page, and runs a script on it, with the element as found.
func (p *Tab) act(element, script string) {
	p.t.Helper()
	p.Until(`(` + element + ` ?? null) !== null`)
	p.Run(`(found => { ` + script + `; })(` + element + `)`)
}

// Download runs do, which must start a download, and returns the file's content.
func (p *Tab) Download(do func()) string {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	folder, told := p.t.TempDir(), true
	if _, err := chromedp.Call(ctx, browser.SetDownloadBehavior, browser.SetDownloadBehaviorParams{
		Behavior: browser.SetDownloadBehaviorBehaviorAllowAndName, BrowserContextID: chromedp.FromContext(ctx).BrowserContextID, DownloadPath: folder, EventsEnabled: &told,
	}); err != nil {
		p.fail("before a download", err)
	}
	events := chromedp.Events(ctx, browser.DownloadProgress)
	do()
	for event, err := range events {
		if err != nil || event.State == browser.DownloadProgressStateCanceled {
			p.fail("downloading", fmt.Errorf("%s: %w", event.State, err))
		}
		if event.State == browser.DownloadProgressStateCompleted {
			held, err := os.ReadFile(filepath.Join(folder, event.GUID)) //nolint:gosec // the test's own folder
			if err != nil {
				p.t.Fatal(err)
			}
			return string(held)
		}
	}
	p.fail("downloading", ctx.Err())
	return ""
}

// The widths of A4 paper between margins of 15 mm, in px.
const (
	Upright = 680
	Across  = 1009
)

// Print shows the page in its print layout between a sheet's margins.
func (p *Tab) Print(width int64) {
	p.t.Helper()
	p.resize(width)
	if _, err := chromedp.Call(p.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: "print"}); err != nil {
		p.t.Fatal(err)
	}
	p.drawn()
}

// Text returns the text of the first matching element; "" if none matches.
func (p *Tab) Text(selector string) string {
	p.t.Helper()
	return Evaluate[string](p, fmt.Sprintf(`(document.querySelector(%q) || {textContent: ''}).textContent.trim()`, selector))
}

// OnEveryPage runs a script on each page from now on, before any of the page's own.
func (p *Tab) OnEveryPage(script string) {
	p.t.Helper()
	if _, err := chromedp.Call(p.ctx, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: script}); err != nil {
		p.fail("on every page", err)
	}
}

// Run runs a script on the page.
func (p *Tab) Run(script string) {
	p.t.Helper()
	Evaluate[any](p, script+"; null")
}

// Evaluate returns the value of an expression, or of its promise.
func Evaluate[T any](p *Tab, expression string) T {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		p.fail(fmt.Sprintf("%.80s", expression), err)
	}
	return value
}

// fail ends the test and prints the page's address and text.
func (p *Tab) fail(what string, err error) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	shown, _ := chromedp.Run(ctx, chromedp.Evaluate[string](`location.href + "\n" + document.body.innerText`))
	p.t.Fatalf("%s: %v on %.2000s", what, err, shown)
}
