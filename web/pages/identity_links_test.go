package pages_test

import (
	"net/http"
	"strings"
	"testing"

	"palimpsest/tenants/identity"
	"palimpsest/web/webtest"
)

// S12: a link resets a password once, ends all logins, and stands in no address, page
// or Referer after it was opened.
func TestAPasswordIsResetWithALink(t *testing.T) {
	t.Parallel()
	product := webtest.Start(t)
	loggedIn := product.SignUp(t, "northbeam")
	person := product.Stranger(t)
	person.Email = loggedIn.Email

	if page := person.Post("/reset", "email", person.Email); page.Path != "/reset?sent=1" || page.TestID("sent") == "" {
		t.Fatalf("asking led to %s", page.Path)
	}
	link := person.Link("Set a new password")
	secret := strings.TrimPrefix(link, "/reset/")
	opened := person.Get(link)
	if opened.Path != "/reset/new" || strings.Contains(opened.HTML, secret) || !strings.Contains(opened.Text("main"), person.Email) {
		t.Fatalf("the link leads to %s: %s", opened.Path, opened.Text("main"))
	}
	if bare := person.Direct(link); bare.Header.Get("Referrer-Policy") != "no-referrer" || bare.Status != http.StatusSeeOther ||
		!strings.Contains(bare.Header.Get("Set-Cookie"), "HttpOnly") || !strings.Contains(bare.Header.Get("Set-Cookie"), "SameSite=Lax") {
		t.Errorf("status %d, headers %v", bare.Status, bare.Header)
	}
	if page := person.Post("/reset/new", "password", "short"); page.Status != http.StatusUnprocessableEntity || page.TestID("error-password") == "" {
		t.Errorf("a short password: %d", page.Status)
	}
	if page := person.Post("/reset/new", "password", "another long one"); page.Path != "/login?done=password" || page.TestID("done") == "" {
		t.Fatalf("the new password led to %s", page.Path)
	}
	if page := loggedIn.Get("/keys"); !strings.HasPrefix(page.Path, "/login") {
		t.Errorf("a login from before opens %s", page.Path)
	}
	person.Get(link)
	if page := person.Post("/reset/new", "password", "a third long one"); page.Status != http.StatusGone || page.TestID("ended") == "" {
		t.Errorf("the link works twice: %d", page.Status)
	}
	if page := person.Post("/login", "email", person.Email, "password", "another long one"); page.Path != "/overview" {
		t.Errorf("the new password logs in to %s", page.Path)
	}
}

// S11
func TestAskingForALinkTellsNothingOfAnAddress(t *testing.T) {
	t.Parallel()
	product := webtest.Start(t)
	product.SignUp(t, "northbeam")
	person := product.Stranger(t)
	for _, path := range []string{"/reset", "/verify"} {
		known := person.Post(path, "email", "northbeam@example.com")
		unknown := person.Post(path, "email", "nobody@example.com")
		if known.HTML != unknown.HTML || known.Status != unknown.Status || known.Path != unknown.Path {
			t.Errorf("%s: %d %s and %d %s", path, known.Status, known.Path, unknown.Status, unknown.Path)
		}
		if wrong := person.Post(path, "email", "nobody"); wrong.Status != http.StatusUnprocessableEntity || wrong.TestID("error-email") == "" {
			t.Errorf("%s: what is not an address: %d", path, wrong.Status)
		}
	}
	var last webtest.Page
	for range 10 {
		last = person.Post("/reset", "email", "nobody@example.com")
	}
	if last.Status != http.StatusTooManyRequests || last.Header.Get("Retry-After") == "" || !strings.Contains(last.TestID("error-form"), "Try again in 1") {
		t.Errorf("after many: %d, %q", last.Status, last.TestID("error-form"))
	}
}

// S11
func TestQuietSignUpTellsNothing(t *testing.T) {
	t.Parallel()
	product := webtest.Start(t)
	product.SignUp(t, "northbeam")
	product.People.SetSignUps(identity.SignUps{Quiet: true})
	person := product.Stranger(t)
	known := person.Post("/signup", "email", "northbeam@example.com", "password", "another long one", "workspace", "w")
	unknown := person.Post("/signup", "email", "new@example.com", "password", "another long one", "workspace", "w")
	if known.HTML != unknown.HTML || known.Status != http.StatusOK || known.Path != "/signup?sent=1" || unknown.Path != known.Path || len(person.Cookies()) != 0 {
		t.Errorf("%d %s and %d %s", known.Status, known.Path, unknown.Status, unknown.Path)
	}
	person.Email = "new@example.com"
	person.Get(person.Link("Verify"))
	if page := person.Post("/verify/confirm"); !strings.HasPrefix(page.Path, "/login?next=") {
		t.Errorf("verifying led to %s", page.Path)
	}
	if page := person.Post("/login", "email", person.Email, "password", "another long one"); page.Path != "/overview" {
		t.Errorf("logging in led to %s", page.Path)
	}
}

// The mails of an installation without a mail server are shown on the machine itself.
func TestMailsAreShownOnlyOnTheMachineItself(t *testing.T) {
	t.Parallel()
	product := webtest.Start(t)
	unverified := product.SignUpUnverified(t, "northbeam")
	person := product.Stranger(t)
	shown := person.Get(webtest.MailsPath)
	if shown.Status != http.StatusOK || !strings.Contains(shown.TestID("mails"), unverified.Email) || !shown.Has(`[data-testid="mails"] a[href^="/verify/"]`) {
		t.Errorf("status %d: %s", shown.Status, shown.TestID("mails"))
	}
	for _, header := range [][]string{
		{"X-Forwarded-For", "192.0.2.1"}, {"Forwarded", "for=192.0.2.1"}, {"Via", "1.1 proxy"}, {"Host", "palimpsest.example.com"},
	} {
		if page := person.Get(webtest.MailsPath, header...); page.Status != http.StatusNotFound || strings.Contains(page.HTML, "/verify/") {
			t.Errorf("%v: status %d", header, page.Status)
		}
	}
}

// Links in mails open accounts: who does not know the page's address does not find it.
func TestMailsAreShownAtAnAddressThatCannotBeGuessed(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUpUnverified(t, "northbeam")
	for _, path := range []string{"/dev/mail", "/dev/mail/", webtest.MailsPath + "x", strings.TrimSuffix(webtest.MailsPath, "n"), strings.ToUpper(webtest.MailsPath)} {
		if page := person.Get(path); page.Status != http.StatusNotFound {
			t.Errorf("%s: status %d", path, page.Status)
		}
	}
	if page := person.Get("/overview"); strings.Contains(page.HTML, "/dev/mail") {
		t.Error("a page says where mails are read")
	}
}

func TestMailsAreNotShownWhereTheyAreSent(t *testing.T) {
	t.Parallel()
	product := webtest.Start(t, webtest.MailsAreSent)
	if page := product.Stranger(t).Get(webtest.MailsPath); page.Status != http.StatusNotFound {
		t.Errorf("status %d", page.Status)
	}
}
