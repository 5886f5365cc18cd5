package pages_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"palimpsest"
	"palimpsest/pipeline/modules/ipc"
	"palimpsest/pipeline/preview"
	"palimpsest/pipeline/preview/previewdb"
	"palimpsest/tenants"
	"palimpsest/web/webtest"
)

// advise keeps advice for a person's workspace, which has had a request.
func advise(t *testing.T, person *webtest.Person, advice preview.Advice) {
	t.Helper()
	overviewRecord(t, person, exchange(time.Now().Add(-time.Minute), same))
	advice.MadeAt, advice.Since = time.Now(), time.Now().Add(-preview.AdviceSpan)
	if err := previewdb.New(person.DB).KeepAdvice(t.Context(), person.Workspace.ID, advice); err != nil {
		t.Fatal(err)
	}
}

func TestOtherTriggerIsSetAgainstTheChosenOneUntilDismissed(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	advise(t, person, preview.Advice{
		Trigger: ipc.TriggerWindow, Sessions: 40, Received: 1000, Verbatim: 1000, OtherVerbatim: 410, Cost: 20_000_000, OtherCost: 7_000_000,
	})

	page := person.Get("/overview")
	said := page.TestID("trigger-advice")
	for _, want := range []string{
		"In the last 30 days “As soon as it saves money” would have cost $13.00 less than “Only near the limit”, your setting (65.0% of the cost of prompts)", "replayed from your 40 sessions of that time",
		"word for word instead of 100", "41.0%",
	} {
		if !strings.Contains(said, want) {
			t.Errorf("the advice lacks %q: %s", want, said)
		}
	}
	if link := page.Find(`[data-testid="trigger-advice"] a`).AttrOr("href", ""); link != "/pipeline?module=ipc#field-ipc-trigger" || !person.Get("/pipeline?module=ipc").Has("#field-ipc-trigger") {
		t.Errorf("it leads to %q", link)
	}
	dismiss := page.Find(`[data-testid="trigger-advice"] form`).AttrOr("action", "")
	if person.Post(dismiss); person.Get("/overview").Has(`[data-testid="trigger-advice"]`) {
		t.Error("it stands there after it was dismissed")
	}
	advise(t, person, preview.Advice{
		Trigger: ipc.TriggerWindow, Sessions: 40, Received: 1000, Verbatim: 1000, OtherVerbatim: 410, Cost: 30_000_000, OtherCost: 7_000_000,
	})
	if person.Get("/overview").Has(`[data-testid="trigger-advice"]`) {
		t.Error("it is back a day after it was dismissed")
	}
}

func TestWorkspaceThatSpendsLessReadsWhatTheLimitWouldHaveCost(t *testing.T) {
	t.Parallel()
	product := webtest.Start(t)
	person := product.SignUp(t, "northbeam")
	advice := preview.Advice{
		Trigger: ipc.TriggerBreakEven, Sessions: 100, HasMore: true, Received: 1000, Verbatim: 410, OtherVerbatim: 1000, Cost: 7_000_000, OtherCost: 20_000_000,
	}
	advise(t, person, advice)
	if page := person.Get("/overview"); page.Has(`[data-testid="trigger-advice"]`) {
		t.Errorf("about a trigger that is not set: %s", page.TestID("trigger-advice"))
	}
	spendLess := tenants.PipelineConfig{YAML: "ipc:\n  trigger: break-even\n", SavedBy: person.User.ID}
	if _, err := product.DB.Pipelines.SavePipeline(t.Context(), person.Workspace.ID, 0, spendLess); err != nil {
		t.Fatal(err)
	}
	said := person.Get("/overview").TestID("trigger-advice")
	for _, want := range []string{"“Only near the limit” would have cost $13.00 more than “As soon as it saves money”, your setting (185.7% of the cost of prompts)", "your newest 100 sessions"} {
		if !strings.Contains(said, want) {
			t.Errorf("the advice lacks %q: %s", want, said)
		}
	}
	advice.Sessions = 4
	advise(t, person, advice)
	if page := person.Get("/overview"); page.Has(`[data-testid="trigger-advice"]`) {
		t.Errorf("from four sessions: %s", page.TestID("trigger-advice"))
	}
}

// holds returns the label of the trigger that the set-up card says is selected.
func holds(page webtest.Page) string {
	return page.Text(`[data-testid="trigger"] li.on b`)
}

