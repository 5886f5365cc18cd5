package walks_test

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"palimpsest/pipeline/fulltest"
	"palimpsest/web/browsertest"
	"palimpsest/web/webtest"
)

const (
	headed = ` && document.querySelector('dialog[open]') === null && document.activeElement.matches('h1')`
	wrong  = `document.activeElement.matches('[aria-invalid="true"]')`
)

// enter goes with Tab to what matches and presses Enter on it.
func enter(t *testing.T, tab *browsertest.Tab, selector string) {
	t.Helper()
	tabTo(t, tab, selector)
	tab.Do(chromedp.KeyEvent(kb.Enter))
}

// write goes with Tab to a field and types in place of all that stands there.
func write(t *testing.T, tab *browsertest.Tab, field, text string) {
	t.Helper()
	if !browsertest.Evaluate[bool](tab, `document.activeElement.matches('`+field+`')`) {
		tabTo(t, tab, field)
	}
	tab.Run(`document.activeElement.select()`) // Ctrl A, which a Chromium without a window does not know
	tab.Do(chromedp.KeyEvent(text))
}

// The pipeline as YAML, its history and a version that is restored, without a mouse: every
// step leads to a heading or a dialog.
func TestPipelineIsRestoredByKeyboardAlone(t *testing.T) {
	t.Parallel()
	fulltest.Turn(t, 4)
	product := webtest.Start(t)
	person := product.SignUp(t, "northbeam")
	tab := browsertest.Start(t).Open(t, browsertest.View{URL: product.URL, Theme: "light", Cookies: person.Cookies()})

	tab.Go("/overview")
	press(tab, "gp")
	tab.Until(browsertest.At("/pipeline") + headed)
	enter(t, tab, `[data-advanced] > summary`)
	enter(t, tab, `main a[href="/pipeline/yaml"]`)
	tab.Until(browsertest.At("/pipeline/yaml") + headed)

	person.SetPipeline(0, "ipc: {minClear: 0.2}")
	person.SetPipeline(1, "ipc: {minClear: 0.3}")

	// Escape leaves the question for the version's page, from which it is asked again.
	enter(t, tab, `main a[href="/pipeline/history"]`)
	tab.Until(browsertest.At("/pipeline/history") + headed)
	enter(t, tab, `main a[href="/pipeline/history/1/restore"]`)
	tab.Until(`document.querySelector('#dlg-restore:modal')?.contains(document.activeElement)`)
	tab.Do(chromedp.KeyEvent(kb.Escape))
	tab.Until(browsertest.At("/pipeline/history/1") + headed)
	enter(t, tab, `main a[href="/pipeline/history/1/restore"]`)
	tab.Until(`document.querySelector('#dlg-restore:modal')?.contains(document.activeElement)`)
	enter(t, tab, `#dlg-restore button[type="submit"]`)
	tab.Until(browsertest.At("/pipeline/history?restored=3") + headed)
	tab.CheckLooks("restored by keyboard")
	config, err := person.DB.Pipelines.Pipeline(t.Context(), person.Workspace.ID)
	if err != nil || config.Version != 3 || !strings.Contains(config.YAML, "minClear: 0.2") {
		t.Errorf("version %d holds %q: %v", config.Version, config.YAML, err)
	}
}

// A configuration is imported without a mouse: what is wrong with it, what would change and
// what has changed.
func TestConfigurationIsImportedByKeyboardAlone(t *testing.T) {
	t.Parallel()
	fulltest.Turn(t, 4)
	product := webtest.Start(t)
	person := product.SignUp(t, "northbeam")
	tab := browsertest.Start(t).Open(t, browsertest.View{URL: product.URL, Theme: "light", Cookies: person.Cookies()})

	tab.Go("/settings")
	enter(t, tab, `main a[href="/settings/import"]`)
	tab.Until(browsertest.At("/settings/import") + headed)
	tabTo(t, tab, "#field-file")
	write(t, tab, "#field-config", "palimpsest: 1, settngs: {}")
	enter(t, tab, `main form button[type="submit"]`)
	tab.Until(`document.querySelector('#faults') !== null && ` + wrong)
	write(t, tab, "#field-config", "{palimpsest: 1, settings: {time_zone: Europe/Berlin}}")
	enter(t, tab, `main form button[type="submit"]`)
	tab.Until(`document.querySelector('[data-testid="confirm"]') !== null` + headed)
	tab.CheckLooks("import asked by keyboard")
	enter(t, tab, `[data-testid="confirm"] button[type="submit"]`)
	tab.Until(`document.querySelector('[data-testid="done"]')?.textContent.includes('1 change')` + headed)
	settings, err := person.DB.Data.DataSettings(t.Context(), person.Workspace.ID)
	if err != nil || settings.TimeZone != "Europe/Berlin" {
		t.Errorf("the time zone is %q: %v", settings.TimeZone, err)
	}
}
