package pages_test

import (
	"net/http"
	"strings"
	"testing"

	"palimpsest/tenants"
	"palimpsest/web/webtest"
)

const another = "another long password"

func TestAccountIsReachedFromEveryPage(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam").As(tenants.Billing)
	if href := person.Get("/overview").Find(".who a.mail").AttrOr("href", ""); href != "/account" {
		t.Errorf("the sidebar leads to %q", href)
	}
	if more := person.Get("/more"); !more.Has(`[data-testid="more"] a[href="/account"]`) {
		t.Errorf("more: %s", more.TestID("more"))
	}
}

// S9
func TestChangingThePasswordEndsTheOtherLogins(t *testing.T) {
	t.Parallel()
	product := webtest.Start(t)
	person := product.SignUp(t, "northbeam")
	other := product.LogIn(t, person.Email)
	if page := person.Get("/account"); page.Find(`[data-testid="logins"] li`).Length() != 2 || page.Find(`[data-testid="logins"] .tag.ok`).Length() != 1 {
		t.Fatalf("logins: %s", page.TestID("logins"))
	}

	wrong := person.Post("/account/password", "current_password", "not mine", "password", another)
	if wrong.Status != http.StatusUnprocessableEntity || wrong.TestID("error-current_password") == "" || strings.Contains(wrong.HTML, another) {
		t.Errorf("a wrong password: %d, %q", wrong.Status, wrong.TestID("error-current_password"))
	}
	done := person.Post("/account/password", "current_password", webtest.Password, "password", another)
	if done.Path != "/account?done=password" || done.TestID("done") == "" {
		t.Fatalf("led to %s with %d", done.Path, done.Status)
	}
	if page := other.Get("/account"); !strings.HasPrefix(page.Path, "/login") {
		t.Errorf("the other browser still opens %s", page.Path)
	}
	if page := person.Get("/account"); page.Path != "/account" {
		t.Errorf("this browser is led to %s", page.Path)
	}
}

// S9
func TestSigningOutEverywhereEndsAllLogins(t *testing.T) {
	t.Parallel()
	product := webtest.Start(t)
	person := product.SignUp(t, "northbeam")
	second, third := product.LogIn(t, person.Email), product.LogIn(t, person.Email)

	one := person.Get("/account").Find(`[data-testid="logins"] form`).First().AttrOr("action", "")
	if page := person.Post(one); page.Path != "/account?done=ended" {
		t.Errorf("ending one login led to %s", page.Path)
	}
	if page := third.Get("/account"); !strings.HasPrefix(page.Path, "/login") {
		t.Errorf("the ended login opens %s", page.Path)
	}
	if page := person.Post("/account/logins/end"); page.Path != "/login" || len(person.Cookies()) != 0 {
		t.Errorf("signing out led to %s with %d cookies", page.Path, len(person.Cookies()))
	}
	if page := second.Get("/account"); !strings.HasPrefix(page.Path, "/login") {
		t.Errorf("another login opens %s", page.Path)
	}
}

// S12
func TestTheAddressChangesOnceTheNewOneIsConfirmed(t *testing.T) {
	t.Parallel()
	product := webtest.Start(t)
	person := product.SignUp(t, "northbeam")
	old := person.Email

	for field, values := range map[string][2]string{"email": {"nobody", webtest.Password}, "email_password": {"new@example.com", "not mine"}} {
		page := person.Post("/account/email", "email", values[0], "email_password", values[1])
		if page.Status != http.StatusUnprocessableEntity || page.TestID("error-"+field) == "" || page.Find("#field-email").AttrOr("value", "") != values[0] {
			t.Errorf("%s: %d, %q", field, page.Status, page.Text("#email"))
		}
	}
	if page := person.Post("/account/email", "email", "new@example.com", "email_password", webtest.Password); page.Path != "/account?done=asked" || !page.Has(`[data-testid="mails-kept"]`) {
		t.Fatalf("led to %s", page.Path)
	}
	if page := person.Get("/account"); page.TestID("email") != old {
		t.Errorf("before it is confirmed the address is %s", page.TestID("email"))
	}
	person.Link("Your e-mail address is to be changed") // the notice to the old address

	person.Email = "new@example.com"
	link := person.Link("Confirm your new")
	if page := person.Get(link); page.Path != "/verify/confirm" || !strings.Contains(page.Text("main"), "new@example.com") {
		t.Fatalf("the link leads to %s: %s", page.Path, page.Text("main"))
	}
	if page := person.Post("/verify/confirm"); page.Path != "/account?done=email" || page.TestID("email") != "new@example.com" {
		t.Errorf("confirming led to %s: %s", page.Path, page.TestID("email"))
	}
	person.Get(link)
	if page := person.Post("/verify/confirm"); page.Status != http.StatusGone {
		t.Errorf("the link works twice: %d", page.Status)
	}
}