func TestNewWorkspaceChoosesWhenToCompressWithOneClick(t *testing.T) {
	t.Parallel()
	product := webtest.Start(t)
	person := product.SignUp(t, "northbeam")

	page := person.Get("/overview")
	if got := holds(page); got != "Only near the limit" {
		t.Errorf("at first %q is selected", got)
	}
	card := page.TestID("trigger")
	bench, err := palimpsest.Docs.ReadFile("docs/compaction-bench.md")
	if err != nil || !strings.Contains(string(bench), "| break-even above 50k | -66.3 % | -65.2 % | 97.06 % of 17489 |") || !strings.Contains(card, "65.2 % less") || !strings.Contains(card, "97.1 % of the names") {
		t.Errorf("the figures of both ways are not those of the bench, %v: %s", err, card)
	}
	for _, want := range []string{"sees every turn word for word", "As soon as it saves money", "old turns in shorter forms", "Choose"} {
		if !strings.Contains(card, want) {
			t.Errorf("the card lacks %q: %s", want, card)
		}
	}
	form := page.Find(`[data-testid="trigger"] form`)
	button := form.Find("button")
	person.Post(form.AttrOr("action", ""), button.AttrOr("name", ""), button.AttrOr("value", ""))
	if got := holds(person.Get("/overview")); got != "As soon as it saves money" {
		t.Errorf("after one click %q is selected", got)
	}
	saved, err := product.DB.Pipelines.Pipeline(t.Context(), person.Workspace.ID)
	if err != nil || saved.Version != 1 || saved.YAML != "ipc:\n  trigger: break-even\n" || saved.SavedBy != person.User.ID {
		t.Errorf("saved %+v, %v", saved, err)
	}
	entries, err := product.DB.Audit.Audit(t.Context(), person.Workspace.ID, tenants.AuditFilter{Limit: 1})
	if err != nil || len(entries) != 1 || entries[0].Action != tenants.PipelineSaved {
		t.Errorf("noted %+v, %v", entries, err)
	}

	person.Post("/overview/choose", "trigger", "break-even")
	if again, _ := product.DB.Pipelines.Pipeline(t.Context(), person.Workspace.ID); again.Version != 1 {
		t.Errorf("the same choice saved version %d", again.Version)
	}
	person.Post("/overview/choose", "trigger", "window")
	if back, _ := product.DB.Pipelines.Pipeline(t.Context(), person.Workspace.ID); back.Version != 2 || back.YAML != "" {
		t.Errorf("back at the default: %+v", back)
	}
	if wrong := person.Post("/overview/choose", "trigger", "never"); wrong.Status != http.StatusBadRequest {
		t.Errorf("a trigger that does not exist: status %d", wrong.Status)
	}
}

func TestChoiceKeepsWhatElseIsSet(t *testing.T) {
	t.Parallel()
	product := webtest.Start(t)
	person := product.SignUp(t, "northbeam")
	set := tenants.PipelineConfig{Modules: "ipc", YAML: "# ours\nipc:\n  minClear: 0.2\n", SavedBy: person.User.ID}
	if _, err := product.DB.Pipelines.SavePipeline(t.Context(), person.Workspace.ID, 0, set); err != nil {
		t.Fatal(err)
	}
	person.Post("/overview/choose", "trigger", "break-even")
	saved, err := product.DB.Pipelines.Pipeline(t.Context(), person.Workspace.ID)
	if err != nil || saved.YAML != "# ours\nipc:\n  minClear: 0.2\n  trigger: break-even\n" || saved.Modules != "ipc" {
		t.Errorf("saved %+v, %v", saved, err)
	}
}

// Whose earlier sessions come back is chosen at set-up, for all modules that bring text back.
func TestScopeOfMemoryIsChosenAtSetUp(t *testing.T) {
	t.Parallel()
	product := webtest.Start(t)
	person := product.SignUp(t, "northbeam")
	chosen := func() string { return person.Get("/overview").Text(`[data-testid="memory"] li.on b`) }
	if got := chosen(); got != "In the same session" {
		t.Errorf("at first %q is selected", got)
	}
	person.Post("/overview/choose", "memory", "person")
	if got := chosen(); got != "In all sessions of the person" {
		t.Errorf("after the choice %q is selected", got)
	}
	saved, err := product.DB.Pipelines.Pipeline(t.Context(), person.Workspace.ID)
	if err != nil || saved.YAML != "compaction-bridge:\n  scope: person\nrehydrator:\n  scope: person\n" {
		t.Errorf("saved %+v, %v", saved, err)
	}
	if wrong := person.Post("/overview/choose", "memory", "workspace"); wrong.Status != http.StatusBadRequest {
		t.Errorf("a scope that set-up does not offer: status %d", wrong.Status)
	}
}

// A workspace from before the narrower default reads about it until someone chooses a scope.
func TestNarrowerScopeOfMemoryNeedsAttention(t *testing.T) {
	t.Parallel()
	product := webtest.Start(t)
	person := product.SignUp(t, "northbeam")
	overviewRecord(t, person, exchange(time.Now().Add(-time.Minute), same))
	set := tenants.PipelineConfig{Modules: "ipc,rehydrator", SavedBy: person.User.ID}
	if _, err := product.DB.Pipelines.SavePipeline(t.Context(), person.Workspace.ID, 0, set); err != nil {
		t.Fatal(err)
	}
	attention := func() string { return person.Get("/overview").TestID("attention") }
	if got := attention(); strings.Contains(got, "Memory stays") {
		t.Errorf("a new workspace is told: %s", got)
	}
	if _, err := product.Database.Owner(t).Exec(t.Context(), "UPDATE workspaces SET memory_narrowed_at = now() - interval '29 days'"); err != nil {
		t.Fatal(err)
	}
	if got := attention(); !strings.Contains(got, "Memory stays inside its session now") {
		t.Errorf("an older workspace is not told: %s", got)
	}
	person.Post("/overview/choose", "memory", "person")
	if got := attention(); strings.Contains(got, "Memory stays") {
		t.Errorf("after a choice: %s", got)
	}
}

func TestMemberSeesWhichTriggerHolds(t *testing.T) {
	t.Parallel()
	product := webtest.Start(t)
	person := product.SignUp(t, "northbeam")
	viewer := person.Colleague(tenants.Viewer)
	page := viewer.Get("/overview")
	if got := holds(page); got != "Only near the limit" || page.Find(`[data-testid="trigger"] form`).Length() != 0 {
		t.Errorf("a viewer sees %q as selected: %s", got, page.TestID("trigger"))
	}
	if refused := viewer.Post("/overview/choose", "trigger", "break-even"); refused.Status != http.StatusForbidden {
		t.Errorf("a viewer may choose: status %d", refused.Status)
	}
	if saved, err := product.DB.Pipelines.Pipeline(t.Context(), person.Workspace.ID); err != nil || saved.Version != 0 {
		t.Errorf("saved %+v, %v", saved, err)
	}
}
