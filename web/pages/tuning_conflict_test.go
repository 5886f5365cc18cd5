package pages_test

import (
	"net/http"
	"strings"
	"testing"

	"palimpsest/pipeline"
	"palimpsest/pipeline/modules/ipc"
	"palimpsest/pipeline/modules/rehydrator"
	"palimpsest/tenants"
	"palimpsest/web/webtest"
)

// clash has two people save over the same version, and returns what the second is
// answered.
func clash(t *testing.T) (*webtest.Person, webtest.Page) {
	t.Helper()
	person := webtest.Start(t).SignUp(t, "northbeam")
	tuningSave(t, person, "ipc,rehydrator", "ipc: {minClear: 0.2}\n")
	colleague := person.Colleague(tenants.Admin)
	page := person.Get("/pipeline")
	first := colleague.Post("/pipeline", form(page, "ipc.targetUtilization", "0.60", "module.patterns", "true", "rehydrator.scope", "workspace", "ipc.llmCompression", "true")...)
	if first.Path != "/pipeline?saved=2" {
		t.Fatalf("the first is answered %d at %s", first.Status, first.Path)
	}
	second := person.Post("/pipeline", form(page, "ipc.targetUtilization", "0.85", "ipc.preserveLastTurns", "9", "rehydrator.triggerPhrases", "as before")...)
	if second.Status != http.StatusConflict {
		t.Fatalf("the second is answered %d", second.Status)
	}
	return person, second
}

// changed returns what the page says that saving would change.
func changed(page webtest.Page) string { return page.Text("[data-changes]") }

// What only one of the two has changed is theirs, and what both have changed is the second's, who is asked.
func TestConflictKeepsTheChangesOfBoth(t *testing.T) {
	t.Parallel()
	person, page := clash(t)
	if note := page.TestID("conflict"); !strings.Contains(note, "Someone else saved version 2") || strings.Contains(note, "no change left") {
		t.Errorf("the page says %q", note)
	}
	for _, change := range []string{"ipc.targetUtilization 0.60 → 0.85", "ipc.preserveLastTurns 5 → 9", "rehydrator.triggerPhrases empty → as before"} {
		if !strings.Contains(changed(page), change) {
			t.Errorf("%q is not among the changes: %s", change, changed(page))
		}
	}
	for _, theirs := range []string{"patterns", "rehydrator.scope", "llmCompression"} {
		if strings.Contains(changed(page), theirs) {
			t.Errorf("%s would be changed back: %s", theirs, changed(page))
		}
	}
	settled := person.Post("/pipeline", form(page)...)
	stored, config := saved(t, person)
	if settled.Path != "/pipeline?saved=3" || stored.Version != 3 || stored.Modules != "ipc,rehydrator,patterns" {
		t.Fatalf("%d at %s: version %d of %s", settled.Status, settled.Path, stored.Version, stored.Modules)
	}
	if own := pipeline.SettingsOf[ipc.Config](config); own.TargetUtilization != 0.85 || own.PreserveLastTurns != 9 || own.MinClear != 0.2 || own.LLMCompression.Model != "same" {
		t.Errorf("saved %+v", own)
	}
	if own := pipeline.SettingsOf[rehydrator.Config](config); own.Scope != pipeline.ScopeWorkspace || len(own.TriggerPhrases) != 1 {
		t.Errorf("saved %+v", own)
	}
}

func TestConflictOnAConflictAsksOnceMore(t *testing.T) {
	t.Parallel()
	person, page := clash(t)
	tuningSave(t, person, "ipc", "")

	again := person.Post("/pipeline", form(page)...)
	if again.Status != http.StatusConflict || !strings.Contains(again.TestID("conflict"), "You saved version 3") || !strings.Contains(changed(again), "ipc.preserveLastTurns 5 → 9") {
		t.Errorf("status %d: %s", again.Status, again.TestID("conflict"))
	}
	person.Post("/pipeline", form(again)...)
	if stored, config := saved(t, person); stored.Version != 4 || pipeline.SettingsOf[ipc.Config](config).PreserveLastTurns != 9 {
		t.Errorf("version %d with %d turns", stored.Version, pipeline.SettingsOf[ipc.Config](config).PreserveLastTurns)
	}
}

func TestValuesThatDoNotGoTogetherAreRefusedWithAllThatWasTyped(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	page := person.Get("/pipeline")
	tuningSave(t, person, "", "ipc: {targetUtilization: 0.50, compressTo: 0.30}\n")

	clash := person.Post("/pipeline", form(page, "ipc.compressTo", "0.60", "patterns.maxInjected", "2")...)
	refused := person.Post("/pipeline", form(clash)...)
	if refused.Status != http.StatusUnprocessableEntity || !strings.Contains(refused.TestID("error-ipc.compressTo"), "not below") {
		t.Fatalf("status %d: %s", refused.Status, refused.Text(".error"))
	}
	if kept := refused.Find(`input[name="patterns.maxInjected"]`).AttrOr("value", ""); kept != "2" {
		t.Errorf("what was typed became %q", kept)
	}
	if mended := person.Post("/pipeline", form(refused, "ipc.compressTo", "0.40")...); mended.Path != "/pipeline?saved=2" {
		t.Errorf("mended: %d at %s", mended.Status, mended.Path)
	}
}

// Who typed the prompt of summaries that someone switched off keeps both.
func TestMemberIsKeptWithWhatItIsOf(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	tuningSave(t, person, "", "ipc: {llmCompression: {model: same}}\n")
	page := person.Get("/pipeline")
	tuningSave(t, person, "", "")
	long := strings.TrimSpace(strings.Repeat("keep every name ", 20))

	clash := person.Post("/pipeline", form(page, "ipc.llmCompression.prompt", long)...)
	if typed := clash.Find(`[name="ipc.llmCompression.prompt"]`).Text(); typed != long {
		t.Errorf("what was typed is %q", typed)
	}
	person.Post("/pipeline", form(clash)...)
	if _, config := saved(t, person); pipeline.SettingsOf[ipc.Config](config).LLMCompression.Model != "same" || pipeline.SettingsOf[ipc.Config](config).LLMCompression.Prompt != long {
		t.Errorf("saved %+v", pipeline.SettingsOf[ipc.Config](config).LLMCompression)
	}
}

func TestNothingIsLeftToSaveWhereBothSayTheSame(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	page := person.Get("/pipeline")
	sent := form(page, "ipc.targetUtilization", "0.60")
	person.Post("/pipeline", sent...)
	same := person.Post("/pipeline", sent...)
	if same.Status != http.StatusConflict || !strings.Contains(same.TestID("conflict"), "no change left to save") || changed(same) != "" {
		t.Errorf("status %d: %s", same.Status, same.TestID("conflict"))
	}
}
