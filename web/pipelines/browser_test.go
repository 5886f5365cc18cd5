package pipelines_test

import (
	"testing"

	"palimpsest/web/browsertest"
	"palimpsest/web/webtest"
)

// The YAML is mended at its line, saved over somebody else's, and an earlier version
// restored, in a browser; every page on the way passes the checks of looks.
func TestYAMLIsMendedAndAVersionRestoredInABrowser(t *testing.T) {
	t.Parallel()
	product := webtest.Start(t)
	browser := browsertest.Start(t)
	for _, view := range []browsertest.View{{Theme: "light", Width: browsertest.Desktop}, {Theme: "dark", Width: browsertest.Phone}} {
		person := product.SignUp(t, "northbeam-"+view.Theme)
		view.URL, view.Cookies = product.URL, person.Cookies()
		tab := browser.Open(t, view)
		name := func(what string) string { return "yaml " + what + " " + view.Theme }

		tab.Go("/pipeline/yaml/edit")
		tab.Set("#field-yaml", "ipc:\n  targetUtilisation: 0.6\n  minClear: 7\n")
		tab.Click(`main form button[type="submit"]`)
		tab.See(`[data-testid="faults"]`)
		tab.Check(name("refused"))

		person.Post("/pipeline/yaml", "version", "0", "yaml", "# first\nipc:\n  targetUtilization: 0.7\n")
		tab.Set("#field-yaml", "# second\nipc:\n  targetUtilization: 0.6\n  minClear: 0.2\n")
		tab.Click(`main form button[type="submit"]`)
		tab.See(`[data-testid="conflict"]`)
		tab.Check(name("conflict"))
		tab.Click(`main form button[type="submit"]`)
		tab.See(`[data-testid="done"]`)
		tab.Check(name("saved"))

		tab.Click(`main a[href="/pipeline/history"]`)
		tab.See(`[data-testid="versions"]`)
		tab.Check(name("history"))
		tab.Click(`main a[href="/pipeline/history/1/restore"]`)
		tab.See("dialog[open]#dlg-restore")
		tab.Check(name("restore"))
		tab.Click(`#dlg-restore button[type="submit"]`)
		tab.See(`[data-testid="done"]`)
		if now := newest(t, person); now.Version != 3 || now.YAML != "# first\nipc:\n  targetUtilization: 0.7\n" {
			t.Errorf("in force is %+v", now)
		}
		tab.Go("/settings/import")
		tab.Set("#field-config", "palimpsest: 1\nsettings: {time_zone: Europe/Berlin}\nmodel_windows: {small: 32000}\napi_keys: [{name: nightly, scopes: [proxy]}]\n")
		tab.Click(`main form button[type="submit"]`)
		tab.See(`[data-testid="changes"]`)
		tab.Check(name("import"))
	}
}
