package pages_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/PuerkitoBio/goquery"

	"palimpsest/pipeline/modules"
	"palimpsest/web/webtest"
)

const summary = "ipc.llmCompression"

// document returns settings by their paths as YAML.
func document(t *testing.T, settings map[string]string) string {
	t.Helper()
	sections := map[string][]string{}
	members := []string{"model: same"}
	for _, path := range slices.Sorted(maps.Keys(settings)) {
		section, name, _ := strings.Cut(path, ".")
		if inner, is := strings.CutPrefix(path, summary+"."); is {
			members = append(members, inner+": "+settings[path])
			continue
		}
		sections[section] = append(sections[section], name+": "+settings[path])
	}
	if len(members) > 1 {
		sections["ipc"] = append(sections["ipc"], "llmCompression: {"+strings.Join(members, ", ")+"}")
	}
	var out strings.Builder
	for _, section := range slices.Sorted(maps.Keys(sections)) {
		out.WriteString(section + ": {" + strings.Join(sections[section], ", ") + "}\n")
	}
	return out.String()
}

// takes reports whether the pipeline takes a value of a setting.
func takes(t *testing.T, path, value string) bool {
	t.Helper()
	settings := map[string]string{path: value}
	if path == "ipc.compressTo" {
		settings["ipc.targetUtilization"] = "0.95"
	}
	_, err := modules.Catalog().Parse([]byte(document(t, settings)))
	return err == nil
}

func TestEverySettingOfThePipelineIsOnThePage(t *testing.T) {
	t.Parallel()
	page := webtest.Start(t).SignUp(t, "northbeam").Get("/pipeline")
	_, sources, err := modules.Catalog().Resolve()
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := json.Marshal(sources)
	if err != nil {
		t.Fatal(err)
	}
	var known map[string]string
	if err := json.Unmarshal(encoded, &known); err != nil {
		t.Fatal(err)
	}
	delete(known, "modules") // switches and order
	if shown := page.Find("[data-row], .dial").Length(); shown > 25 {
		t.Errorf("%d settings are on the page", shown)
	}
	for path := range known {
		if setting, is := modules.Catalog().Setting(path); is && (setting.Reserved != "" || setting.IsRare) {
			if page.Has(`[name="` + path + `"]`) {
				t.Errorf("%s does nothing or is rare, and is on the page", path)
			}
			continue
		}
		if !page.Has(`[name="` + path + `"]`) {
			t.Errorf("%s is not on the page", path)
		}
	}
	for _, member := range []string{"model", "prompt"} {
		if !page.Has(`[name="` + summary + "." + member + `"]`) {
			t.Errorf("%s of the summaries is not on the page", member)
		}
	}
	page.Find("[data-row]").Each(func(_ int, row *goquery.Selection) {
		path := strings.Replace(row.AttrOr("data-row", ""), summary+".", "ipc.", 1)
		if _, is := known[path]; !is && !strings.HasPrefix(row.AttrOr("data-row", ""), summary+".") {
			t.Errorf("%s is no setting", path)
		}
		if !strings.Contains(row.Text(), "default ") {
			t.Errorf("%s does not tell its default", path)
		}
	})
}

func TestRangesOnThePageAreThoseOfThePipeline(t *testing.T) {
	t.Parallel()
	page := webtest.Start(t).SignUp(t, "northbeam").Get("/pipeline")
	checked := 0
	page.Find(`form[data-tuning] input[type="number"]`).Each(func(_ int, input *goquery.Selection) {
		path, step := input.AttrOr("name", ""), 1.0
		if strings.Contains(input.AttrOr("step", ""), ".") {
			step = 0.01
		}
		for _, end := range []struct {
			value   string
			outside float64
		}{{input.AttrOr("min", ""), -step}, {input.AttrOr("max", ""), step}} {
			inside, err := strconv.ParseFloat(end.value, 64)
			if err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			beyond := strconv.FormatFloat(inside+end.outside, 'f', -1, 64)
			if !takes(t, path, end.value) || takes(t, path, beyond) {
				t.Errorf("%s: %s is taken: %v, %s: %v", path, end.value, takes(t, path, end.value), beyond, takes(t, path, beyond))
			}
		}
		checked++
	})
	page.Find(`form[data-tuning] input[type="radio"]`).Each(func(_ int, input *goquery.Selection) {
		if path, value := input.AttrOr("name", ""), input.AttrOr("value", ""); !takes(t, path, value) {
			t.Errorf("%s: %s is not taken", path, value)
		}
		checked++
	})
	if checked < 25 {
		t.Errorf("only %d values were looked at", checked)
	}
}

