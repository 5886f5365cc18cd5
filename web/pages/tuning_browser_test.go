package pages_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"palimpsest/pipeline"
	"palimpsest/pipeline/fulltest"
	"palimpsest/pipeline/modules/ipc"
	"palimpsest/pipeline/modules/patterns"
	"palimpsest/pipeline/modules/rehydrator"
	"palimpsest/web/browsertest"
	"palimpsest/web/webtest"
)

// tuningOpen opens the page in a browser.
func tuningOpen(t *testing.T, person *webtest.Person, path string) *browsertest.Tab {
	t.Helper()
	tab := browsertest.Start(t).Open(t, browsertest.View{URL: person.URL, Theme: "light", Width: browsertest.Desktop, Cookies: person.Cookies()})
	tab.Go(path)
	tab.Until(`document.querySelector('form[data-tuning][data-ready]') !== null`)
	return tab
}

// tabTo presses Tab until an element that matches has the focus.
func tabTo(t *testing.T, tab *browsertest.Tab, selector string) {
	t.Helper()
	for range 200 {
		if browsertest.Evaluate[bool](tab, fmt.Sprintf(`document.activeElement.matches(%q)`, selector)) {
			return
		}
		tab.Do(chromedp.KeyEvent(kb.Tab))
	}
	t.Fatalf("no way leads to %s", selector)
}

// bar is true once the bar says something.
func bar(says string) string {
	return fmt.Sprintf(`document.querySelector('[data-changes]').textContent.replace(/\s+/g, ' ').includes(%q)`, says)
}

func TestTargetIsTunedByKeyboardAlone(t *testing.T) {
	t.Parallel()
	fulltest.Turn(t, 4)
	person := talkedFive(t)
	tuningSave(t, person, "", "ipc: {compressTo: 0.25}\n")
	tab := tuningOpen(t, person, "/pipeline")
	tab.Until(`document.querySelectorAll('table.figures tbody tr').length === 12 && !document.querySelector('.figures .sk')`)

	tabTo(t, tab, `[name="ipc.targetUtilization"]`)
	for range 49 { // one step each, as the field has them
		tab.Do(chromedp.KeyEvent(kb.ArrowDown))
	}
	tab.Until(bar("ipc.targetUtilization 0.80 → 0.31") + ` && ` + bar("ipc.compressTo 0.25 → 0.21"))
	tab.Until(`!document.querySelector('.preview.stale') && document.querySelector('table.figures tbody tr:nth-child(5) td:last-child').textContent.startsWith('−')`)
	tabTo(t, tab, `[data-slider]`)
	tab.Do(chromedp.KeyEvent(kb.ArrowRight))
	tab.Until(bar("ipc.targetUtilization 0.80 → 0.32"))
	tabTo(t, tab, `[data-savebar] button[type="submit"]`)
	tab.Do(chromedp.KeyEvent(kb.Enter))
	tab.Until(`location.pathname + location.search === '/pipeline?saved=2' && document.querySelector('[data-testid="saved"]') !== null`)
	if stored, config := saved(t, person); stored.Version != 2 || pipeline.SettingsOf[ipc.Config](config).TargetUtilization != 0.32 {
		t.Errorf("version %d with %v", stored.Version, pipeline.SettingsOf[ipc.Config](config).TargetUtilization)
	}
}

