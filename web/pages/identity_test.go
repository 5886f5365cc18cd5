package pages_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"palimpsest/tenants"
	"palimpsest/tenants/identity"
	"palimpsest/web"
	"palimpsest/web/webtest"
)

func TestSigningUpLogsInAndLeadsToTheOverview(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")

	page := person.Get("/overview")
	if page.Status != http.StatusOK || page.Text(".wsw b") != "northbeam" || page.Text(".who .mail") != person.Email {
		t.Errorf("status %d, workspace %q, person %q", page.Status, page.Text(".wsw b"), page.Text(".who .mail"))
	}
	if again := person.Get("/login"); again.Path != "/overview" {
		t.Errorf("the login page of someone who is logged in leads to %s", again.Path)
	}
}

func TestInvalidSignUpIsExplainedAtItsField(t *testing.T) {
	t.Parallel()
	product := webtest.Start(t)
	product.SignUp(t, "taken")
	person := product.Stranger(t)

	for field, form := range map[string][]string{
		"email":     {"email", "nobody", "password", webtest.Password, "workspace", "w"},
		"password":  {"email", "a@example.com", "password", "short", "workspace", "w"},
		"workspace": {"email", "a@example.com", "password", webtest.Password, "workspace", " "},
	} {
		page := person.Post("/signup", form...)
		if page.Status != http.StatusUnprocessableEntity {
			t.Errorf("%s: status %d", field, page.Status)
		}
		if page.TestID("error-"+field) == "" || !page.Has(`input[name="`+field+`"][aria-invalid="true"]`) {
			t.Errorf("%s: no error at the field: %s", field, page.Text("main"))
		}
		if got := page.Find(`input[name="email"]`).AttrOr("value", ""); got != form[1] {
			t.Errorf("%s: the typed address became %q", field, got)
		}
		if strings.Contains(page.HTML, form[3]) {
			t.Errorf("%s: the page repeats the password", field)
		}
	}
	if page := person.Post("/signup", "email", "taken@example.com", "password", webtest.Password, "workspace", "w"); !strings.Contains(page.TestID("error-email"), "exists") {
		t.Errorf("a taken address: %d, %q", page.Status, page.TestID("error-email"))
	}
}

// S11
func TestUnknownAddressAndWrongPasswordGetTheSameAnswer(t *testing.T) {
	t.Parallel()
	product := webtest.Start(t)
	product.SignUp(t, "northbeam")
	person := product.Stranger(t)

	wrong := person.Post("/login", "email", "northbeam@example.com", "password", "not the password")
	unknown := person.Post("/login", "email", "nobody@example.com", "password", "not the password")
	if wrong.Status != http.StatusUnprocessableEntity || unknown.Status != wrong.Status {
		t.Errorf("status %d and %d", wrong.Status, unknown.Status)
	}
	if wrong.TestID("error-form") == "" || wrong.TestID("error-form") != unknown.TestID("error-form") {
		t.Errorf("%q and %q", wrong.TestID("error-form"), unknown.TestID("error-form"))
	}
}

// S11
func TestTooManyFailuresAreRefused(t *testing.T) {
	t.Parallel()
	product := webtest.Start(t)
	product.SignUp(t, "northbeam")
	person := product.Stranger(t)

	var last webtest.Page
	for range 11 {
		last = person.Post("/login", "email", "northbeam@example.com", "password", "not the password")
	}
	if last.Status != http.StatusTooManyRequests || last.Header.Get("Retry-After") == "" || !strings.Contains(last.TestID("error-form"), "Try again in 1") {
		t.Errorf("after 11 failures the status is %d: %q", last.Status, last.TestID("error-form"))
	}
}

func TestLoggingInLeadsWhereSomebodyWantedToGo(t *testing.T) {
	t.Parallel()
	product := webtest.Start(t)
	product.SignUp(t, "northbeam")
	person := product.Stranger(t)

	asked := person.Get("/sessions?q=webhook")
	if !strings.HasPrefix(asked.Path, "/login?next=") {
		t.Fatalf("a page for members leads a stranger to %s", asked.Path)
	}
	next := asked.Find(`input[name="next"]`).AttrOr("value", "")
	page := person.Post("/login", "email", "northbeam@example.com", "password", webtest.Password, "next", next)
	if page.Path != "/sessions?q=webhook" {
		t.Errorf("logging in led to %s", page.Path)
	}
}

