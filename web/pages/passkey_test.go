package pages_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/descope/virtualwebauthn"

	"palimpsest/tenants"
	"palimpsest/web/webtest"
)

// device is an authenticator of a person that answers what pages ask.
type device struct {
	site virtualwebauthn.RelyingParty
	auth virtualwebauthn.Authenticator
	key  virtualwebauthn.Credential
}

func newDevice(person *webtest.Person) *device {
	const whole = 77 // bytes of a COSE key both of whose coordinates are written in full
	d := &device{site: virtualwebauthn.RelyingParty{ID: "localhost", Origin: person.Local}, auth: virtualwebauthn.NewAuthenticator()}
	d.auth.Options.UserHandle = person.User.ID[:]
	for len(d.key.ID) == 0 || len(d.key.Key.AttestationData()) != whole {
		d.key = virtualwebauthn.NewCredential(virtualwebauthn.KeyTypeEC2)
	}
	return d
}

// make answers the page that asks for a passkey.
func (d *device) make(t *testing.T, page webtest.Page) string {
	t.Helper()
	options, err := virtualwebauthn.ParseAttestationOptions(page.Find(`form[data-passkey="create"]`).AttrOr("data-options", ""))
	if err != nil {
		t.Fatalf("%s: %v", page.Path, err)
	}
	return virtualwebauthn.CreateAttestationResponse(d.site, d.auth, d.key, *options)
}

// answer answers what a form fetches when its button is pressed.
func (d *device) answer(t *testing.T, person *webtest.Person, page webtest.Page) string {
	t.Helper()
	asked := person.Post(page.Find(`form[data-passkey="get"]`).AttrOr("data-options-url", ""))
	if asked.Status != http.StatusOK || asked.Header.Get("Cache-Control") != "no-store" {
		t.Fatalf("asked with %d: %s", asked.Status, asked.HTML)
	}
	options, err := virtualwebauthn.ParseAssertionOptions(asked.HTML)
	if err != nil {
		t.Fatal(err)
	}
	return virtualwebauthn.CreateAssertionResponse(d.site, d.auth, d.key, *options)
}

// withPasskey returns a person with a passkey, and their recovery codes.
func withPasskey(t *testing.T, product *webtest.Product) (*webtest.Person, *device, []string) {
	t.Helper()
	person := product.SignUp(t, "northbeam")
	d := newDevice(person)
	waiting := person.Post("/account/passkeys", "name", "Laptop", "password", webtest.Password)
	if waiting.Path != "/account/passkeys/new" {
		t.Fatalf("adding led to %s: %s", waiting.Path, waiting.Text("main"))
	}
	added := person.Post("/account/passkeys/new", "answer", d.make(t, waiting))
	codes := strings.Fields(added.TestID("codes"))
	if added.Status != http.StatusOK || len(codes) != tenants.RecoveryCodes || added.Header.Get("Cache-Control") != "no-store" {
		t.Fatalf("added: %d, %s", added.Status, added.Text("main"))
	}
	return person, d, codes
}