// What is typed and not saved is there again after another page, a reload and the way back,
// and no longer once it is discarded or saved.
func TestUnsavedChangesAreKeptInTheTab(t *testing.T) {
	t.Parallel()
	fulltest.Turn(t, 4)
	person := webtest.Start(t).SignUp(t, "northbeam")
	tuningSave(t, person, "ipc,patterns", "")
	tab := tuningOpen(t, person, "/pipeline")
	const kept, none = `document.querySelector('form[data-tuning][data-ready]') !== null && !document.querySelector('[data-savebar]').hidden && `,
		`document.querySelector('form[data-tuning][data-ready]') !== null && document.querySelector('[data-savebar]').hidden`
	all := kept + bar("ipc.preserveTokens 22000 → 9000") + ` && ` + bar("order ipc, patterns → patterns, ipc") + ` && ` + bar("rehydrator off → on")
	tab.Set(`[name="ipc.preserveTokens"]`, "9000")
	tab.Click(`[data-advanced] > summary`)
	tab.Click(`[value="down:ipc"]`)
	tab.Click(`[data-step="rehydrator"] .sw`)
	tab.Until(all)

	tab.Click(`.nav a[href="/keys"]`) // within the document
	tab.Until(browsertest.At("/keys"))
	tab.Click(`.nav a[href="/pipeline"]`)
	tab.Until(browsertest.At("/pipeline") + ` && ` + all)
	tab.Go("/pipeline") // another document
	tab.Until(all)
	tab.Check("unsaved changes are back")
	tab.Click(`.nav a[href="/overview"]`)
	tab.Until(browsertest.At("/overview"))
	tab.Back()
	tab.Until(all)

	tuningSave(t, person, "ipc,patterns", "ipc: {preserveLastTurns: 9}\n") // another replica, another person
	tab.Go("/pipeline")
	tab.Until(all + ` && document.querySelector('[name="ipc.preserveLastTurns"]').value === '9'`)
	tab.Click(`[data-savebar] button[type="submit"]`)
	tab.Until(`document.querySelector('[data-testid="saved"]') !== null && ` + none)
	if stored, config := saved(t, person); stored.Version != 3 || pipeline.SettingsOf[ipc.Config](config).PreserveTokens != 9000 || pipeline.SettingsOf[ipc.Config](config).PreserveLastTurns != 9 || !config.Runs("rehydrator") {
		t.Errorf("saved version %d: %+v", stored.Version, pipeline.SettingsOf[ipc.Config](config))
	}
	tab.Go("/pipeline")
	tab.Until(none)

	tab.Set(`[name="ipc.preserveTokens"]`, "8000")
	tab.Until(kept + bar("ipc.preserveTokens 9000 → 8000"))
	tab.Click(`[data-savebar] [data-discard]`)
	tab.Until(none)
	tab.Go("/pipeline")
	tab.Until(none + ` && document.querySelector('[name="ipc.preserveTokens"]').value === '9000'`)
}

func TestEnterInAFieldSavesNothing(t *testing.T) {
	t.Parallel()
	fulltest.Turn(t, 4)
	person := webtest.Start(t).SignUp(t, "northbeam")
	tab := tuningOpen(t, person, "/pipeline")
	tabTo(t, tab, `[data-advanced] > summary`)
	tab.Do(chromedp.KeyEvent(kb.Enter))
	tab.Until(`document.querySelector('[data-advanced]').open`)
	tabTo(t, tab, `[name="ipc.preserveLastTurns"]`)
	tab.Do(chromedp.KeyEvent(kb.ArrowUp))
	tab.Do(chromedp.KeyEvent(kb.Enter))
	tab.Until(`document.querySelectorAll('table.figures tbody tr').length === 12 && !document.querySelector('.figures .sk') && document.querySelector('[name="ipc.preserveLastTurns"]').value === '6' && document.querySelector('form[data-tuning][data-ready]') !== null`)
	if stored, _ := saved(t, person); stored.Version != 0 {
		t.Errorf("version %d was saved", stored.Version)
	}
}

// A preset is marked while all settings are its own, and Custom while none is.
func TestPresetsShowWhatIsTyped(t *testing.T) {
	t.Parallel()
	fulltest.Turn(t, 4)
	person := webtest.Start(t).SignUp(t, "northbeam")
	tab := tuningOpen(t, person, "/pipeline")
	marked := func(which string) string {
		return `[...document.querySelectorAll('.presets [aria-current]')].map(one => one.dataset.preset || 'custom').join() === '` + which + `'`
	}
	tab.Until(`document.querySelector('form[data-tuning][data-ready]') !== null && ` + marked("default"))
	tab.Click(`[data-preset="aggressive"]`)
	tab.Until(marked("aggressive"))
	tab.Set(`[name="ipc.preserveTokens"]`, "9000")
	tab.Until(marked("custom"))
	tab.Click(`[data-preset="default"]`)
	tab.Until(marked("custom"))
	tab.Set(`[name="ipc.preserveTokens"]`, "22000")
	tab.Until(marked("default"))

	tuningSave(t, person, "ipc", "ipc: {minClear: 0.2}\n")
	if page := person.Get("/pipeline"); !page.Has(`[data-custom][aria-current]`) || page.Has(`[data-preset][aria-current]`) || page.Has(`[data-advanced][open]`) {
		t.Error("a saved setting that no preset has is not shown as Custom")
	}
}

// What a link leads to is not left folded away.
func TestLinkToAnAdvancedSettingUnfoldsIt(t *testing.T) {
	t.Parallel()
	fulltest.Turn(t, 4)
	person := webtest.Start(t).SignUp(t, "northbeam")
	tab := tuningOpen(t, person, "/pipeline")
	tab.Until(`document.querySelector('[data-advanced]:not([open])') !== null`)
	tab.Go("/pipeline#field-ipc-minClear")
	tab.Until(`document.querySelector('[data-advanced]').open && document.getElementById('field-ipc-minClear').checkVisibility()`)
}

