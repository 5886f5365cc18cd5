package pages_test

import (
	"net/http"
	"strings"
	"testing"

	"palimpsest/tenants"
	"palimpsest/web/webtest"
)

// invite returns the path of the link of an invitation to an address.
func invite(t *testing.T, owner *webtest.Person, email string) string {
	t.Helper()
	invited := owner.Post("/members/invite", "email", email, "role", "viewer")
	path, found := strings.CutPrefix(invited.Find("#link-0").Text(), webtest.PublicURL)
	if !found {
		t.Fatalf("status %d: %s", invited.Status, invited.Text("main"))
	}
	return path
}

// S11: the page says the same of an address with an account and of one without.
func TestPageDoesNotTellWhetherAnAddressIsKnown(t *testing.T) {
	t.Parallel()
	product := webtest.Start(t)
	owner := product.SignUp(t, "northbeam")
	product.SignUp(t, "known")
	stranger := product.Stranger(t)

	known := stranger.Get(invite(t, owner, "known@example.com"))
	unknown := stranger.Get(invite(t, owner, "someone@example.com"))
	if known.Status != http.StatusOK || strings.ReplaceAll(known.TestID("invitation"), "known@", "someone@") != unknown.TestID("invitation") {
		t.Errorf("%s\n%s", known.TestID("invitation"), unknown.TestID("invitation"))
	}
}

// S12: bound to the address, single use.
func TestInvitationIsForItsAddressAndWorksOnce(t *testing.T) {
	t.Parallel()
	product := webtest.Start(t)
	owner, grace, eve := product.SignUp(t, "northbeam"), product.SignUp(t, "grace"), product.SignUp(t, "eve")
	path := invite(t, owner, "grace@example.com")

	if page := eve.Get(path); !strings.Contains(page.TestID("other-address"), "logged in as eve@example.com") || page.Has(`form[action="`+path+`"]`) {
		t.Errorf("eve reads %s", page.TestID("invitation"))
	}
	if page := eve.Post(path); page.TestID("other-address") == "" {
		t.Errorf("eve is at %s", page.Path)
	}
	if page := grace.Post(grace.Get(path).Find("main form").AttrOr("action", "")); page.Path != "/overview" || page.Text(".wsw b") != "northbeam" || page.Text(".wsw small") != "viewer" {
		t.Errorf("grace is at %s in %s", page.Path, page.Text(".wsw"))
	}
	for name, page := range map[string]webtest.Page{"opened": grace.Get(path), "accepted": grace.Post(path), "made up": eve.Get("/invite/none")} {
		if page.Status != http.StatusNotFound || page.TestID("invitation-ended") == "" {
			t.Errorf("%s again: %d, %s", name, page.Status, page.Text("main"))
		}
	}
}

func TestLoggingInLeadsBackToTheInvitation(t *testing.T) {
	t.Parallel()
	product := webtest.Start(t)
	owner := product.SignUp(t, "northbeam")
	product.SignUp(t, "grace")
	path := invite(t, owner, "grace@example.com")
	browser := product.Stranger(t)

	form := browser.Get(browser.Get(path).Find(`a[href^="/login"]`).AttrOr("href", ""))
	next := form.Find(`input[name="next"]`).AttrOr("value", "")
	if page := browser.Post("/login", "email", "grace@example.com", "password", webtest.Password, "next", next); page.Path != path || !page.Has(`form[action="`+path+`"]`) {
		t.Errorf("logging in led to %s", page.Path)
	}
	if page := product.Stranger(t).Post(path); !strings.HasPrefix(page.Path, "/login") {
		t.Errorf("a stranger accepts: %s", page.Path)
	}
}

func TestSigningUpThroughALinkIsForItsAddressOnly(t *testing.T) {
	t.Parallel()
	product := webtest.Start(t)
	owner := product.SignUp(t, "northbeam")
	path := invite(t, owner, "grace@example.com")
	browser := product.Stranger(t)

	if page := browser.Post(path+"/signup", "password", "short", "workspace", "Hers"); page.Status != http.StatusUnprocessableEntity ||
		page.TestID("error-password") == "" || page.Find("#field-workspace").AttrOr("value", "") != "Hers" {
		t.Errorf("status %d: %s", page.Status, page.Text("main"))
	}
	page := browser.Post(path+"/signup", "password", webtest.Password, "email", "eve@example.com")
	if page.Path != "/overview" || page.Text(".who .mail") != "grace@example.com" || page.Has(`.switch form`) {
		t.Errorf("signed up at %s as %s", page.Path, page.Text(".who"))
	}
	second := invite(t, owner, "known@example.com")
	product.SignUp(t, "known")
	entries, err := product.DB.Audit.Audit(t.Context(), owner.Workspace.ID, tenants.AuditFilter{Limit: 10, Action: string(tenants.MemberJoined)})
	if err != nil || len(entries) != 1 || entries[0].Actor.From != "127.0.0.1" {
		t.Errorf("noted %+v, %v", entries, err)
	}
	if page := product.Stranger(t).Post(second+"/signup", "password", webtest.Password); page.Status != http.StatusUnprocessableEntity || page.TestID("error-form") == "" {
		t.Errorf("an address with an account: %d", page.Status)
	}
}
