package web_test

import (
	"net/http"
	"strings"
	"testing"

	"palimpsest/tenants"
	"palimpsest/web/webtest"
)

// S3: a shared link says which other workspace of the person has the page, if they may open it
// there: by their role there, and unless that workspace is suspended.
func TestSharedLinkNamesOnlyWhereItMayBeOpened(t *testing.T) {
	t.Parallel()
	product := webtest.Start(t)
	product.SignUp(t, "first") // operates the installation
	of, person := newTenant(t, product, "zebrafinch"), product.SignUp(t, "mira")
	sql := func(statement string, values ...any) {
		t.Helper()
		if _, err := product.Database.Owner(t).Exec(t.Context(), statement, values...); err != nil {
			t.Fatal(err)
		}
		product.People.Forget()
	}
	sql("INSERT INTO members (workspace_id, user_id, role) VALUES ($1, $2, 'billing')", of.Workspace.ID, person.User.ID)
	leads := func(when string, want map[string]bool) {
		t.Helper()
		for path, named := range want {
			page := person.Get(path)
			if page.Status != http.StatusNotFound || page.Has(`[data-testid="elsewhere"]`) != named || strings.Contains(page.Text("main"), "zebrafinch") != named {
				t.Errorf("%s, %s: %d, %q", when, path, page.Status, page.Text("main"))
			}
		}
	}
	session, request := "/sessions/"+of.session, "/requests/"+of.request
	leads("with the role billing", map[string]bool{session: false, request: true})
	sql("UPDATE members SET role = $1 WHERE workspace_id = $2 AND user_id = $3", string(tenants.Viewer), of.Workspace.ID, person.User.ID)
	leads("with the role viewer, who sees only their own", map[string]bool{session: false, request: false})
	sql("UPDATE members SET role = $1 WHERE workspace_id = $2 AND user_id = $3", string(tenants.Admin), of.Workspace.ID, person.User.ID)
	leads("with the role admin", map[string]bool{session: true, request: true})
	sql("INSERT INTO suspensions (workspace_id, reason) VALUES ($1, 'sends spam')", of.Workspace.ID)
	leads("while it is suspended", map[string]bool{session: false, request: false})
}