func TestModulesAreShownMovedAndPutBackByKeyboard(t *testing.T) {
	t.Parallel()
	fulltest.Turn(t, 4)
	person := webtest.Start(t).SignUp(t, "northbeam")
	tuningSave(t, person, "ipc,patterns", "rehydrator: {maxRehydrated: 7}\n")
	tab := tuningOpen(t, person, "/pipeline")

	// Another module is shown, and nothing that was typed is lost.
	tab.Set(`[name="ipc.preserveTokens"]`, "9000")
	tabTo(t, tab, `[data-advanced] > summary`)
	tab.Do(chromedp.KeyEvent(kb.Enter))
	tabTo(t, tab, `[data-choose="rehydrator"]`)
	tab.Do(chromedp.KeyEvent(kb.Enter))
	tab.Until(`location.search === '?module=rehydrator' && document.querySelector('[data-settings="ipc"]').hidden && !document.querySelector('[data-settings="rehydrator"]').hidden`)
	tab.Until(bar("ipc.preserveTokens 22000 → 9000"))
	tab.Check("rehydrator chosen")

	tabTo(t, tab, `[data-default-of="rehydrator.maxRehydrated"]`)
	tab.Do(chromedp.KeyEvent(kb.Enter))
	tab.Until(bar("rehydrator.maxRehydrated 7 → 5") + ` && document.activeElement.name === 'rehydrator.maxRehydrated'`)
	tab.Set(`[name="rehydrator.triggerPhrases"]`, "as before\nyou said")
	tab.Until(bar("rehydrator.triggerPhrases empty → as before you said"))

	tab.Run(`document.querySelector('[data-choose="ipc"]').focus()`)
	tabTo(t, tab, `[value="down:ipc"]`)
	tab.Do(chromedp.KeyEvent(kb.Enter))
	tab.Until(bar("order ipc, patterns → patterns, ipc") + ` && document.activeElement.value === 'up:ipc'`)
	tabTo(t, tab, `[data-step="rehydrator"] .sw`)
	tab.Do(chromedp.KeyEvent(" "))
	tab.Until(bar("rehydrator off → on"))
	tabTo(t, tab, `[data-savebar] button[type="submit"]`)
	tab.Do(chromedp.KeyEvent(kb.Enter))
	tab.Until(`location.search === '?module=rehydrator&saved=2' && !document.querySelector('[data-settings="rehydrator"]').hidden`)
	stored, config := saved(t, person)
	if got := strings.Join(config.Modules, ","); !strings.Contains(got, "patterns,ipc") || !config.Runs("rehydrator") || pipeline.SettingsOf[ipc.Config](config).PreserveTokens != 9000 || len(pipeline.SettingsOf[rehydrator.Config](config).TriggerPhrases) != 2 {
		t.Errorf("saved %s and %s", got, stored.YAML)
	}
}

// The preview comes without moving anything. Where it does not come the card says so, and
// asks again.
func TestPreviewIsWaitedForInItsSize(t *testing.T) {
	t.Parallel()
	fulltest.Turn(t, 4)
	person := talkedFive(t)
	const places = `JSON.stringify(['.preview', '.preview .replays', '.preview .figures', '.preview .figures td', '.preview .ch', '.preview .legend', '.preview .asks', '.preview footer'].map(one => {
		const at = document.querySelector(one).getBoundingClientRect(); return [one, at.top, at.height].join(' ') }))`
	browser := browsertest.Start(t)
	for width, theme := range map[int64]string{browsertest.Phone: "dark", browsertest.Desktop: "light"} {
		tab := browser.Open(t, browsertest.View{URL: person.URL, Theme: theme, Width: width, Cookies: person.Cookies()})
		tab.OnEveryPage(`const real = window.fetch; window.held = [];
			window.fetch = (...asked) => String(asked[0]).endsWith('part=1') ? new Promise((come, fail) => held.push({come: () => real(...asked).then(come), fail})) : real(...asked)`)
		tab.Go("/pipeline")
		tab.Until(`held.length === 1`)
		tab.Check(fmt.Sprintf("preview waited for %d", width))
		// The clock of its delay stands, however long the test took to come here.
		tab.Run(`window.late = document.getAnimations().find(one => one.effect.target.matches('.late')); late.pause(); late.currentTime = 0`)
		seen := `document.querySelector('.late').checkVisibility({visibilityProperty: true})`
		if browsertest.Evaluate[bool](tab, seen) {
			t.Error("it is late at once")
		}
		tab.Run(`late.finish()`)
		tab.Until(seen)
		before := browsertest.Evaluate[string](tab, places)
		tab.Run(`held[0].come()`)
		tab.Until(`document.querySelectorAll('table.figures tbody tr').length === 12 && !document.querySelector('.figures .sk')`)
		if after := browsertest.Evaluate[string](tab, places); after != before {
			t.Errorf("at %d px it moves from\n%s to\n%s", width, before, after)
		}

		tab.Go("/pipeline")
		tab.Until(`held.length === 1`)
		tab.Run(`held[0].fail(new TypeError('offline'))`)
		tab.See(`[data-testid="preview-failed"]`)
		tab.Check(fmt.Sprintf("preview failed %d", width))
		tab.Click(`[data-testid="preview-failed"] [data-preview-again]`)
		tab.Until(`held.length === 2`)
		tab.Run(`held[1].come()`)
		tab.Until(`document.querySelectorAll('table.figures tbody tr').length === 12 && !document.querySelector('.figures .sk')`)
	}
}

