package browsertest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/chromedp/chromedp"
)

// endMark tells the messages of a page so far from those to come.
const endMark = "end of the page"

// refusedForm is what the browser notes of a form that came back with what to
// mend. That is not a fault of the page.
const refusedForm = "the server responded with a status of 422"

// violations is what axe finds against WCAG 2.2 AA.
const violations = `axe.run(document, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa']})
	.then(found => found.violations.map(v => v.id + ': ' + v.help + '\n' + v.nodes.map(n => '    ' + n.target.join(' ') + ' | ' + n.failureSummary.replace(/\s+/g, ' ')).join('\n')))`

// Expect has the browser's note that a page was answered with a status be no fault of the
// pages that follow.
func (p *Tab) Expect(status int) {
	p.expected = fmt.Sprintf("the server responded with a status of %d", status)
}

// Check fails the test for every fault of the page, and keeps a picture of it.
func (p *Tab) Check(name string) {
	p.t.Helper()
	p.Picture(name)
	for _, fault := range p.Faults() {
		p.t.Errorf("%s: %s", name, fault)
	}
}

// CheckLooks checks the page in both themes on a phone and on a desktop.
func (p *Tab) CheckLooks(name string) {
	p.t.Helper()
	before := Evaluate[string](p, `document.documentElement.dataset.theme || ''`)
	for _, theme := range []string{"light", "dark"} {
		for _, width := range []int64{Phone, Desktop} {
			p.resize(width)
			p.Run(`document.documentElement.dataset.theme = "` + theme + `"`)
			p.drawn()
			p.Check(fmt.Sprintf("%s %s %d", name, theme, width))
		}
	}
	p.Run(`document.documentElement.dataset.theme = "` + before + `"`)
}

// What a page may weigh and move by as it loads.
const (
	maxWeight = 107 << 10 // bytes as they are sent, without fonts
	maxShift  = 0.05      // of the layout, as browsers score it; https://web.dev/articles/cls calls 0.1 good
)

// CheckLoad fails the test for a page that was too heavy, or moved under the reader's eyes
// as it loaded and what it asks for came in.
func (p *Tab) CheckLoad(name string) {
	p.t.Helper()
	for _, fault := range p.LoadFaults() {
		p.t.Errorf("%s: %s", name, fault)
	}
}

// LoadFaults returns what was wrong with how the page came: its weight with all that it
// loads, from the network or from what the browser keeps, and what moved by itself.
func (p *Tab) LoadFaults() []string {
	p.t.Helper()
	p.Until(still)
	var faults []string
	weight := Evaluate[int](p, `[...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')]
		.filter(loaded => !loaded.name.endsWith('.woff2')).reduce((sum, loaded) => sum + loaded.encodedBodySize, 0)`)
	if weight > maxWeight {
		faults = append(faults, fmt.Sprintf("weighs %d bytes without fonts", weight))
	}
	p.drawn()
	moved := Evaluate[struct {
		By   float64  `json:"by"`
		What []string `json:"what"`
	}](p, `window.settled()`)
	if moved.By > maxShift {
		faults = append(faults, fmt.Sprintf("moved by %.3f as it loaded: %s", moved.By, strings.Join(moved.What, ", ")))
	}
	return faults
}

// Faults returns what is wrong with the page once all is there: what axe finds, what the
// policy refused and the console complained of since the last call, and that
// it scrolls sideways.
func (p *Tab) Faults() []string {
	p.t.Helper()
	p.Until(still)
	var faults []string
	if over := Evaluate[int](p, `document.documentElement.scrollWidth - document.documentElement.clientWidth`); over > 0 {
		faults = append(faults, fmt.Sprintf("scrolls %d px sideways", over))
	}
	if !Evaluate[bool](p, `'axe' in window`) {
		p.Run(axe)
	}
	for _, violation := range Evaluate[[]string](p, violations) {
		faults = append(faults, "axe: "+violation)
	}
	for _, refused := range Evaluate[[]string](p, `window.refused.splice(0)`) {
		faults = append(faults, "the policy refused "+refused)
	}
	return append(faults, p.complaints()...)
}

// complaints returns the errors and warnings that are on the console so far and
// that no earlier call has returned.
func (p *Tab) complaints() []string {
	p.t.Helper()
	p.Run(`console.log('` + endMark + `')`)
	var found []string
	for {
		message, err, more := p.messages()
		if err != nil || !more {
			p.t.Fatalf("console ended: %v", err)
		}
		switch message.Type {
		case chromedp.ConsoleLog, chromedp.ConsoleDebug, chromedp.ConsoleInfo:
			if message.Text == endMark {
				return found
			}
		default:
			if strings.Contains(message.Text, refusedForm) || p.expected != "" && strings.Contains(message.Text, p.expected) {
				continue
			}
			found = append(found, fmt.Sprintf("console: %s (%s)", message, message.URL))
		}
	}
}

// Picture writes what the tab shows into the folder that SCREENSHOTS names, if it
// names one.
func (p *Tab) Picture(name string) {
	p.t.Helper()
	folder := os.Getenv("SCREENSHOTS")
	if folder == "" {
		return
	}
	p.Run(`scrollTo(0, 0)`)
	image, err := chromedp.Run(p.ctx, chromedp.FullScreenshot(100))
	if err != nil {
		p.t.Fatal(err)
	}
	file := filepath.Join(folder, strings.ReplaceAll(name, " ", "-")+".png")
	if err := os.WriteFile(file, image, 0o600); err != nil { //nolint:gosec // the person who runs the tests names the folder
		p.t.Fatal(err)
	}
}
