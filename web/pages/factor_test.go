package pages_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pquerna/otp/totp"

	"palimpsest/web/webtest"
)

// codeAt returns what the app of a secret shows, so many steps from now. Those of this step
// and of the next are still good where a step ends before they are sent.
func codeAt(t *testing.T, secret string, steps int) string {
	t.Helper()
	code, err := totp.GenerateCode(strings.ReplaceAll(secret, " ", ""), time.Now().Add(time.Duration(steps)*30*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	return code
}

func TestPersonSetsUpAnAppAndLogsInWithItsCodes(t *testing.T) {
	t.Parallel()
	product := webtest.Start(t)
	person := product.SignUp(t, "northbeam")
	other := product.LogIn(t, person.Email)

	if page := person.Get("/account"); !page.Has(`a[href="/account/second-factor"]`) {
		t.Error("the account does not lead to the page")
	}
	if page := person.Post("/account/second-factor/start", "password", "not mine"); page.Status != http.StatusUnprocessableEntity || page.TestID("error-password") == "" {
		t.Errorf("a wrong password: %d", page.Status)
	}
	if page := person.Get("/account/second-factor/qr.svg"); page.Status != http.StatusNotFound {
		t.Errorf("an image without a secret: %d", page.Status)
	}
	waiting := person.Post("/account/second-factor/start", "password", webtest.Password)
	secret := waiting.TestID("secret")
	if secret == "" || !waiting.Has(`img[src="/account/second-factor/qr.svg"]`) {
		t.Fatalf("set up led to %s: %s", waiting.Path, waiting.Text("main"))
	}
	image := person.Get("/account/second-factor/qr.svg")
	if image.Header.Get("Content-Type") != "image/svg+xml" || image.Header.Get("Cache-Control") != "no-store" || !strings.HasPrefix(image.HTML, "<svg") {
		t.Errorf("the image: %v", image.Header)
	}
	if page := person.Post("/account/second-factor/confirm", "code", "12345"); page.Status != http.StatusUnprocessableEntity || page.TestID("error-code") == "" {
		t.Errorf("a wrong code: %d", page.Status)
	}
	on := person.Post("/account/second-factor/confirm", "code", codeAt(t, secret, 0))
	codes := strings.Fields(on.TestID("codes"))
	if on.TestID("state") != "on" || len(codes) != 10 {
		t.Fatalf("switched on: %d, %s", on.Status, on.Text("main"))
	}
	if page := person.Get("/account/second-factor"); page.Has(`[data-testid="codes"]`) || strings.Contains(page.HTML, secret) {
		t.Error("secret or codes are shown again")
	}
	if page := other.Get("/account"); !strings.HasPrefix(page.Path, "/login") {
		t.Errorf("a login without a code still opens %s", page.Path)
	}

	stranger := product.Stranger(t)
	if page := stranger.Get("/login/code"); page.Path != "/login" {
		t.Errorf("without a password the code's page is %s", page.Path)
	}
	asked := stranger.Post("/login", "email", person.Email, "password", webtest.Password, "next", "/keys")
	if asked.Path != "/login/code?next=%2Fkeys" {
		t.Fatalf("the password led to %s", asked.Path)
	}
	if page := stranger.Get("/keys"); !strings.HasPrefix(page.Path, "/login") {
		t.Fatalf("the password alone opens %s", page.Path)
	}
	if page := stranger.Post("/login/code", "code", "12345", "next", "/keys"); page.Status != http.StatusUnprocessableEntity || page.TestID("error-code") == "" {
		t.Errorf("a wrong code: %d", page.Status)
	}
	if page := stranger.Post("/login/code", "code", codeAt(t, secret, 1), "next", "/keys"); page.Path != "/keys" || len(stranger.Cookies()) != 1 {
		t.Fatalf("the code led to %s with %d cookies", page.Path, len(stranger.Cookies()))
	}
	late := product.Stranger(t).Post("/login/code", "code", codeAt(t, secret, 1))
	if !strings.HasPrefix(late.Path, "/login?done=late") || late.TestID("error-form") == "" {
		t.Errorf("a code without a password led to %s: %s", late.Path, late.Text("main"))
	}

	renewed := stranger.Post("/account/second-factor/recovery-codes", "password", webtest.Password, "code", codes[0])
	if fresh := strings.Fields(renewed.TestID("codes")); len(fresh) != 10 || fresh[1] == codes[1] {
		t.Errorf("new recovery codes: %d, %v", renewed.Status, fresh)
	} else {
		codes = fresh
	}
	if page := stranger.Post("/account/second-factor/remove", "password", webtest.Password, "code", "x"); page.Status != http.StatusUnprocessableEntity || page.TestID("state") != "on" {
		t.Errorf("switching off with a wrong code: %d", page.Status)
	}
	if page := stranger.Post("/account/second-factor/remove", "password", webtest.Password, "code", codes[2]); page.Path != "/account/second-factor?done=off" || page.TestID("state") != "off" {
		t.Errorf("switching off led to %s: %s", page.Path, page.TestID("state"))
	}
	product.LogIn(t, person.Email)
}
