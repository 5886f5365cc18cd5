package pages_test

import (
	"net/http"
	"strings"
	"testing"

	"palimpsest/tenants"
	"palimpsest/web/webtest"
)

const file = `palimpsest: 1
settings:
  time_zone: Europe/Berlin
pipeline: {ipc: {minClear: 0.2}}
api_keys:
  - {name: nightly, scopes: [proxy]}
`

// S32
func TestAConfigurationIsImportedAfterItWasSeen(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	page := person.Get("/settings")
	if !page.Has(`a[href="/api/v1/config/export"]`) || !page.Has(`a[href="/settings/import"]`) {
		t.Fatalf("the settings do not lead there: %s", page.Text("main"))
	}
	asked := person.Post("/settings/import", "config", strings.ReplaceAll(file, "\n", "\r\n"))
	if asked.Status != http.StatusOK || !strings.Contains(asked.TestID("changes"), "settings.time_zone UTC Europe/Berlin") || !strings.Contains(asked.TestID("changes"), "pipeline.ipc.minClear 0.1 0.2") ||
		!strings.Contains(asked.TestID("by-hand"), `API key "nightly" does not exist here`) {
		t.Fatalf("status %d: %s", asked.Status, asked.Text("main"))
	}
	if kept, err := person.DB.Data.DataSettings(t.Context(), person.Workspace.ID); err != nil || kept.TimeZone != "UTC" {
		t.Errorf("it was changed before it was confirmed: %+v, %v", kept, err)
	}

	form := asked.Find(`[data-testid="confirm"]`)
	done := person.Post(form.AttrOr("action", ""), "config", strings.TrimPrefix(form.Find("textarea").Text(), "\n"), "confirmed", form.Find("button").AttrOr("value", ""))
	if done.Status != http.StatusOK || !strings.Contains(done.TestID("done"), "2 changes made") || !strings.Contains(done.TestID("by-hand"), "nightly") {
		t.Fatalf("status %d: %s", done.Status, done.Text("main"))
	}
	kept, err := person.DB.Data.DataSettings(t.Context(), person.Workspace.ID)
	saved, savedErr := person.DB.Pipelines.Pipeline(t.Context(), person.Workspace.ID)
	if err != nil || savedErr != nil || kept.TimeZone != "Europe/Berlin" || saved.YAML != "ipc:\n  minClear: 0.2\n" || saved.SavedBy != person.User.ID {
		t.Errorf("kept %+v, %v; saved %+v, %v", kept, err, saved, savedErr)
	}
	entries, err := person.DB.Audit.Audit(t.Context(), person.Workspace.ID, tenants.AuditFilter{Limit: 1})
	if err != nil || len(entries) != 1 || entries[0].Action != tenants.ConfigImported || entries[0].Actor.Name != person.Email {
		t.Errorf("noted %+v, %v", entries, err)
	}
	if again := person.Post("/settings/import", "config", file); !strings.Contains(again.TestID("nothing"), "No changes") || again.Has(`[data-testid="confirm"]`) || !again.Has("#field-file") {
		t.Errorf("once more: %s", again.Text("main"))
	}
}

func TestAConfigurationFileIsSentAsAFile(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	asked := person.Upload("/settings/import", "file", "config.yaml", file)
	if asked.Status != http.StatusOK || !strings.Contains(asked.TestID("changes"), "settings.time_zone") {
		t.Errorf("status %d: %s", asked.Status, asked.Text("main"))
	}
	// A browser sends the text together with the file that nobody chose.
	if typed := person.Upload("/settings/import", "file", "", "", "config", file); typed.Status != http.StatusOK || !strings.Contains(typed.TestID("changes"), "settings.time_zone") {
		t.Errorf("typed: status %d: %s", typed.Status, typed.Text("main"))
	}
	if large := person.Upload("/settings/import", "file", "config.yaml", strings.Repeat("#", 2<<20)); large.Status != http.StatusRequestEntityTooLarge {
		t.Errorf("two megabytes: status %d", large.Status)
	}
	if empty := person.Upload("/settings/import", "file", "", ""); empty.Status != http.StatusUnprocessableEntity || !strings.Contains(empty.TestID("faults"), "The file is empty") {
		t.Errorf("without a file: status %d: %s", empty.Status, empty.Text("main"))
	}
}

func TestInvalidConfigurationIsExplainedAtItsLine(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	const typed = "palimpsest: 1\nsettings: {time_zone: Mars}\npipelin: {}\n"
	page := person.Post("/settings/import", "config", typed, "confirmed", "yes")
	for _, want := range []string{"2 errors. No setting was changed.", "Line 2 settings: {time_zone: Mars}", "is not a time zone", "Line 3 pipelin: {}", "Did you mean pipeline?"} {
		if !strings.Contains(page.TestID("faults"), want) {
			t.Errorf("%q is not in %s", want, page.TestID("faults"))
		}
	}
	if page.Status != http.StatusUnprocessableEntity || strings.TrimPrefix(page.Find("#field-config").Text(), "\n") != typed {
		t.Errorf("status %d, typed is %q", page.Status, page.Find("#field-config").Text())
	}
	if page := person.As(tenants.Regular).Post("/settings/import", "config", file, "confirmed", "yes"); page.Status != http.StatusForbidden {
		t.Errorf("as member: status %d", page.Status)
	}
}