func TestUnverifiedPersonIsAskedToVerifyOnEveryPage(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUpUnverified(t, "northbeam")
	if page := person.Get("/keys"); !strings.Contains(page.TestID("unverified"), person.Email) || !page.Has(`[data-testid="unverified"] form[action="/account/verification"]`) {
		t.Errorf("no banner: %s", page.TestID("unverified"))
	}
	if page := person.Post("/account/verification"); page.Path != "/account?done=sent" || !strings.Contains(page.TestID("done"), person.Email) {
		t.Errorf("send again led to %s: %s", page.Path, page.TestID("done"))
	}
	person.Get(person.Link("Verify"))
	if page := person.Post("/verify/confirm"); page.Path != "/account?done=verified" || page.Text("#email .tag") != "verified" {
		t.Errorf("verifying led to %s: %s", page.Path, page.Text("#email"))
	}
	if page := person.Get("/keys"); page.Has(`[data-testid="unverified"]`) {
		t.Error("the banner stays")
	}
	var last webtest.Page
	other := webtest.Start(t).SignUpUnverified(t, "hasty")
	for range 11 {
		last = other.Post("/account/verification")
	}
	if last.Status != http.StatusTooManyRequests || last.Header.Get("Retry-After") == "" || last.TestID("error-form") == "" {
		t.Errorf("eleven mails at once: %d, %q", last.Status, last.TestID("error-form"))
	}
}

// S31, S42
func TestAccountIsDeletedWithItsPassword(t *testing.T) {
	t.Parallel()
	product := webtest.Start(t)
	operator := product.SignUp(t, "first")
	operator.Colleague(tenants.Owner)
	if page := operator.Post("/account/delete", "delete_password", webtest.Password, "keys", "revoke"); page.Status != http.StatusConflict || !strings.Contains(page.Text("#delete"), "Operators’ accounts cannot be deleted") {
		t.Errorf("the operator: %d, %s", page.Status, page.Text("#delete"))
	}
	owner := product.SignUp(t, "northbeam")
	if page := owner.Post("/account/delete", "delete_password", webtest.Password, "keys", "revoke"); page.Status != http.StatusConflict || !strings.Contains(page.Text("#delete"), "northbeam") {
		t.Errorf("the only owner: %d, %s", page.Status, page.Text("#delete"))
	}
	person := owner.Colleague(tenants.Admin)
	if page := person.Post("/account/delete", "delete_password", "not mine", "keys", "keep"); page.Status != http.StatusUnprocessableEntity || page.TestID("error-delete_password") == "" ||
		page.Find(`#delete option[value="keep"][selected]`).Length() != 1 {
		t.Errorf("a wrong password: %d, %s", page.Status, page.Text("#delete"))
	}
	if page := person.Post("/account/delete", "delete_password", webtest.Password, "keys", "keep"); page.Path != "/" || len(person.Cookies()) != 0 {
		t.Errorf("deleting led to %s with %d cookies", page.Path, len(person.Cookies()))
	}
	if page := product.Stranger(t).Post("/login", "email", person.Email, "password", webtest.Password); page.Status != http.StatusUnprocessableEntity && page.Status != http.StatusUnauthorized {
		t.Errorf("logging in: %d", page.Status)
	}
	if page := owner.Get("/members"); strings.Contains(page.TestID("members"), person.Email) {
		t.Error("they are a member still")
	}
}

// S13, S31, S42
func TestAccountWithoutPasswordIsDeletedAfterRecentLogin(t *testing.T) {
	t.Parallel()
	product := webtest.Start(t)
	product.SignUp(t, "first") // the operator
	person := product.SignUp(t, "northbeam").Colleague(tenants.Admin)
	login := product.LogIn(t, person.Email)
	age := func(interval string) {
		if _, err := product.Database.Owner(t).Exec(t.Context(), "UPDATE logins SET created_at = now() - $1::interval", interval); err != nil {
			t.Fatal(err)
		}
		product.People.Forget()
	}
	remove := func() webtest.Page { return login.Post("/account/delete", "delete_password", "", "keys", "revoke") }
	if page := remove(); page.Status != http.StatusUnprocessableEntity || !page.Has(`[data-testid="error-delete_password"]`) {
		t.Errorf("without the password that there is: %d, %s", page.Status, page.Text("#delete"))
	}
	if _, err := product.Database.Owner(t).Exec(t.Context(), "UPDATE users SET password_hash = '' WHERE id = $1", person.User.ID); err != nil {
		t.Fatal(err)
	}
	age("16 minutes")
	if page := remove(); page.Status != http.StatusUnprocessableEntity || !strings.Contains(page.TestID("error-delete_password"), "log in again") {
		t.Errorf("an old login: %d, %s", page.Status, page.Text("#delete"))
	}
	age("10 minutes")
	if page := remove(); page.Path != "/" || len(login.Cookies()) != 0 {
		t.Errorf("deleting led to %s: %s", page.Path, page.Text("#delete"))
	}
}

// S9: a passkey is made by people who know their password, so no account has a passkey and no password:
// everyone with a passkey can confirm what asks for the password.
func TestAccountWithoutPasswordMakesNoPasskey(t *testing.T) {
	t.Parallel()
	person := webtest.Start(t).SignUp(t, "northbeam")
	if page := person.Post("/account/passkeys", "name", "laptop", "password", webtest.Password); page.Path != "/account/passkeys/new" {
		t.Fatalf("with a password: %d at %s", page.Status, page.Path)
	}
	if _, err := person.Database.Owner(t).Exec(t.Context(), "UPDATE users SET password_hash = '' WHERE id = $1", person.User.ID); err != nil {
		t.Fatal(err)
	}
	for _, password := range []string{"", webtest.Password} {
		page := person.Post("/account/passkeys", "name", "laptop", "password", password)
		if page.Status != http.StatusUnprocessableEntity || page.TestID("error-password") == "" {
			t.Errorf("with %q: %d at %s", password, page.Status, page.Path)
		}
	}
}
