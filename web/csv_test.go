package web_test

import (
	"encoding/csv"
	"net/http"
	"strings"
	"testing"
	"time"

	"palimpsest/tenants"
	"palimpsest/web/webtest"
)

// rowsOf returns the rows of a file of CSV, its heading first.
func rowsOf(t *testing.T, page webtest.Page) [][]string {
	t.Helper()
	if kind, as := page.Header.Get("Content-Type"), page.Header.Get("Content-Disposition"); page.Status != http.StatusOK ||
		kind != "text/csv; charset=utf-8" || !strings.HasPrefix(as, `attachment; filename="palimpsest-`) {
		t.Fatalf("%s: status %d, %q, %q", page.Path, page.Status, kind, as)
	}
	rows, err := csv.NewReader(strings.NewReader(page.HTML)).ReadAll()
	if err != nil {
		t.Fatalf("%s: %v", page.Path, err)
	}
	return rows
}

// Beside a table stands the file of it, with as many rows, in UTC; a name that a
// spreadsheet would compute is text there.
func TestEveryTableHasItsFileBesideIt(t *testing.T) {
	t.Parallel()
	const formula = "=HYPERLINK(1)"
	product := webtest.Start(t)
	operator := product.SignUp(t, "northbeam")
	operator.Colleague(tenants.Viewer)
	operator.Post("/members/invite", "email", "pending@example.com", "role", "member")
	operator.Post("/keys", "name", formula, "expiry", "30")
	operator.Post("/providers", "provider", "anthropic", "name", formula, "key", webtest.ProviderKey)
	operator.Post("/patterns", "kind", "convention", "text", formula)
	operator.Post("/patterns", "kind", "convention", "text", "We use pnpm here, not npm.")
	operator.Post("/pipeline/windows", "model", formula, "window_tokens", "200000")
	operator.Post("/workspaces", "workspace", formula)
	operator.Post("/workspaces/" + operator.Workspace.ID.String() + "/enter")
	other := product.SignUp(t, "zebra")
	operator.Post("/operator/workspaces/"+other.Workspace.ID.String()+"/suspend", "reason", formula, "confirm", "zebra")
	owner := "northbeam@example.com"
	for _, c := range []struct {
		page, rows string // and what of the page a row is
		file       string // where it leads
		guarded    string // what no spreadsheet may compute; empty if nothing of it is typed by people
		holds      []string
	}{
		{"/keys", `[data-testid="keys"] tbody tr`, "/keys/csv", formula, []string{owner, "active", "workspace", "proxy"}},
		{"/providers", `[data-testid="providers"] > li`, "/providers/csv", formula, []string{"Anthropic", "…" + webtest.ProviderKey[len(webtest.ProviderKey)-4:]}},
		{"/members", `[data-testid="members"] tbody tr`, "/members/csv", "", []string{owner, "owner", "viewer"}},
		{"/members", `[data-testid="invitations"] > li`, "/members/invitations/csv", "", []string{"pending@example.com", owner, "member"}},
		{"/patterns", `[data-testid="rules"] tbody tr`, "/patterns/csv", formula, []string{"We use pnpm here, not npm.", "convention", "approved"}},
		{"/pipeline", `[data-testid="windows"] tbody tr`, "/pipeline/windows/csv", formula, []string{"200000"}},
		{"/operator", `[data-testid="workspaces"] tbody tr`, "/operator/csv", formula, []string{"zebra", "suspended", "active"}},
		{"/operator?q=northbeam", `[data-testid="workspaces"] tbody tr`, "/operator/csv?q=northbeam", formula, []string{owner}},
		{"/operator", `[data-testid="log"] > li`, "/operator/log/csv", formula, []string{"workspace.suspended", "zebra", owner}},
	} {
		page := operator.Get(c.page)
		if link := page.Find(`a[download][href="` + c.file + `"]`); link.Length() != 1 || !strings.HasPrefix(link.AttrOr("aria-label", ""), "CSV: ") {
			t.Errorf("%s leads %d times to %s", c.page, link.Length(), c.file)
		}
		file := operator.Get(c.file, "Cookie", "zone=Asia%2FKolkata")
		rows, shown := rowsOf(t, file), page.Find(c.rows).Length()
		if shown == 0 || len(rows) != shown+1 {
			t.Errorf("%s has %d rows and %s %d", c.page, shown, c.file, len(rows)-1)
		}
		cells := map[string]bool{}
		for _, row := range rows[1:] {
			for i, cell := range row {
				cells[cell] = true
				if cell != "" && strings.ContainsAny(cell[:1], "=+-@") {
					t.Errorf("%s: a spreadsheet computes %q", c.file, cell)
				}
				if _, err := time.Parse("2006-01-02T15:04:05Z", cell); strings.HasSuffix(rows[0][i], "_at") && cell != "" && err != nil {
					t.Errorf("%s: %s is %q", c.file, rows[0][i], cell)
				}
			}
		}
		if c.guarded != "" {
			c.holds = append(c.holds, "'"+c.guarded)
		}
		for _, want := range c.holds {
			if !cells[want] {
				t.Errorf("%s lacks %q: %v", c.file, want, rows)
			}
		}
	}
	if file := operator.Get("/providers/csv"); strings.Contains(file.HTML, webtest.ProviderKey) {
		t.Error("the file of provider keys holds a secret")
	}
}

// A table without rows has no file beside it, and one that is asked for all the same has a
// heading.
func TestNoFileIsOfferedOfAnEmptyTable(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	for page, file := range map[string]string{
		"/keys": "/keys/csv", "/providers": "/providers/csv", "/patterns": "/patterns/csv", "/pipeline": "/pipeline/windows/csv", "/members": "/members/invitations/csv",
	} {
		if person.Get(page).Has(`a[href^="` + file + `"]`) {
			t.Errorf("%s leads to a file of nothing", page)
		}
		if rows := rowsOf(t, person.Get(file)); len(rows) != 1 {
			t.Errorf("%s has %d rows", file, len(rows))
		}
	}
}

// A page whose figures are those of a moment says which.
func TestPagesSayWhenTheirFiguresWereRead(t *testing.T) {
	t.Parallel()
	product := webtest.Start(t)
	person := product.SignUp(t, "northbeam")
	person.TalkOnce(person.Connect(webtest.Provider(t, window), "laptop"), window, "/v1/messages",
		`{"model":"claude-sonnet-4-5","max_tokens":100,"messages":[{"role":"user","content":"Why does the webhook answer 409?"}]}`, claudeCode)
	for _, path := range []string{
		"/overview", "/spend", "/sessions", "/sessions/" + person.Newest().ID.String(), "/requests", "/pipeline", "/patterns", "/keys", "/providers", "/members", "/billing", "/audit", "/operator",
	} {
		page := person.Get(path)
		if said := page.Text(`[data-testid="updated"] .no-js`); page.Find(`.head [data-updated]`).Length() != 1 || !strings.HasPrefix(said, "read ") {
			t.Errorf("%s says %q", path, said)
		}
	}
}
