package pages_test

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/PuerkitoBio/goquery"

	"palimpsest/pipeline"
	"palimpsest/pipeline/modules"
	"palimpsest/pipeline/modules/ipc"
	"palimpsest/pipeline/modules/rehydrator"
	"palimpsest/tenants"
	"palimpsest/web/webtest"
)

// form returns what a browser would send of the page's form, with changes.
func form(page webtest.Page, changes ...string) []string {
	return page.Form("form[data-tuning]", changes...)
}

// saved returns the pipeline that the workspace has now.
func saved(t *testing.T, person *webtest.Person) (tenants.PipelineConfig, pipeline.Config) {
	t.Helper()
	config, err := person.DB.Pipelines.Pipeline(t.Context(), person.Workspace.ID)
	if err != nil {
		t.Fatal(err)
	}
	resolved, _, err := modules.Catalog().Resolve(pipeline.Layer{Modules: "ipc"}, pipeline.Layer{Modules: config.Modules, YAML: config.YAML})
	if err != nil {
		t.Fatal(err)
	}
	return config, resolved
}

func TestSavingChangesWhatWasTypedAndNothingElse(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	_, err := person.DB.Pipelines.SavePipeline(t.Context(), person.Workspace.ID, 0, tenants.PipelineConfig{
		YAML: "ipc:\n  keepLastLadder: [9, 4]\n  minClear: 0.2\nrehydrator:\n  maxRehydrated: 7\n", SavedBy: person.User.ID,
	})
	if err != nil {
		t.Fatal(err)
	}

	page := person.Post("/pipeline", form(person.Get("/pipeline"), "ipc.targetUtilization", "0.58", "ipc.preserveLastTurns", "9", "ipc.deepestLevel", "2")...)
	if page.Path != "/pipeline?saved=2" || !strings.Contains(page.TestID("saved"), "version 2") {
		t.Fatalf("saving led to %s with %d: %s", page.Path, page.Status, page.Text("main"))
	}
	stored, config := saved(t, person)
	if pipeline.SettingsOf[ipc.Config](config).TargetUtilization != 0.58 || pipeline.SettingsOf[ipc.Config](config).PreserveLastTurns != 9 || pipeline.SettingsOf[ipc.Config](config).DeepestLevel != 2 {
		t.Errorf("saved %+v", pipeline.SettingsOf[ipc.Config](config))
	}
	if pipeline.SettingsOf[ipc.Config](config).MinClear != 0.2 || len(pipeline.SettingsOf[ipc.Config](config).KeepLastLadder) != 2 || pipeline.SettingsOf[rehydrator.Config](config).MaxRehydrated != 7 {
		t.Errorf("settings that are not on the page were lost: %s", stored.YAML)
	}
	if strings.Contains(stored.YAML, "preserveTokens") {
		t.Errorf("a default was written down: %s", stored.YAML)
	}
	if stored.SavedBy != person.User.ID {
		t.Errorf("saved by %s", stored.SavedBy)
	}
}

func TestSwitchingTheModuleOffKeepsTheOthers(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	if _, err := person.DB.Pipelines.SavePipeline(t.Context(), person.Workspace.ID, 0, tenants.PipelineConfig{Modules: "ipc,patterns", SavedBy: person.User.ID}); err != nil {
		t.Fatal(err)
	}

	person.Post("/pipeline", form(person.Get("/pipeline"), "module.ipc", "false")...)
	if stored, _ := saved(t, person); stored.Modules != "patterns" {
		t.Errorf("the modules are %q", stored.Modules)
	}
	off := person.Get("/pipeline")
	if _, on := off.Find(`input.sw[name="module.ipc"]`).Attr("checked"); on {
		t.Error("the page says it is on")
	}
	person.Post("/pipeline", form(off, "module.ipc", "true")...)
	if stored, _ := saved(t, person); stored.Modules != "ipc,patterns" {
		t.Errorf("switched on again, the modules are %q", stored.Modules)
	}
}

