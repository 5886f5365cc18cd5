package walks_test

import (
	"testing"

	"palimpsest/pipeline/fulltest"
	"palimpsest/web/browsertest"
	"palimpsest/web/webtest"
)

// The parts of Settings are one click from each other.
func TestPartsOfSettingsAreTabs(t *testing.T) {
	t.Parallel()
	fulltest.Turn(t, 4)
	product := webtest.Start(t)
	person := product.SignUp(t, "northbeam")
	person.Post("/settings/budgets", "whose", "workspace", "budget_day_usd", "25", "budget_month_usd", "400")
	person.Post("/settings/budgets", "whose", "end_user", "budget_day_usd", "0.5", "requests_per_minute", "6", "tokens_per_minute", "9000")
	person.Post("/settings/prices", "model", "anthropic/claude-sonnet-4-5", "input", "2.5", "output", "12.5", "cache_read", "0.25")
	person.Post("/settings/prices", "model", "local/llama", "input", "0", "output", "0")
	tab := browsertest.Start(t).Open(t, browsertest.View{URL: product.URL, Theme: "light", Cookies: person.Cookies()})
	tab.Go("/overview")
	tab.Click(`.nav a[href="/settings"]`)
	for path, name := range map[string]string{"/settings/alerts": "alerts", "/billing": "billing", "/settings/sign-on": "sign-on", "/settings": "general"} {
		tab.Click(`main .tabs a[href="` + path + `"]`)
		tab.Until(browsertest.At(path) + ` && document.querySelector('main .tabs [aria-current="page"]').getAttribute('href') === '` + path + `'`)
		tab.CheckLooks("settings tabs " + name)
	}
}