func TestPasskeyIsAddedShownAndRemoved(t *testing.T) {
	t.Parallel()
	product := webtest.Start(t)
	first := product.SignUp(t, "first")
	if page := first.Get("/account"); !page.Has(`a[href="/account/passkeys"]`) {
		t.Error("the account does not lead to the page")
	}
	if page := first.Get("/account/passkeys"); !page.Has(`[data-testid="empty"]`) || page.TestID("count") != "0" {
		t.Errorf("without one: %s", page.Text("main"))
	}
	if page := first.Get("/account/passkeys/new"); page.Path != "/account/passkeys" {
		t.Errorf("with nothing begun: %s", page.Path)
	}
	for field, typed := range map[string][]string{
		"name": {"name", " ", "password", webtest.Password}, "password": {"name", "Laptop", "password", "not mine"},
	} {
		page := first.Post("/account/passkeys", typed...)
		if page.Status != http.StatusUnprocessableEntity || page.TestID("error-"+field) == "" || strings.Contains(page.HTML, webtest.Password) {
			t.Errorf("a wrong %s: %d, %s", field, page.Status, page.Text("#add"))
		}
	}
	person, d, codes := withPasskey(t, product)
	shown := person.Get("/account/passkeys")
	if list := shown.TestID("passkeys"); !strings.Contains(list, "Laptop") || !strings.Contains(list, "not used yet") || strings.Contains(shown.HTML, codes[0]) {
		t.Errorf("shown: %s", list)
	}
	if page := person.Post("/account/passkeys/new", "answer", "{}"); page.Status != http.StatusUnprocessableEntity || page.TestID("error-form") == "" {
		t.Errorf("an answer to nothing: %d", page.Status)
	}
	waiting := person.Post("/account/passkeys", "name", "Again", "password", webtest.Password)
	if page := person.Post("/account/passkeys/new", "answer", d.make(t, waiting)); page.Status != http.StatusUnprocessableEntity || !strings.Contains(page.TestID("error-form"), "already") {
		t.Errorf("the same key again: %d, %s", page.Status, page.TestID("error-form"))
	}
	phone := newDevice(person)
	waiting = person.Post("/account/passkeys", "name", "Phone", "password", webtest.Password)
	if page := person.Post("/account/passkeys/new", "answer", phone.make(t, waiting)); page.Path != "/account/passkeys?done=added" || page.TestID("count") != "2" {
		t.Errorf("the second one led to %s", page.Path)
	}

	rename := shown.Find(`a[href$="/rename"]`).AttrOr("href", "")
	if page := person.Get(rename); page.Find(`[name="new_name"]`).AttrOr("value", "") != "Laptop" {
		t.Errorf("the dialog: %s", page.Text("dialog"))
	}
	if page := person.Post(rename, "new_name", ""); page.Status != http.StatusUnprocessableEntity || page.TestID("error-new_name") == "" {
		t.Errorf("no name: %d", page.Status)
	}
	if page := person.Post(rename, "new_name", "Work laptop"); page.Path != "/account/passkeys?done=renamed" || !strings.Contains(page.TestID("passkeys"), "Work laptop") {
		t.Errorf("renaming led to %s", page.Path)
	}
	remove := shown.Find(`a[href$="/remove"]`).AttrOr("href", "")
	if page := person.Post(remove, "remove_password", "not mine"); page.Status != http.StatusUnprocessableEntity || page.TestID("error-remove_password") == "" {
		t.Errorf("removing with a wrong password: %d", page.Status)
	}
	for _, path := range []string{rename, remove, "/account/passkeys/none/remove", "/account/passkeys/" + webtest.Nobody() + "/rename"} {
		if page := first.Get(path); page.Status != http.StatusNotFound {
			t.Errorf("%s of another person: %d", path, page.Status)
		}
		if page := first.Post(path, "new_name", "mine", "remove_password", webtest.Password); page.Status != http.StatusNotFound {
			t.Errorf("%s of another person changed: %d", path, page.Status)
		}
	}
	if page := person.Post(remove, "remove_password", webtest.Password); page.Path != "/account/passkeys?done=removed" || page.TestID("count") != "1" {
		t.Errorf("removing led to %s: %s", page.Path, page.Text("main"))
	}
}

func TestPersonLogsInWithAPasskey(t *testing.T) {
	t.Parallel()
	product := webtest.Start(t)
	person, d, codes := withPasskey(t, product)

	alone := product.Stranger(t)
	page := alone.Get("/login?next=%2Fkeys")
	if in := alone.Post("/login/passkey", "answer", d.answer(t, alone, page), "next", "/keys"); in.Path != "/keys" || len(alone.Cookies()) != 1 {
		t.Fatalf("the passkey led to %s with %d cookies: %s", in.Path, len(alone.Cookies()), in.TestID("error-form"))
	}
	away := product.Stranger(t)
	if in := away.Post("/login/passkey", "answer", d.answer(t, away, away.Get("/login")), "next", "https://evil.example"); in.Path != "/overview" {
		t.Errorf("another site's address led to %s", in.Path)
	}

	after := product.Stranger(t)
	asked := after.Post("/login", "email", person.Email, "password", webtest.Password, "next", "/keys")
	if asked.Path != "/login/code?next=%2Fkeys" || !strings.Contains(asked.Text("main"), "Recovery code") {
		t.Fatalf("the password led to %s: %s", asked.Path, asked.Text("main"))
	}
	if in := after.Post("/login/code/passkey", "answer", d.answer(t, after, asked), "next", "/keys"); in.Path != "/keys" || len(after.Cookies()) != 1 {
		t.Errorf("the passkey after the password led to %s with %d cookies", in.Path, len(after.Cookies()))
	}
	if used := after.Get("/account/passkeys").TestID("used"); used == "" {
		t.Error("its last use is not shown")
	}
	recovered := product.Stranger(t)
	recovered.Post("/login", "email", person.Email, "password", webtest.Password)
	if in := recovered.Post("/login/code", "code", codes[0]); in.Path != "/overview" {
		t.Errorf("a recovery code led to %s", in.Path)
	}
	if left := recovered.Get("/account/passkeys").TestID("left"); left != "9 left" {
		t.Errorf("left: %s", left)
	}
	if page := recovered.Post("/account/passkeys/recovery-codes", "renew_password", "x"); page.Status != http.StatusUnprocessableEntity || page.TestID("error-renew_password") == "" {
		t.Errorf("new codes for a wrong password: %d", page.Status)
	}
	if page := recovered.Post("/account/passkeys/recovery-codes", "renew_password", webtest.Password); len(strings.Fields(page.TestID("codes"))) != tenants.RecoveryCodes {
		t.Errorf("new codes: %d", page.Status)
	}
}