func TestLoggingInNeverLeadsToAnotherSite(t *testing.T) {
	t.Parallel()
	product := webtest.Start(t)
	product.SignUp(t, "northbeam")

	for _, next := range []string{"https://evil.example/", "//evil.example", "/\\evil.example"} {
		page := product.Stranger(t).Post("/login", "email", "northbeam@example.com", "password", webtest.Password, "next", next)
		if page.Path != "/overview" {
			t.Errorf("next %q led to %s", next, page.Path)
		}
	}
}

func TestLoggingOutEndsTheLogin(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	before := person.Cookies()

	if page := person.Post("/logout"); page.Path != "/login" {
		t.Errorf("logging out led to %s", page.Path)
	}
	if len(person.Cookies()) != 0 {
		t.Error("the browser keeps the login's cookie")
	}
	stolen := person.Get("/overview", "Cookie", before[0].Name+"="+before[0].Value)
	if !strings.HasPrefix(stolen.Path, "/login") {
		t.Errorf("the old cookie still opens %s", stolen.Path)
	}
	led := person.Direct("/overview", "Cookie", before[0].Name+"="+before[0].Value)
	if set := led.Header.Get("Set-Cookie"); !strings.HasPrefix(set, before[0].Name+"=;") || !strings.Contains(set, "Max-Age=0") {
		t.Errorf("a browser with the cookie of an ended login keeps it: Set-Cookie is %q", set)
	}
}

// S10
func TestCookieIsOutOfReachOfScriptsAndOtherSites(t *testing.T) {
	t.Parallel()
	product := webtest.Start(t)
	product.SignUp(t, "northbeam")
	person := product.Stranger(t)

	header := person.SetCookie("/login", "email", "northbeam@example.com", "password", webtest.Password)
	for _, want := range []string{"palimpsest=", "HttpOnly", "SameSite=Lax", "Path=/"} {
		if !strings.Contains(header, want) {
			t.Errorf("Set-Cookie %q lacks %s", header, want)
		}
	}
}

// Where people sign up by invitation, the page says so in place of the form, after the
// first person; a link of an invitation works all the same.
func TestSigningUpByInvitationShowsNoForm(t *testing.T) {
	t.Parallel()
	product := webtest.Start(t, func(product *webtest.Product, _ *web.Deps) {
		product.People.SetSignUps(identity.SignUps{Open: identity.OpenToInvited})
	})
	if page := product.Stranger(t).Get("/signup"); page.Status != http.StatusOK || !page.Has(`form[action="/signup"]`) || page.TestID("invite-only") != "" {
		t.Errorf("a new installation: status %d: %s", page.Status, page.Text("main"))
	}
	owner := product.SignUp(t, "first")
	stranger := product.Stranger(t)
	form := []string{"email", "eve@example.com", "password", webtest.Password, "workspace", "hers"}
	for name, page := range map[string]webtest.Page{"the page": stranger.Get("/signup"), "the form": stranger.Post("/signup", form...)} {
		want := map[string]int{"the page": http.StatusOK, "the form": http.StatusForbidden}[name]
		if page.Status != want || !strings.Contains(page.TestID("invite-only"), "invitation") || page.Has(`input[name="password"]`) {
			t.Errorf("%s: status %d: %s", name, page.Status, page.Text("main"))
		}
	}
	if _, _, err := product.DB.Accounts.UserByEmail(t.Context(), "eve@example.com"); !errors.Is(err, tenants.ErrNotFound) {
		t.Errorf("she has an account: %v", err)
	}
	invited := owner.Post("/members/invite", "email", "eve@example.com", "role", "member")
	link := strings.TrimPrefix(invited.Find("#link-0").Text(), webtest.PublicURL)
	if page := stranger.Post(link+"/signup", form...); page.Path != "/overview" || page.Text(".wsw b") != "first" {
		t.Errorf("by the invitation %q she comes to %s: %s", link, page.Path, page.Text("main"))
	}
}
