package browsertest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/chromedp/chromedp"

	"palimpsest/pipeline/fulltest"
)

// endMark separates a page's earlier console messages from later ones.
const endMark = "end of the page"

// refusedForm is the browser's note about a form that came back with errors. That is not a fault of the page.
const refusedForm = "the server responded with a status of 422"

// violations runs axe against WCAG 2.2 AA. It leaves out elements that pass, because naming each of them is
// slow. The page is at its top meanwhile: otherwise the fixed bar may cover half of a button, which axe takes
// for a small one.
const violations = `(at => { scrollTo({top: 0, behavior: 'instant'}); return axe.run(document, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'], resultTypes: ['violations']})
	.then(found => found.violations.map(v => v.id + ': ' + v.help + '\n' + v.nodes.map(n => '    ' + n.target.join(' ') + ' | ' + n.failureSummary.replace(/\s+/g, ' ')).join('\n')))
	.finally(() => scrollTo({top: at, behavior: 'instant'})) })(scrollY)`

// Expect makes the following checks ignore the browser's note about a response with a status.
func (p *Tab) Expect(status int) {
	p.expected = fmt.Sprintf("the server responded with a status of %d", status)
}

// ExpectNoServer makes the following checks ignore the browser's notes about requests without a response.
func (p *Tab) ExpectNoServer() { p.expected = "net::ERR_" }

// Check fails the test for every fault of the page, and keeps a picture of it.
func (p *Tab) Check(name string) {
	p.t.Helper()
	p.Picture(name)
	report(p, name, p.Faults())
}

// report fails the test with every fault.
func report(p *Tab, name string, faults []string) {
	p.t.Helper()
	for _, fault := range faults {
		p.t.Errorf("%s: %s", name, fault)
	}
}

// Look is a theme and a screen width.
type Look struct {
	Theme string
	Width int64
}

// Looks returns the looks that this run checks. Usually that is each width with one theme, paired according
// to the commit; in make test-all it is both widths with both themes.
func Looks() []Look {
	looks := []Look{{"light", Phone}, {"dark", Desktop}, {"dark", Phone}, {"light", Desktop}}
	if fulltest.Everything() {
		return looks
	}
	number := fulltest.Number()
	looks = looks[number%2*2:][:2]
	if number%4 > 1 {
		slices.Reverse(looks)
	}
	return looks
}

// Widths returns the screen widths of this run's walks: one, chosen by the commit, or both in make test-all.
func Widths() []int64 {
	widths := []int64{Desktop, Phone}
	if fulltest.Everything() {
		return widths
	}
	return widths[fulltest.Number()%2:][:1]
}

// CheckLooks checks the page in the looks of this run. Outside make test-all, axe checks only the first look,
// and only on every third commit, chosen by the name, because it takes most of the time.
func (p *Tab) CheckLooks(name string) {
	p.t.Helper()
	isTurn := fulltest.IsTurn(name, 3)
	eachLook(p, name, func(number int, shown string) {
		if fulltest.Everything() || number == 0 && isTurn {
			p.Check(shown)
		} else {
			fits(p, shown)
		}
	})
}

// CheckFit checks the page in the looks of this run without axe.
func (p *Tab) CheckFit(name string) {
	p.t.Helper()
	eachLook(p, name, func(_ int, shown string) { fits(p, shown) })
}

// eachLook shows the page in each look of this run, with a name for it.
func eachLook(p *Tab, name string, check func(number int, shown string)) {
	p.t.Helper()
	const theme = `document.documentElement.dataset.theme`
	before := Evaluate[string](p, theme+` || ''`)
	for number, look := range Looks() {
		p.resize(look.Width)
		p.Run(fmt.Sprintf("%s = %q", theme, look.Theme))
		p.drawn()
		check(number, fmt.Sprintf("%s %s %d", name, look.Theme, look.Width))
	}
	p.Run(fmt.Sprintf("%s = %q", theme, before))
	p.resize(p.width)
}

// fits fails the test for each fault of the page that needs no axe, and keeps a picture.
func fits(p *Tab, name string) {
	p.t.Helper()
	p.Picture(name)
	report(p, name, append(overflows(p), notes(p)...))
}

// Limits of a page's weight and of its movement while it loads.
const (
	maxWeight = 110 << 10 // bytes as they are sent, without fonts
	maxShift  = 0.05      // of the layout, as browsers score it; https://web.dev/articles/cls calls 0.1 good
)

// CheckLoad fails the test if a page is too heavy, or moved while it and its resources loaded.
func (p *Tab) CheckLoad(name string) {
	p.t.Helper()
	report(p, name, p.LoadFaults())
}

// LoadFaults returns the faults of a page's loading: its weight with all its resources, from the network or
// from the browser's cache, and layout shifts without input.
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

// Faults returns the faults of a loaded page: axe's findings, policy violations and console messages since
// the last call, and horizontal scrolling.
func (p *Tab) Faults() []string {
	p.t.Helper()
	faults := overflows(p)
	if !Evaluate[bool](p, `'axe' in window`) {
		p.Run(axe)
	}
	for _, violation := range Evaluate[[]string](p, violations) {
		faults = append(faults, "axe: "+violation)
	}
	return append(faults, notes(p)...)
}

// overflows returns a fault if the loaded page scrolls sideways.
func overflows(p *Tab) []string {
	p.t.Helper()
	p.Until(still)
	if over := Evaluate[int](p, `document.documentElement.scrollWidth - document.documentElement.clientWidth`); over > 0 {
		return []string{fmt.Sprintf("scrolls %d px sideways", over)}
	}
	return nil
}

// notes returns the policy's violations and the console's messages since the last call.
func notes(p *Tab) []string {
	p.t.Helper()
	var faults []string
	for _, refused := range Evaluate[[]string](p, `window.refused.splice(0)`) {
		faults = append(faults, "the policy refused "+refused)
	}
	return append(faults, p.complaints()...)
}

// complaints returns the console's errors and warnings since the last call.
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

// Picture writes a screenshot into the folder in SCREENSHOTS, if set.
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