func TestValueOutOfRangeStandsAtItsField(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	page := person.Get("/pipeline")

	for name, value := range map[string]string{
		"ipc.targetUtilization": "0.99", "ipc.compressTo": "0.80", "ipc.preserveLastTurns": "0", "ipc.preserveTokens": "many",
	} {
		answer := person.Post("/pipeline", form(page, name, value)...)
		if answer.Status != http.StatusUnprocessableEntity || answer.TestID("error-"+name) == "" {
			t.Errorf("%s = %s: status %d: %s", name, value, answer.Status, answer.Text("main"))
		}
		if got := answer.Find(`input[name="`+name+`"]`).AttrOr("value", ""); got != value {
			t.Errorf("%s: the typed value became %q", name, got)
		}
	}
	if stored, _ := saved(t, person); stored.Version != 0 {
		t.Errorf("version %d was saved", stored.Version)
	}
}

func TestLowerTargetLowersCompressToAlong(t *testing.T) {
	t.Parallel()
	product := webtest.Start(t)
	for name, test := range map[string]struct {
		changes []string
		target  float64
		goal    float64
	}{
		"far below":           {[]string{"ipc.targetUtilization", "0.32"}, 0.32, 0.22},
		"at the lowest":       {[]string{"ipc.targetUtilization", "0.30"}, 0.30, 0.20},
		"not far enough":      {[]string{"ipc.targetUtilization", "0.35"}, 0.35, 0.25},
		"typed beside it":     {[]string{"ipc.targetUtilization", "0.45", "ipc.compressTo", "0.44"}, 0.45, 0.44},
		"something else only": {[]string{"ipc.preserveTokens", "9000"}, ipc.DefaultConfig().TargetUtilization, 0.25},
	} {
		person := product.SignUp(t, strings.ReplaceAll(name, " ", "-"))
		tuningSave(t, person, "", "ipc: {compressTo: 0.25}\n")
		page := person.Post("/pipeline", form(person.Get("/pipeline"), test.changes...)...)
		if _, config := saved(t, person); pipeline.SettingsOf[ipc.Config](config).TargetUtilization != test.target || pipeline.SettingsOf[ipc.Config](config).CompressTo != test.goal {
			t.Errorf("%s: status %d, saved %v and %v", name, page.Status, pipeline.SettingsOf[ipc.Config](config).TargetUtilization, pipeline.SettingsOf[ipc.Config](config).CompressTo)
		}
		if shown := page.Find(`input[name="ipc.compressTo"]`).AttrOr("value", ""); shown != strconv.FormatFloat(test.goal, 'f', 2, 64) {
			t.Errorf("%s: the page shows %s", name, shown)
		}
	}
}

func TestTypedCompressToAboveTheTargetIsRefused(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")

	page := person.Post("/pipeline", form(person.Get("/pipeline"), "ipc.targetUtilization", "0.35", "ipc.compressTo", "0.38")...)
	if page.Status != http.StatusUnprocessableEntity || !strings.Contains(page.TestID("error-ipc.compressTo"), "not below targetUtilization") {
		t.Errorf("status %d: %q", page.Status, page.TestID("error-ipc.compressTo"))
	}
	// What is wrong was typed, and stays until something else is typed.
	if again := person.Post("/pipeline", form(page)...); again.Status != http.StatusUnprocessableEntity {
		t.Errorf("sent again: status %d", again.Status)
	}
	if mended := person.Post("/pipeline", form(page, "ipc.compressTo", "0.15")...); mended.Path != "/pipeline?saved=1" {
		t.Errorf("with the value that was shown first: %d at %s", mended.Status, mended.Path)
	}
}

