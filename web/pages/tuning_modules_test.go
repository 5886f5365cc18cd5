package pages_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/PuerkitoBio/goquery"

	"palimpsest/pipeline"
	"palimpsest/pipeline/modules"
	"palimpsest/pipeline/modules/ipc"
	"palimpsest/pipeline/modules/rehydrator"
	"palimpsest/pipeline/session"
	"palimpsest/tenants"
	"palimpsest/web"
	"palimpsest/web/webtest"
)

// tuningSave saves a pipeline as the API does.
func tuningSave(t *testing.T, person *webtest.Person, modules, yaml string) {
	t.Helper()
	now, err := person.DB.Pipelines.Pipeline(t.Context(), person.Workspace.ID)
	if err != nil {
		t.Fatal(err)
	}
	config := tenants.PipelineConfig{Modules: modules, YAML: yaml, SavedBy: person.User.ID}
	if _, err := person.DB.Pipelines.SavePipeline(t.Context(), person.Workspace.ID, now.Version, config); err != nil {
		t.Fatal(err)
	}
}

// tuningListed returns the modules as the column lists them.
func tuningListed(page webtest.Page) []string {
	return page.Find("[data-step]").Map(func(_ int, step *goquery.Selection) string { return step.AttrOr("data-step", "") })
}

func TestModulesAreListedInTheOrderInWhichTheyRun(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	tuningSave(t, person, "semantic-cache,patterns,ipc", "")

	page := person.Get("/pipeline")
	// Those that are off stand behind the one that they usually follow.
	want, got := []string{"semantic-cache", "patterns", "ipc", "compaction-bridge", "rehydrator"}, tuningListed(page)
	isOther := func(name string) bool { return !slices.Contains(want, name) }
	if len(got) != len(modules.Catalog().Names()) || !slices.Equal(slices.DeleteFunc(slices.Clone(got), isOther), want) {
		t.Errorf("listed are %v", got)
	}
	page.Find("[data-step]").Each(func(_ int, step *goquery.Selection) {
		name := step.AttrOr("data-step", "")
		_, on := step.Find(".sw").Attr("checked")
		hasFigure := step.Find("p").Length() == 2 && strings.Contains(step.Find(".live").Text(), "7 days")
		if on != slices.Contains(want[:3], name) || slices.Contains(want, name) && !hasFigure {
			t.Errorf("%s: on %v, %q", name, on, step.Text())
		}
	})
}

func TestEachModuleIsShownByItsLink(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	for _, name := range append(modules.Catalog().Names(), "", "made-up") {
		page, want := person.Get("/pipeline?module="+name), name
		if !slices.Contains(modules.Catalog().Names(), name) {
			want = "ipc"
		}
		shown := page.Find("[data-settings]:not([hidden])")
		if shown.Length() != 1 || shown.AttrOr("data-settings", "") != want || page.Find("[data-step][aria-current]").AttrOr("data-step", "") != want {
			t.Errorf("%q shows %s", name, shown.AttrOr("data-settings", "?"))
		}
		if link := page.Find(`[data-choose="`+want+`"]`).AttrOr("data-path", ""); link != "/pipeline?module="+want {
			t.Errorf("%s is at %s", want, link)
		}
	}
	saving := person.Post("/pipeline", form(person.Get("/pipeline?module=rehydrator"), "rehydrator.maxRehydrated", "3")...)
	if saving.Path != "/pipeline?module=rehydrator&saved=1" || saving.Has(`[data-settings="rehydrator"][hidden]`) {
		t.Errorf("saving leads to %s", saving.Path)
	}
}

func TestModulesAreMovedWithoutAScript(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	tuningSave(t, person, "ipc,patterns,semantic-cache", "")

	page := person.Get("/pipeline")
	for _, button := range []string{`[value="up:ipc"]`, `[value="down:semantic-cache"]`, `[value="up:rehydrator"]`} {
		if _, disabled := page.Find(`button` + button).Attr("disabled"); !disabled {
			t.Errorf("%s can be pressed", button)
		}
	}
	moved := person.Post("/pipeline", append(form(page, "ipc.targetUtilization", "0.66"), "do", "up:semantic-cache")...)
	moved = person.Post("/pipeline", append(form(moved), "do", "down:ipc")...)
	if moved.Status != http.StatusOK {
		t.Fatalf("status %d", moved.Status)
	}
	if typed := moved.Find(`input[name="ipc.targetUtilization"]`).AttrOr("value", ""); typed != "0.66" {
		t.Errorf("what was typed became %q", typed)
	}
	if bar := moved.Text("[data-changes]"); !strings.Contains(bar, "order ipc, patterns, semantic-cache → semantic-cache, ipc, patterns") || !strings.Contains(bar, "ipc.targetUtilization 0.80 → 0.66") {
		t.Errorf("the bar says %q", bar)
	}
	if stored, _ := saved(t, person); stored.Version != 1 {
		t.Errorf("moving saved version %d", stored.Version)
	}
	for _, nothing := range []string{"up:made-up", "down", "default:made.up", "sideways:ipc"} {
		if page := person.Post("/pipeline", append(form(moved), "do", nothing)...); page.Status != http.StatusOK || !slices.Equal(tuningListed(page), tuningListed(moved)) {
			t.Errorf("%s: %d, %v", nothing, page.Status, tuningListed(page))
		}
	}
	person.Post("/pipeline", form(moved)...)
	if stored, config := saved(t, person); stored.Modules != "semantic-cache,ipc,patterns" || pipeline.SettingsOf[ipc.Config](config).TargetUtilization != 0.66 {
		t.Errorf("saved %q and %v", stored.Modules, pipeline.SettingsOf[ipc.Config](config).TargetUtilization)
	}
}