// A challenge is of the browser that was asked, and good once.
func TestAnswersOfOtherBrowsersAreRefused(t *testing.T) {
	t.Parallel()
	product := webtest.Start(t)
	person, d, _ := withPasskey(t, product)
	one, other := product.Stranger(t), product.Stranger(t)
	answer := d.answer(t, one, one.Get("/login"))
	d.answer(t, other, other.Get("/login"))
	if page := other.Post("/login/passkey", "answer", answer); page.Status != http.StatusUnprocessableEntity || page.TestID("error-form") == "" {
		t.Errorf("in another browser: %d", page.Status)
	}
	if page := one.Post("/login/passkey", "answer", "{}"); page.Status != http.StatusUnprocessableEntity {
		t.Errorf("no answer: %d", page.Status)
	}
	if page := one.Post("/login/passkey", "answer", answer); page.Status != http.StatusUnprocessableEntity {
		t.Errorf("an answer after a refused one: %d", page.Status)
	}
	late := product.Stranger(t)
	if page := late.Post("/login/code/passkey", "answer", answer); !strings.HasPrefix(page.Path, "/login?done=late") {
		t.Errorf("without a password: %s", page.Path)
	}
	if page := late.Post("/login/code/passkey/options"); page.Status != http.StatusNotFound {
		t.Errorf("asked without a password: %d", page.Status)
	}
	late.Post("/login", "email", person.Email, "password", webtest.Password)
	if page := late.Post("/login/code/passkey", "answer", answer); page.Status != http.StatusUnprocessableEntity || !strings.Contains(page.TestID("error-form"), "code") {
		t.Errorf("another browser's answer after the password: %d, %s", page.Status, page.TestID("error-form"))
	}
}

// S11
func TestRefusedPasskeysOfOnePlaceAreSlowedDown(t *testing.T) {
	t.Parallel()
	product := webtest.Start(t)
	product.SignUp(t, "northbeam")
	stranger := product.Stranger(t)
	var last webtest.Page
	for range 11 {
		last = stranger.Post("/login/passkey", "answer", "{}")
	}
	if last.Status != http.StatusTooManyRequests || last.Header.Get("Retry-After") == "" || last.TestID("error-form") == "" {
		t.Errorf("after ten refused ones: %d, %s", last.Status, last.TestID("error-form"))
	}
}

// Without scripts, and where passkeys cannot be, the pages say what else works.
func TestPagesSayWhatWorksWithoutPasskeys(t *testing.T) {
	t.Parallel()
	product := webtest.Start(t)
	stranger := product.Stranger(t)
	product.SignUp(t, "northbeam")
	page := stranger.Get("/login")
	if text := page.Text("form[data-passkey] .no-js"); !strings.Contains(text, "JavaScript") || !strings.Contains(text, "password") || !page.Has("form[data-passkey] button.js-only") {
		t.Errorf("without scripts: %s", text)
	}
	off := webtest.Start(t, webtest.NoPasskeys)
	person := off.SignUp(t, "northbeam")
	if page := person.Get("/account/passkeys"); page.TestID("off") == "" || page.Has("#add") {
		t.Errorf("where they are off: %s", page.Text("main"))
	}
	if page := person.Post("/account/passkeys", "name", "Laptop", "password", webtest.Password); page.Status != http.StatusUnprocessableEntity {
		t.Errorf("adding where they are off: %d", page.Status)
	}
	if page := off.Stranger(t).Get("/login"); page.Has("form[data-passkey]") {
		t.Error("logging in where they are off is offered")
	}
	if page := off.Stranger(t).Post("/login/passkey/options"); page.Status != http.StatusNotFound {
		t.Errorf("asked where they are off: %d", page.Status)
	}
}
