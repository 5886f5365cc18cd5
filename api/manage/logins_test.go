package manage_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"palimpsest/tenants"
)

// S9: who changes their password or signs out everywhere ends other logins at their
// next request.
func TestOtherLoginsEndWithThePassword(t *testing.T) {
	t.Parallel()
	w := setup(t).member(t, "ada")
	id := w.logInAgain(t, "ada@example.com")
	if listed := w.logins(t); len(listed) != 2 || listed[0].ID != id || listed[0].Current || !listed[1].Current {
		t.Fatalf("logins %+v", listed)
	}
	again := func(secret string) *tenant {
		answer := w.sendWith(t, "", http.MethodPost, "/login", fmt.Sprintf(`{"email":"ada@example.com","password":%q}`, secret))
		answer.want(t, http.StatusOK)
		other := &tenant{product: w.product, cookie: answer.cookies[0]}
		other.send(t, http.MethodGet, "/me", "").want(t, http.StatusOK) // and is remembered
		return other
	}
	other := again(password)
	refused := w.send(t, http.MethodPut, "/account/password", `{"current_password":"not mine","password":"another long one"}`)
	refused.want(t, http.StatusUnprocessableEntity)
	if got := refused.field(t); got != "current_password" {
		t.Errorf("field %q", got)
	}
	other.send(t, http.MethodGet, "/me", "").want(t, http.StatusOK)
	w.send(t, http.MethodPut, "/account/password", fmt.Sprintf(`{"current_password":%q,"password":"another long one"}`, password)).want(t, http.StatusNoContent)
	other.send(t, http.MethodGet, "/me", "").want(t, http.StatusUnauthorized)
	w.send(t, http.MethodGet, "/me", "").want(t, http.StatusOK)

	other = again("another long one")
	w.send(t, http.MethodDelete, "/account/logins", "").want(t, http.StatusNoContent)
	other.send(t, http.MethodGet, "/me", "").want(t, http.StatusUnauthorized)
	w.send(t, http.MethodGet, "/me", "").want(t, http.StatusUnauthorized)

	other = again("another long one")
	other.send(t, http.MethodDelete, "/account/logins/"+other.logins(t)[0].ID, "").want(t, http.StatusNoContent)
	other.send(t, http.MethodGet, "/me", "").want(t, http.StatusUnauthorized)
}

// S11: to ask for a reset or another link tells nothing of an address.
func TestAskingForALinkAnswersAlike(t *testing.T) {
	t.Parallel()
	w := setup(t).member(t, "ada")
	for _, path := range []string{"/account/reset", "/account/verification"} {
		known := w.sendWith(t, "", http.MethodPost, path, `{"email":"ada@example.com"}`)
		unknown := w.sendWith(t, "", http.MethodPost, path, `{"email":"eve@example.com"}`)
		known.want(t, http.StatusAccepted)
		unknown.want(t, http.StatusAccepted)
		if string(known.body) != string(unknown.body) || len(known.header) != len(unknown.header) {
			t.Errorf("%s: a known address answers %s, an unknown one %s", path, known.body, unknown.body)
		}
	}
	w.sendWith(t, "", http.MethodPost, "/account/reset", `{"email":"ada"}`).want(t, http.StatusUnprocessableEntity)
	var last reply
	for range 12 {
		last = w.sendWith(t, "", http.MethodPost, "/account/reset", `{"email":"eve@example.com"}`)
	}
	last.want(t, http.StatusTooManyRequests)
	if last.header.Get("Retry-After") == "" {
		t.Error("nothing says how long to wait")
	}
}

// S12: the token of a link resets a password once.
func TestAPasswordIsResetWithALink(t *testing.T) {
	t.Parallel()
	w := setup(t).member(t, "ada")
	w.sendWith(t, "", http.MethodPost, "/account/reset", `{"email":"ada@example.com"}`).want(t, http.StatusAccepted)
	token := w.linked(t, "/reset/")
	body := fmt.Sprintf(`{"token":%q,"password":"another long one"}`, token)
	w.sendWith(t, "", http.MethodPost, "/account/reset/confirm", body).want(t, http.StatusNoContent)
	w.sendWith(t, "", http.MethodPost, "/account/reset/confirm", body).want(t, http.StatusGone)
	w.send(t, http.MethodGet, "/me", "").want(t, http.StatusUnauthorized)
	w.sendWith(t, "", http.MethodPost, "/login", `{"email":"ada@example.com","password":"another long one"}`).want(t, http.StatusOK)
	entries, err := w.db.DB.Audit.Audit(t.Context(), w.workspace, tenants.AuditFilter{Limit: 10})
	if err != nil || !slices.ContainsFunc(entries, func(e tenants.AuditEntry) bool { return e.Action == tenants.PasswordChanged && e.Actor.From != "" }) {
		t.Errorf("audit %+v (%v)", entries, err)
	}
}

// S12: an address changes once the link that was sent to it is opened.
func TestAnAddressIsChangedWithALink(t *testing.T) {
	t.Parallel()
	w := setup(t).member(t, "ada")
	w.send(t, http.MethodPut, "/account/email", `{"email":"new@example.com","password":"wrong"}`).want(t, http.StatusUnprocessableEntity)
	w.send(t, http.MethodPut, "/account/email", fmt.Sprintf(`{"email":"new@example.com","password":%q}`, password)).want(t, http.StatusAccepted)
	var me struct {
		User struct {
			Email    string
			Verified *string `json:"verified_at"`
		}
	}
	w.send(t, http.MethodGet, "/me", "").decode(t, &me)
	if me.User.Email != "ada@example.com" || me.User.Verified != nil {
		t.Errorf("before: %+v", me)
	}
	body := fmt.Sprintf(`{"token":%q}`, w.linked(t, "/verify/"))
	w.sendWith(t, "", http.MethodPost, "/account/verification/confirm", body).want(t, http.StatusNoContent)
	w.sendWith(t, "", http.MethodPost, "/account/verification/confirm", body).want(t, http.StatusGone)
	w.send(t, http.MethodGet, "/me", "").decode(t, &me)
	if me.User.Email != "new@example.com" || me.User.Verified == nil {
		t.Errorf("after: %+v", me)
	}
}

// linked returns the token of the link in the newest mail that has one.
func (w *tenant) linked(t *testing.T, path string) string {
	t.Helper()
	if err := w.people.AnswerRequests(t.Context()); err != nil {
		t.Fatal(err)
	}
	mails, err := w.db.DB.Mail.Mails(t.Context(), 10)
	if err != nil {
		t.Fatal(err)
	}
	for _, mail := range mails {
		if _, after, found := strings.Cut(mail.Text, path); found {
			return strings.Fields(after)[0]
		}
	}
	t.Fatalf("no link in %d mails", len(mails))
	return ""
}