// typedValues are values of every setting of the page that are not its default.
func typedValues() map[string]string {
	return map[string]string{
		"ipc.targetUtilization": "0.7", "ipc.compressTo": "0.35", "ipc.minClear": "0.2", "ipc.preserveLastTurns": "9", "ipc.preserveTokens": "9000",
		"ipc.archiveToBlob": "false", "ipc.deepestLevel": "2", "ipc.contextWindow": "64000", "ipc.trigger": "break-even", "ipc.minContext": "80000",
		summary + ".prompt":                     "Be brief",
		"compaction-bridge.preserveActiveFiles": "false", "compaction-bridge.preserveDirectives": "false", "compaction-bridge.clientCompaction": "answer",
		"rehydrator.triggerPhrases": "[as before, you said]", "rehydrator.maxRehydrated": "3",
		"rehydrator.maxTokens": "700", "rehydrator.scope": "workspace", "rehydrator.embeddingModel": "text-embedding-3-small",
		"patterns.maxInjected": "2", "semantic-cache.ttlSeconds": "60", "semantic-cache.scope": "key",
	}
}

func TestEverySettingIsSavedAsItIsTypedAndPutBack(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	want, err := modules.Catalog().Parse([]byte(document(t, typedValues())))
	if err != nil {
		t.Fatal(err)
	}
	changes := []string{summary, "true"}
	for path, value := range typedValues() {
		value = strings.Trim(value, "[]")
		if path == "rehydrator.triggerPhrases" {
			value = strings.ReplaceAll(value, ", ", "\r\n")
		}
		changes = append(changes, path, value)
	}
	page := person.Post("/pipeline", form(person.Get("/pipeline"), changes...)...)
	stored, config := saved(t, person)
	config.Modules = want.Modules
	if page.Path != "/pipeline?saved=1" || config.YAML() != want.YAML() {
		t.Fatalf("%d at %s: saved\n%s\nwant\n%s", page.Status, page.Path, config.YAML(), want.YAML())
	}
	if same := person.Post("/pipeline", form(page)...); same.Path != "/pipeline" {
		t.Errorf("saving what is saved leads to %s", same.Path)
	}

	// One button after the other puts every setting back; nothing of it is saved yet.
	page.Find("[data-default-of]:not([hidden])").Each(func(_ int, button *goquery.Selection) {
		page = person.Post("/pipeline", append(form(page), "do", button.AttrOr("value", ""))...)
	})
	target := person.Get("/pipeline?preset=default").Find(`input[name="ipc.targetUtilization"]`).AttrOr("value", "")
	if again, _ := saved(t, person); again.Version != 1 || again.YAML != stored.YAML {
		t.Errorf("version %d was saved", again.Version)
	}
	page = person.Post("/pipeline", form(page, "ipc.targetUtilization", target)...)
	if last, _ := saved(t, person); last.Version != 2 || last.YAML != "" {
		t.Errorf("%d at %s: version %d, %q", page.Status, page.Path, last.Version, last.YAML)
	}
}

func TestCommentsAndWhatIsNotTypedStay(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	const kept = "# agreed with Mira\nipc:\n  minClear: 0.2 # not less\n  blockTokens: 900\n  llmCompression: {model: same, timeout: 40s}\n  preserveTokens: 20000 # as ever\nrehydrator: {maxRehydrated: 7}\n"
	tuningSave(t, person, "", kept)

	person.Post("/pipeline", form(person.Get("/pipeline"), "ipc.minClear", "0.3", "rehydrator.maxRehydrated", "5")...)
	const want = "# agreed with Mira\nipc:\n  minClear: 0.3 # not less\n  blockTokens: 900\n  llmCompression: {model: same, timeout: 40s}\n  preserveTokens: 20000 # as ever\n"
	if stored, _ := saved(t, person); stored.YAML != want {
		t.Errorf("saved\n%s\nwant\n%s", stored.YAML, want)
	}
}

func TestInvalidSummaryIsExplainedAtItsField(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	page := person.Get("/pipeline")
	for member, value := range map[string]string{"model": "", "prompt": strings.Repeat("x", 20_001)} {
		refused := person.Post("/pipeline", form(page, summary, "true", summary+"."+member, value)...)
		if refused.Status != http.StatusUnprocessableEntity || refused.TestID("error-"+summary+"."+member) == "" {
			t.Errorf("%s: status %d: %s", member, refused.Status, refused.Text(".error"))
		}
	}
}

func TestInvalidSettingsAreShownWithTheirModule(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	for path, value := range map[string]string{
		"rehydrator.maxRehydrated": "-1", "patterns.maxInjected": "many",
		"semantic-cache.scope": "everybody", "ipc.contextWindow": "soon", "rehydrator.triggerPhrases": strings.Repeat("x", 201),
	} {
		refused := person.Post("/pipeline", form(person.Get("/pipeline"), path, value, "ipc.targetUtilization", "0.66")...)
		module, _, _ := strings.Cut(path, ".")
		if refused.Status != http.StatusUnprocessableEntity || refused.TestID("error-"+path) == "" || refused.Has(`[data-settings="`+module+`"][hidden]`) {
			t.Errorf("%s: status %d: %s", path, refused.Status, refused.Text(".error"))
		}
		if typed := refused.Find(`input[name="ipc.targetUtilization"]`).AttrOr("value", ""); typed != "0.66" {
			t.Errorf("%s: what was typed beside it became %q", path, typed)
		}
	}
}
