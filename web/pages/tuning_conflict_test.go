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

// chosen returns whose value a conflict has chosen for a setting.
func chosen(page webtest.Page, name string) string {
	return page.Find(`input[name="pick.`+name+`"][checked]`).AttrOr("value", "")
}

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

func TestConflictShowsBothValuesOfEachSetting(t *testing.T) {
	t.Parallel()
	_, page := clash(t)

	for _, row := range []string{
		"ipc.targetUtilization Saved 0.60 Yours 0.85", "patterns Saved on Yours off", "rehydrator.scope Saved workspace Yours session",
		"ipc.preserveLastTurns Saved 5 Yours 9", "rehydrator.triggerPhrases Saved empty Yours as before", "ipc.llmCompression Saved on Yours off",
	} {
		if !strings.Contains(page.TestID("conflict"), row) {
			t.Errorf("the page does not say %q: %s", row, page.TestID("conflict"))
		}
	}
	if rows := page.Find("fieldset.pick").Length(); rows != 6 {
		t.Errorf("%d settings are said to differ", rows)
	}
	// What only one of them changed is theirs before anybody chooses.
	for name, want := range map[string]string{
		"ipc.targetUtilization": "mine", "ipc.preserveLastTurns": "mine", "rehydrator.triggerPhrases": "mine",
		"module.patterns": "theirs", "rehydrator.scope": "theirs", "ipc.llmCompression": "theirs",
	} {
		if got := chosen(page, name); got != want {
			t.Errorf("%s: chosen is %q", name, got)
		}
	}
	if strings.Contains(page.TestID("conflict"), "You saved") {
		t.Error("a colleague’s version is said to be one’s own")
	}
}

func TestConflictIsSettledSettingBySetting(t *testing.T) {
	t.Parallel()
	person, page := clash(t)

	settled := person.Post("/pipeline", form(page, "pick.ipc.targetUtilization", "theirs", "pick.rehydrator.scope", "mine")...)
	stored, config := saved(t, person)
	if settled.Path != "/pipeline?saved=3" || stored.Version != 3 || stored.Modules != "ipc,rehydrator,patterns" {
		t.Fatalf("%d at %s: version %d of %s", settled.Status, settled.Path, stored.Version, stored.Modules)
	}
	if pipeline.SettingsOf[ipc.Config](config).TargetUtilization != 0.60 || pipeline.SettingsOf[ipc.Config](config).PreserveLastTurns != 9 || pipeline.SettingsOf[ipc.Config](config).MinClear != 0.2 || pipeline.SettingsOf[ipc.Config](config).LLMCompression.Model != "same" {
		t.Errorf("saved %+v", pipeline.SettingsOf[ipc.Config](config))
	}
	if pipeline.SettingsOf[rehydrator.Config](config).Scope != pipeline.ScopeSession || len(pipeline.SettingsOf[rehydrator.Config](config).TriggerPhrases) != 1 {
		t.Errorf("saved %+v", pipeline.SettingsOf[rehydrator.Config](config))
	}
}

func TestConflictOnAConflictAsksOnceMore(t *testing.T) {
	t.Parallel()
	person, page := clash(t)
	tuningSave(t, person, "ipc", "")

	again := person.Post("/pipeline", form(page)...)
	if again.Status != http.StatusConflict || !strings.Contains(again.TestID("conflict"), "You saved version 3") || !strings.Contains(again.TestID("conflict"), "ipc.preserveLastTurns Saved 5 Yours 9") {
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

// Who typed the prompt of summaries that someone switched off keeps both or neither.
func TestMemberIsChosenWithWhatItIsOf(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	tuningSave(t, person, "", "ipc: {llmCompression: {model: same}}\n")
	page := person.Get("/pipeline")
	tuningSave(t, person, "", "")
	long := strings.TrimSpace(strings.Repeat("keep every name ", 20))

	clash := person.Post("/pipeline", form(page, "ipc.llmCompression.prompt", long)...)
	if !strings.Contains(clash.TestID("conflict"), "Yours "+long) {
		t.Errorf("what was typed is cut: %s", clash.TestID("conflict"))
	}
	for _, name := range []string{"ipc.llmCompression", "ipc.llmCompression.prompt"} {
		if got := chosen(clash, name); got != "mine" {
			t.Errorf("%s: chosen is %q", name, got)
		}
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
	if same.Status != http.StatusConflict || !strings.Contains(same.TestID("conflict"), "nothing left to save") || same.Has(`[data-conflict] button`) {
		t.Errorf("status %d: %s", same.Status, same.TestID("conflict"))
	}
}