func TestSecondSaveIsShownOverTheFirstAndCanWin(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	tuningSave(t, person, "", "ipc: {compressTo: 0.25}\n")
	page := person.Get("/pipeline")
	person.Post("/pipeline", form(page, "ipc.targetUtilization", "0.60")...)

	conflict := person.Post("/pipeline", form(page, "ipc.targetUtilization", "0.85")...)
	if conflict.Status != http.StatusConflict {
		t.Fatalf("status %d", conflict.Status)
	}
	if low := person.Post("/pipeline", form(page, "ipc.targetUtilization", "0.30")...); !strings.Contains(changed(low), "compressTo 0.25 → 0.20") {
		t.Errorf("a lower target over what was saved: %q", changed(low))
	}
	if !strings.Contains(changed(conflict), "targetUtilization 0.60 → 0.85") {
		t.Errorf("the page says %q", changed(conflict))
	}
	if stored, config := saved(t, person); stored.Version != 2 || pipeline.SettingsOf[ipc.Config](config).TargetUtilization != 0.60 {
		t.Errorf("version %d with %v", stored.Version, pipeline.SettingsOf[ipc.Config](config).TargetUtilization)
	}
	person.Post("/pipeline", form(conflict)...)
	if stored, config := saved(t, person); stored.Version != 3 || pipeline.SettingsOf[ipc.Config](config).TargetUtilization != 0.85 {
		t.Errorf("after saving over it: version %d with %v", stored.Version, pipeline.SettingsOf[ipc.Config](config).TargetUtilization)
	}
}

func TestPresetsFillInTheirValues(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	page := person.Get("/pipeline")

	if presets := page.Find("[data-preset]").Length(); presets != len(modules.Catalog().Presets()) {
		t.Errorf("%d presets", presets)
	}
	for _, known := range modules.Catalog().Presets() {
		filled := person.Get("/pipeline?preset=" + known.Name)
		config, err := modules.Catalog().Parse([]byte(known.YAML))
		if err != nil {
			t.Fatal(err)
		}
		if current := filled.Find("[data-preset][aria-current]").AttrOr("data-preset", ""); current != known.Name {
			t.Errorf("%s: marked is %q", known.Name, current)
		}
		person.Post("/pipeline", form(filled)...)
		if _, now := saved(t, person); pipeline.SettingsOf[ipc.Config](now).TargetUtilization != pipeline.SettingsOf[ipc.Config](config).TargetUtilization || pipeline.SettingsOf[ipc.Config](now).PreserveLastTurns != pipeline.SettingsOf[ipc.Config](config).PreserveLastTurns {
			t.Errorf("%s: saved %v and %d", known.Name, pipeline.SettingsOf[ipc.Config](now).TargetUtilization, pipeline.SettingsOf[ipc.Config](now).PreserveLastTurns)
		}
	}
}

func TestOnlyModulesOfTheProductAreShown(t *testing.T) {
	t.Parallel()
	page := webtest.Start(t).SignUp(t, "northbeam").Get("/pipeline")

	page.Find(`.steps input[type="checkbox"]`).Each(func(_ int, input *goquery.Selection) {
		if name := strings.TrimPrefix(input.AttrOr("name", ""), "module."); !slices.Contains(modules.Catalog().Names(), name) {
			t.Errorf("%s is shown", name)
		}
	})
	if page.Find(`.steps input[type="checkbox"]`).Length() == 0 {
		t.Error("no module is shown")
	}
}

func TestMembersLookAtThePipeline(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	sent := form(person.Get("/pipeline"), "ipc.targetUtilization", "0.5")
	member := person.As(tenants.Regular)

	page := member.Get("/pipeline")
	if page.Has(`button[type="submit"].pri`) || page.Find(`form[data-tuning] input:not([type="hidden"]):not([disabled])`).Length() > 0 {
		t.Error("a member sees controls that they may not use")
	}
	if answer := member.Post("/pipeline", sent...); answer.Status != http.StatusForbidden {
		t.Errorf("a member who saves gets %d", answer.Status)
	}
}
