package pages_test

import (
	"strings"
	"testing"
	"time"

	"palimpsest/api/upstream/providerdouble"
	"palimpsest/api/upstream/providertest"
	"palimpsest/tenants"
	"palimpsest/web/webtest"
)

// People are told in time that a model ends which they use, with the days of the catalog; models
// that nobody uses, and those that end much later, are not mentioned.
func TestOverviewNamesModelsThatEnd(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	today := time.Now().UTC().Truncate(24 * time.Hour)
	on := func(days int) string { return today.AddDate(0, 0, days).Format(time.DateOnly) }
	row := func(name, members string) string {
		return `{"name":"` + name + `","family":"f","provider":"openai","window":100000,"source":"s","date":"2026-01-01"` + members + `}`
	}
	catalog := `{"version":1,"date":"` + on(400) + `","sources":{"s":"https://example.com"},"prefixes":["openai"],"tools":[],"models":[` + strings.Join([]string{
		row("gpt-5.4", `,"ends":"`+on(20)+`","successor":"gpt-5.5"`), row("gpt-5.5", `,"ends":"`+on(300)+`"`),
		row("gpt-4.1", `,"ends":"`+on(-3)+`"`), row("gpt-4o", `,"ends":"`+on(5)+`"`),
	}, ",") + `]}`
	if err := person.Models.Replace([]byte(catalog)); err != nil {
		t.Fatal(err)
	}
	secret := person.Connect(providertest.NewServer(t, providerdouble.Config{}), "laptop")
	for _, model := range []string{"gpt-5.4-2026-03-05", "gpt-5.4", "gpt-4.1", "gpt-5.5"} {
		body := `{"model":"` + model + `","messages":[{"role":"user","content":"Hello from ` + model + `."}]}`
		person.TalkOnce(secret, 100_000, "/v1/chat/completions", body, "codex")
	}
	said := person.Get("/overview").TestID("attention")
	for _, part := range []string{
		"2 sessions of the last 7 days used a model that ends on " + today.AddDate(0, 0, 20).Format("2 Jan 2006"), "refuses requests for gpt-5.4", "It recommends gpt-5.5.",
		"1 session of the last 7 days used a model that ended on " + today.AddDate(0, 0, -3).Format("2 Jan 2006"),
	} {
		if !strings.Contains(said, part) {
			t.Errorf("%q is not said: %s", part, said)
		}
	}
	if strings.Contains(said, "gpt-4o") || strings.Contains(said, "refuses requests for gpt-5.5") {
		t.Errorf("what nobody has to know is said: %s", said)
	}
	page := person.Get("/overview")
	if !page.Has(`[data-testid="attention"] a[href="/sessions?model=gpt-5.4"]`) {
		t.Error("no link leads to the sessions")
	}
	if colleague := person.Colleague(tenants.Billing).Get("/overview"); colleague.Has(`main a[href^="/sessions"]`) {
		t.Error("a link leads where the person may not go")
	}
}
