package web_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/PuerkitoBio/goquery"

	"palimpsest/web/paths"
	"palimpsest/web/webtest"
)

// A card whose part of the database fails says so, with a reference and a way to try
// again, and says nothing of the database; the page and its other cards stay.
func TestFailedCardLeavesThePage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		broken string // what becomes of the database
		path   string
		cards  []string // that say they did not load
		stays  string   // of the page
	}{
		{"ALTER TABLE exchanges RENAME TO gone", "/overview", []string{"The list of problems"}, `[data-testid="card-money"]`},
		{"ALTER TABLE sessions RENAME TO gone", "/overview", []string{"The list of problems"}, `[data-testid="ledger"]`},
		{"ALTER TABLE provider_keys RENAME TO gone", "/overview", []string{"The list of problems"}, `[data-testid="ledger"]`},
		{"ALTER TABLE workspaces RENAME COLUMN retention_days TO gone", "/settings", []string{"Retention"}, `form[action="/settings"]`},
		{"ALTER TABLE workspaces RENAME COLUMN viewers_read TO gone", "/settings", []string{"Who can read conversations", "Export"}, `form[action="/settings/retention"]`},
		{"ALTER FUNCTION operator_workspaces RENAME TO gone", "/operator", []string{"The workspaces"}, `[data-testid="health"]`},
		{"ALTER FUNCTION operator_log RENAME TO gone", "/operator", []string{"The log"}, `[data-testid="workspaces"]`},
		{"ALTER TABLE sessions RENAME TO gone", "/sessions?client=claude-code&range=24h", []string{"The sessions"}, `form.find input[name="client"][value="claude-code"]`},
		{"ALTER VIEW rollups_now RENAME TO gone", "/spend", []string{"Spend"}, `[data-testid="spend-total"]`},
		{"ALTER TABLE api_keys RENAME TO gone", "/sessions?show=single", []string{"Counts and comments"}, `[data-testid="sessions"]`},
	} {
		t.Run(c.path+" without "+c.broken, func(t *testing.T) {
			t.Parallel()
			person := webtest.Start(t).SignUp(t, "northbeam")
			person.TalkOnce(person.Connect(webtest.Provider(t, window), "laptop"), window, "/v1/messages",
				`{"model":"claude-sonnet-4-5","max_tokens":100,"messages":[{"role":"user","content":"Why does the webhook answer 409?"}]}`, claudeCode)
			if page := person.Get(c.path); page.Status != http.StatusOK || page.Has(`[data-testid="failed"]`) || !page.Has(c.stays) {
				t.Fatalf("before: status %d: %s", page.Status, page.Text("main"))
			}
			if _, err := person.Database.Owner(t).Exec(t.Context(), c.broken); err != nil {
				t.Fatal(err)
			}
			page := person.Get(c.path)
			if page.Status != http.StatusOK || !page.Has(c.stays) {
				t.Errorf("status %d: %s", page.Status, page.Text("main"))
			}
			for _, card := range c.cards {
				if !strings.Contains(page.TestID("failed"), card+" did not load") {
					t.Errorf("%q is not among the cards that failed: %q", card, page.TestID("failed"))
				}
			}
			page.Find(`[data-testid="failed"]`).Each(func(_ int, failed *goquery.Selection) {
				if retry := failed.Find("a").AttrOr("href", ""); !strings.HasPrefix(retry, c.path) || !strings.Contains(failed.Text(), "Reference ") {
					t.Errorf("%q tries again at %q", failed.Text(), retry)
				}
				if card := failed.Closest("section").Text(); strings.Contains(card, "$0.00") || strings.Contains(card, "0.0%") {
					t.Errorf("zero stands for what did not load: %q", card)
				}
			})
			if strings.Contains(page.HTML, "SQLSTATE") || strings.Contains(page.HTML, "does not exist") {
				t.Error("the page tells of the database")
			}
		})
	}
}

// A part that comes after its page and fails says so in its place, without a page around it.
func TestFailedPartIsNoPage(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	if _, err := person.Database.Owner(t).Exec(t.Context(), "ALTER TABLE exchanges RENAME TO gone"); err != nil {
		t.Fatal(err)
	}
	page := person.Get(paths.FirstRequestBare, "HX-Request", "true", "HX-Request-Type", "partial")
	if page.Status != http.StatusInternalServerError || page.Has("nav") || page.Has("h1") || !strings.Contains(page.TestID("problem"), "Reference ") {
		t.Errorf("status %d: %.500s", page.Status, page.HTML)
	}
}
