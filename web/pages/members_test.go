package pages_test

import (
	"net/http"
	"strings"
	"testing"

	"palimpsest/tenants"
	"palimpsest/web/webtest"
)

// S12: a link is shown once, to anyone who invites.
func TestLinkOfAnInvitationIsShownOnce(t *testing.T) {
	t.Parallel()
	owner := webtest.Start(t).SignUp(t, "northbeam")

	invited := owner.Post("/members/invite", "email", "a@example.com, B@example.com; a@example.com", "role", "viewer")
	if invited.Status != http.StatusCreated || !invited.Has("#link-1") || invited.Has("#link-2") {
		t.Fatalf("status %d: %s", invited.Status, invited.Text("dialog"))
	}
	link := invited.Find("#link-0").Text()
	list := owner.Get("/members")
	if strings.Contains(list.HTML, link) || !strings.Contains(list.TestID("invitations"), "b@example.com") {
		t.Errorf("the list says %s", list.TestID("invitations"))
	}
	if early := owner.Post(list.Find(`form[action$="/resend"]`).AttrOr("action", "")); early.Status != http.StatusTooManyRequests || early.TestID("too-soon") == "" {
		t.Errorf("resent at once: %d", early.Status)
	}
	for range 2 {
		owner.Post(owner.Get("/members").Find(`form[action$="/revoke"]`).AttrOr("action", ""))
	}
	if after := owner.Get("/members"); after.TestID("empty") == "" {
		t.Errorf("after both are revoked: %s", after.TestID("invitations"))
	}
}

// S11: the page says when to go on.
func TestManyInvitationsToOneAddressAreSlowedDown(t *testing.T) {
	t.Parallel()
	owner := webtest.Start(t).SignUp(t, "northbeam")
	var last webtest.Page
	for range 11 {
		last = owner.Post("/members/invite", "email", "a@example.com", "role", "viewer")
	}
	if last.Status != http.StatusTooManyRequests || last.Header.Get("Retry-After") == "" || !strings.Contains(last.TestID("error-email"), "Try again in ") {
		t.Errorf("status %d: %s", last.Status, last.TestID("error-email"))
	}
}

func TestInvalidInvitationIsExplainedAtItsField(t *testing.T) {
	t.Parallel()
	owner := webtest.Start(t).SignUp(t, "northbeam")
	for field, form := range map[string][]string{
		"email": {"email", "fine@example.com nobody", "role", "viewer"},
		"role":  {"email", "fine@example.com", "role", "root"},
	} {
		page := owner.Post("/members/invite", form...)
		if page.Status != http.StatusUnprocessableEntity || page.TestID("error-"+field) == "" || page.Find("#field-email").AttrOr("value", "") != form[1] {
			t.Errorf("%s: status %d: %s", field, page.Status, page.Text("dialog"))
		}
	}
	if page := owner.Post("/members/invite", "email", owner.Email, "role", "viewer"); !strings.Contains(page.TestID("error-email"), "is a member already") {
		t.Errorf("a member: %s", page.Text("dialog"))
	}
}

func TestAdminsDoNotReachOwners(t *testing.T) {
	t.Parallel()
	owner := webtest.Start(t).SignUp(t, "northbeam")
	admin := owner.Colleague(tenants.Admin)
	above := "/members/" + owner.User.ID.String()

	if form := admin.Get("/members/invite"); form.Has(`option[value="owner"]`) || !form.Has(`option[value="admin"]`) {
		t.Errorf("an admin may invite to %s", form.Text("#field-role"))
	}
	if list := admin.Get("/members"); list.Has(`a[href^="` + above + `"]`) {
		t.Error("an admin is shown how to change an owner")
	}
	for name, page := range map[string]webtest.Page{
		"invites an owner":  admin.Post("/members/invite", "email", "x@example.com", "role", "owner"),
		"raises themselves": admin.Post("/members/"+admin.User.ID.String()+"/role", "role", "owner"),
		"demotes":           admin.Post(above+"/role", "role", "viewer"),
		"removes":           admin.Post(above+"/remove", "confirm", owner.Email),
	} {
		if page.Status != http.StatusForbidden {
			t.Errorf("an admin %s: status %d", name, page.Status)
		}
	}
	if list := owner.Get("/members"); strings.Contains(list.HTML, "x@example.com") {
		t.Error("the owner is invited all the same")
	}
}

func TestLastOwnerStays(t *testing.T) {
	t.Parallel()
	owner := webtest.Start(t).SignUp(t, "northbeam")
	own := "/members/" + owner.User.ID.String()

	if page := owner.Post(own+"/role", "role", "viewer"); page.Status != http.StatusUnprocessableEntity || !strings.Contains(page.TestID("error-role"), "no owner") {
		t.Errorf("status %d: %s", page.Status, page.TestID("error-role"))
	}
	if page := owner.Post(own+"/remove", "confirm", owner.Email); page.Status != http.StatusConflict {
		t.Errorf("removing themselves: status %d", page.Status)
	}
}

func TestMemberIsRemovedOnceTheirAddressIsTyped(t *testing.T) {
	t.Parallel()
	owner := webtest.Start(t).SignUp(t, "northbeam")
	member := owner.Colleague(tenants.Regular)
	path := "/members/" + member.User.ID.String() + "/remove"
	member.Post("/keys", "name", "hers", "expiry", "")

	if page := owner.Post(path, "confirm", "x"); page.Status != http.StatusUnprocessableEntity || page.TestID("error-confirm") == "" {
		t.Errorf("without the address: %d", page.Status)
	}
	if page := member.Get("/overview"); page.Path != "/overview" {
		t.Errorf("the member was led to %s", page.Path)
	}
	if page := owner.Post(path, "confirm", member.Email); page.Path != "/members?done=removed" || strings.Contains(page.TestID("members"), member.Email) {
		t.Errorf("led to %s", page.Path)
	}
	if page := member.Get("/overview"); !strings.HasPrefix(page.Path, "/login") {
		t.Errorf("the removed member is at %s", page.Path)
	}
	keys, err := owner.DB.APIKeys.APIKeys(tenants.OwnWork(t.Context()), owner.Workspace.ID)
	if err != nil || len(keys) != 1 || keys[0].RevokedAt == nil {
		t.Errorf("her keys are %+v (%v)", keys, err)
	}
	// Anyone who belongs to no workspace is not wrong about their password.
	page := member.Post("/login", "email", member.Email, "password", webtest.Password)
	if page.Path != "/workspaces/new" || page.TestID("no-workspace") == "" {
		t.Fatalf("logged in to %s: %s", page.Path, page.Text("main"))
	}
	if missing := member.Get("/no-such-page"); missing.Has(".nav") {
		t.Error("an error shows the navigation of no workspace")
	}
	if page = member.Post("/workspaces", "workspace", "Her own"); page.Path != "/overview" || page.Text(".wsw b") != "Her own" {
		t.Errorf("created at %s", page.Path)
	}
}