func TestMadeUpOrderIsIgnored(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	for _, order := range [][]string{{"ipc"}, {"ipc", "ipc", "patterns", "rehydrator", "semantic-cache"}, {"<b>", "ipc", "patterns", "rehydrator", "semantic-cache"}} {
		sent := []string{"version", "0", "do", "up:ipc"}
		for _, name := range order {
			sent = append(sent, "order", name)
		}
		if page := person.Post("/pipeline", sent...); page.Status != http.StatusOK || !slices.Equal(tuningListed(page), modules.Catalog().Names()) {
			t.Errorf("%v: status %d, %v", order, page.Status, tuningListed(page))
		}
	}
}

func TestFiguresAreThoseOfTheWorkspace(t *testing.T) {
	t.Parallel()
	product := webtest.Start(t)
	person, other := talked(t, product, 1), product.SignUp(t, "other")
	totals, err := person.DB.Usage.Totals(tenants.OwnWork(t.Context()), person.Workspace.ID, tenants.UsageFilter{From: time.Now().Add(-time.Hour), To: time.Now()})
	if err != nil || totals.Saved() == 0 {
		t.Fatalf("nothing was saved: %+v, %v", totals, err)
	}
	want := fmt.Sprintf("%.1f%% of tokens not sent in 7 days", 100*float64(totals.Saved())/float64(totals.Sendable()))
	if got := person.Get("/pipeline").Text(`[data-step="ipc"] .live`); got != want {
		t.Errorf("the page says %q, want %q", got, want)
	}
	if got := other.Get("/pipeline").Text(`[data-step="ipc"] .live`); got != "no request in 7 days" {
		t.Errorf("another workspace reads %q", got)
	}
}

var errBrokenSessions = errors.New("relation lane_inserts does not exist")

// brokenSessions cannot say what modules made.
type brokenSessions struct{ stored }

type stored = session.Records

// Made implements session.Records.
func (brokenSessions) Made(context.Context, tenants.WorkspaceID, time.Time) (session.Made, error) {
	return session.Made{}, errBrokenSessions
}

func TestFailedFigureSaysSoAndLeavesTheOthers(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t, func(_ *webtest.Product, deps *web.Deps) {
		deps.Conversations.Sessions = brokenSessions{deps.Conversations.Sessions}
	}).SignUp(t, "northbeam")

	page := person.Get("/pipeline")
	for _, name := range []string{"rehydrator", "patterns"} {
		if got := page.Text(`[data-step="` + name + `"] .live`); !strings.Contains(got, "did not load. Reference") {
			t.Errorf("%s says %q", name, got)
		}
	}
	if got := page.Text(`[data-step="ipc"] .live`); page.Status != http.StatusOK || got != "no request in 7 days" || strings.Contains(page.HTML, "lane_inserts") {
		t.Errorf("status %d, ipc says %q", page.Status, got)
	}
	if saved := person.Post("/pipeline", form(page, "rehydrator.maxRehydrated", "3")...); saved.Path != "/pipeline?saved=1" {
		t.Errorf("saving leads to %s with %d", saved.Path, saved.Status)
	}
}

// Anyone who has no script looks at another module's settings, takes a preset, and keeps what
// they typed everywhere.
func TestTypedIsKeptWhileModulesAreShownWithoutAScript(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")

	page := person.Get("/pipeline")
	button := page.Find(`[data-choose="rehydrator"]`)
	if goquery.NodeName(button) != "button" {
		t.Fatalf("a %s shows another module", goquery.NodeName(button))
	}
	page = person.Post("/pipeline", append(form(page, "ipc.preserveTokens", "9000"), "do", button.AttrOr("value", ""))...)
	if shown := page.Find("[data-settings]:not([hidden])").AttrOr("data-settings", ""); page.Status != http.StatusOK || shown != "rehydrator" {
		t.Fatalf("status %d shows %s", page.Status, shown)
	}
	page = person.Post("/pipeline", append(form(page, "rehydrator.maxRehydrated", "3"), "do", page.Find(`[data-choose="ipc"]`).AttrOr("value", ""))...)
	page = person.Post("/pipeline", append(form(page), "do", page.Find(`[data-preset="aggressive"]`).AttrOr("value", ""))...)
	bar := page.Text("[data-changes]")
	for _, want := range []string{"ipc.preserveTokens 22000 → 9000", "rehydrator.maxRehydrated 5 → 3", "ipc.targetUtilization 0.80 → 0.50"} {
		if !strings.Contains(bar, want) {
			t.Errorf("the bar lacks %q: %s", want, bar)
		}
	}
	person.Post("/pipeline", form(page)...)
	if _, config := saved(t, person); pipeline.SettingsOf[ipc.Config](config).PreserveTokens != 9000 || pipeline.SettingsOf[rehydrator.Config](config).MaxRehydrated != 3 || pipeline.SettingsOf[ipc.Config](config).TargetUtilization != 0.5 {
		t.Errorf("saved %d, %d and %v", pipeline.SettingsOf[ipc.Config](config).PreserveTokens, pipeline.SettingsOf[rehydrator.Config](config).MaxRehydrated, pipeline.SettingsOf[ipc.Config](config).TargetUtilization)
	}
	viewer := person.As(tenants.Viewer).Get("/pipeline")
	if viewer.Find(`a[data-choose="rehydrator"]`).AttrOr("href", "") != "/pipeline?module=rehydrator" {
		t.Error("who may not change the pipeline cannot look at another module")
	}
}
