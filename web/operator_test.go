package web_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"palimpsest/tenants"
	"palimpsest/tenants/tenantsdb"
	"palimpsest/web"
	"palimpsest/web/webtest"
)

// No operator reads what was said in a workspace that is not theirs, nor its names and
// keys: through no route there is, whatever id stands in its path. Of their own pages
// they see its name, its owner's address and figures.
func TestNoOperatorReadsWhatWasSaid(t *testing.T) {
	t.Parallel()
	product := webtest.Start(t, webtest.MailsAreSent) // else the person who works on the machine reads them
	operator, theirs := product.SignUp(t, "first"), newTenant(t, product, "zebra")
	if !operator.Get("/operator").Has(`[data-testid="workspaces"]`) {
		t.Fatal("the first person operates nothing")
	}
	if page := theirs.Get("/sessions/" + theirs.session); !strings.Contains(page.HTML, "a question from zebra") {
		t.Fatalf("nothing was said that could be read: %s", page.Text("main"))
	}
	suspend := strings.NewReplacer(":id", theirs.Workspace.ID.String(), ":secret", "x")
	reaches, tried := reaches(), 0
	for _, route := range product.Routes {
		try := reaches[route.Method+" "+route.Path]
		if try.ends || try.streams || route.Method != http.MethodGet && route.Method != http.MethodPost {
			continue
		}
		path := suspend.Replace(route.Path)
		if try.path != nil {
			path = try.path(theirs)
		}
		page := operator.Get(path)
		if route.Method == http.MethodPost {
			page = operator.Post(path, "reason", "why", "confirm", "x")
		}
		tried++
		for _, said := range []string{"a question from", "pending-zebra", theirs.session, theirs.key, theirs.provider, theirs.viewer} {
			if strings.Contains(page.HTML, said) && !strings.Contains(path, said) {
				t.Errorf("%s %s shows %q", route.Method, path, said)
			}
		}
	}
	if tried < 60 {
		t.Errorf("only %d routes were tried", tried)
	}
	if again := operator.Get("/operator"); again.Path != "/operator" {
		t.Errorf("the operator was logged out on the way, so the test proves less: %s", again.Path)
	}
}

// Who is suspended is told why on every page that is refused, and finds it in the audit
// log once the workspace is back; the operator's name stands in neither.
func TestSuspensionIsInTheWorkspacesOwnLog(t *testing.T) {
	t.Parallel()
	product := webtest.Start(t)
	operator, other := product.SignUp(t, "first"), product.SignUp(t, "second")
	below := "/operator/workspaces/" + other.Workspace.ID.String()
	operator.Post(below+"/suspend", "reason", "sends spam", "confirm", "second")
	product.People.Forget() // as the notification does
	if page := other.Get("/audit"); page.Status != http.StatusForbidden || !strings.Contains(page.Text("main"), "sends spam") || strings.Contains(page.HTML, "first@example.com") {
		t.Errorf("while it is suspended: status %d: %s", page.Status, page.Text("main"))
	}
	operator.Post(below+"/resume", "reason", "mended", "confirm", "second")
	product.People.Forget()
	page := other.Get("/audit")
	for _, want := range []string{"suspended the workspace", "resumed the workspace", "sends spam", "mended", "operator"} {
		if !strings.Contains(page.Text("main"), want) {
			t.Errorf("the log does not hold %q: %s", want, page.Text("main"))
		}
	}
	if strings.Contains(page.HTML, "first@example.com") {
		t.Error("the log names the operator")
	}
}

// trusting is a store that takes anyone for the operator.
type trusting struct {
	tenantsdb.Operators

	operator uuid.UUID
}

// OperatedWorkspaces implements tenants.Operators.
func (s *trusting) OperatedWorkspaces(ctx context.Context, _ uuid.UUID, query tenants.OperatedQuery) ([]tenants.OperatedWorkspace, error) {
	return s.Operators.OperatedWorkspaces(ctx, s.operator, query)
}

// OperatedWorkspace implements tenants.Operators.
func (s *trusting) OperatedWorkspace(ctx context.Context, _ uuid.UUID, workspace tenants.WorkspaceID) (tenants.OperatedWorkspace, error) {
	return s.Operators.OperatedWorkspace(ctx, s.operator, workspace)
}

// SuspendWorkspace implements tenants.Operators.
func (s *trusting) SuspendWorkspace(ctx context.Context, _ uuid.UUID, workspace tenants.WorkspaceID, reason string) error {
	return s.Operators.SuspendWorkspace(ctx, s.operator, workspace, reason)
}

// ResumeWorkspace implements tenants.Operators.
func (s *trusting) ResumeWorkspace(ctx context.Context, _ uuid.UUID, workspace tenants.WorkspaceID, reason string) error {
	return s.Operators.ResumeWorkspace(ctx, s.operator, workspace, reason)
}

// OperatorLog implements tenants.Operators.
func (s *trusting) OperatorLog(ctx context.Context, _ uuid.UUID, limit int) ([]tenants.OperatorEntry, error) {
	return s.Operators.OperatorLog(ctx, s.operator, limit)
}

// S3: the operators' pages are closed to others by the dashboard too, not by the database alone.
func TestOperatorsPagesAreClosedToOthersWithoutTheDatabase(t *testing.T) {
	t.Parallel()
	store := &trusting{}
	product := webtest.Start(t, func(p *webtest.Product, deps *web.Deps) {
		store.Operators, deps.Installation.Operator = p.DB.Operators, store
	})
	operator, owner := product.SignUp(t, "first"), newTenant(t, product, "zebra")
	store.operator = operator.User.ID
	tried := 0
	for _, route := range product.Routes {
		try := reaches()[route.Method+" "+route.Path]
		if !try.operates {
			continue
		}
		tried++
		if page := through(owner.Person, route, try, owner); page.Status != http.StatusNotFound || strings.HasPrefix(page.Path, "/operator?") {
			t.Errorf("%s %s: status %d at %s", route.Method, route.Path, page.Status, page.Path)
		}
		if page := through(operator, route, try, owner); page.Status != http.StatusOK {
			t.Errorf("%s %s by the operator: status %d", route.Method, route.Path, page.Status)
		}
	}
	if tried != 7 {
		t.Errorf("%d routes were tried", tried)
	}
}
