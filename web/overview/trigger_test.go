package overview_test

import (
	"strings"
	"testing"
	"time"

	"palimpsest/pipeline"
	"palimpsest/pipeline/preview"
	"palimpsest/pipeline/preview/previewdb"
	"palimpsest/tenants"
	"palimpsest/web/webtest"
)

// advise keeps advice for a person's workspace, which has had a request.
func advise(t *testing.T, person *webtest.Person, advice preview.Advice) {
	t.Helper()
	record(t, person, exchange(time.Now().Add(-time.Minute), same))
	advice.MadeAt, advice.Since = time.Now(), time.Now().Add(-preview.AdviceSpan)
	if err := previewdb.New(person.DB).KeepAdvice(t.Context(), person.Workspace.ID, advice); err != nil {
		t.Fatal(err)
	}
}

func TestOtherTriggerIsSetAgainstTheChosenOneUntilDismissed(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	advise(t, person, preview.Advice{
		Trigger: pipeline.TriggerWindow, Sessions: 40, Received: 1000, Verbatim: 1000, OtherVerbatim: 410, Cost: 20_000_000, OtherCost: 7_000_000,
	})

	page := person.Get("/overview")
	said := page.TestID("trigger-advice")
	for _, want := range []string{
		"In the last 30 days “Spend less” would have saved $13.00 (65.0% of what prompts cost)", "replayed from your 40 sessions of that time",
		"word for word instead of 100", "41.0%",
	} {
		if !strings.Contains(said, want) {
			t.Errorf("the advice lacks %q: %s", want, said)
		}
	}
	if link := page.Find(`[data-testid="trigger-advice"] a`).AttrOr("href", ""); link != "/pipeline?module=ipc#field-ipc-minContext" {
		t.Errorf("it leads to %q", link)
	}
	dismiss := page.Find(`[data-testid="trigger-advice"] form`).AttrOr("action", "")
	if person.Post(dismiss); person.Get("/overview").Has(`[data-testid="trigger-advice"]`) {
		t.Error("it stands there after it was dismissed")
	}
	advise(t, person, preview.Advice{
		Trigger: pipeline.TriggerWindow, Sessions: 40, Received: 1000, Verbatim: 1000, OtherVerbatim: 410, Cost: 30_000_000, OtherCost: 7_000_000,
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
		Trigger: pipeline.TriggerBreakEven, Sessions: 100, HasMore: true, Received: 1000, Verbatim: 410, OtherVerbatim: 1000, Cost: 7_000_000, OtherCost: 20_000_000,
	}
	advise(t, person, advice)
	if page := person.Get("/overview"); page.Has(`[data-testid="trigger-advice"]`) {
		t.Errorf("about a trigger that is not set: %s", page.TestID("trigger-advice"))
	}
	spendLess := tenants.PipelineConfig{YAML: "ipc:\n  trigger: break-even\n", SavedBy: person.User.ID}
	if _, err := product.DB.SavePipeline(t.Context(), person.Workspace.ID, 0, spendLess); err != nil {
		t.Fatal(err)
	}
	said := person.Get("/overview").TestID("trigger-advice")
	for _, want := range []string{"“Only near the limit” would have cost $13.00", "more of what prompts cost", "your newest 100 sessions"} {
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