func TestConflictLooksRight(t *testing.T) {
	t.Parallel()
	fulltest.Turn(t, 4)
	person, _ := clash(t)
	tab := tuningOpen(t, person, "/pipeline?module=patterns")
	tuningSave(t, person, "ipc", "patterns: {maxInjected: 4, placement: system}\n")
	tab.Set(`[name="patterns.maxInjected"]`, "3")
	tab.Set(`[name="ipc.llmCompression.prompt"]`, strings.Repeat("keep every name ", 30))
	tab.Click(`[data-savebar] button[type="submit"]`)
	tab.Until(`document.querySelector('[data-testid="conflict"]') !== null`)
	tab.Faults() // a browser complains of any answer 409
	tab.CheckLooks("pipeline conflict")
	tab.Click(`[data-savebar] button[type="submit"]`)
	tab.Until(`location.search === '?module=patterns&saved=4'`)
	if _, config := saved(t, person); pipeline.SettingsOf[patterns.Config](config).MaxInjected != 3 || pipeline.SettingsOf[patterns.Config](config).Placement != "system" {
		t.Errorf("saved %+v", pipeline.SettingsOf[patterns.Config](config))
	}
}

// The figures that need the text follow by themselves, for what is typed, and the bar says them too.
func TestDetailsFollowByThemselves(t *testing.T) {
	t.Parallel()
	fulltest.Turn(t, 4)
	person := talkedFive(t)
	tab := tuningOpen(t, person, "/pipeline")
	tab.Set(`[name="ipc.targetUtilization"]`, "0.35")
	tab.Until(`!document.querySelector('.preview.stale') && document.querySelector('table.figures tbody tr:nth-child(5) td:last-child').textContent.startsWith('−')`)
	tab.Until(`document.querySelector('.basis').textContent.includes('in the text of 5 sessions') && document.querySelector('[data-says]').textContent.includes('When the model needed a detail again, its prompt still had it in ')`)
	tab.CheckLooks("the pipeline with details")
	if typed := browsertest.Evaluate[string](tab, `document.querySelector('[name="ipc.targetUtilization"]').value`); typed != "0.35" {
		t.Errorf("the target became %q", typed)
	}

	tab.OnEveryPage(`const real = window.fetch; window.fetch = (...asked) => String(asked[0]).includes('part=details') ? Promise.reject(new TypeError('offline')) : real(...asked)`)
	tab.Go("/pipeline")
	tab.Until(`document.querySelector('.basis')?.textContent.includes('did not load') && !document.querySelector('.figures .sk')`)
}

// The curve comes where it is asked for, and stays beside the figures.
func TestTheCurveComesWithOnePress(t *testing.T) {
	t.Parallel()
	fulltest.Turn(t, 4)
	person := webtest.Start(t).SignUp(t, "northbeam")
	tab := tuningOpen(t, person, "/pipeline")
	tab.Until(`document.querySelector('[data-testid="ask-curve"]') !== null`)
	tab.Click(`[data-testid="ask-curve"]`)
	tab.Until(`document.querySelectorAll('[data-testid="curve"] tbody tr').length === 4`)
	if tab.Check("the pipeline with the curve"); browsertest.Evaluate[int](tab, `document.querySelectorAll('table.figures tbody tr').length`) != 12 {
		t.Error("the preview is gone")
	}
}
