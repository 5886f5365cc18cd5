package manage_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pquerna/otp/totp"

	"palimpsest/tenants"
)

func TestLogInNamesTheCodeThatItNeeds(t *testing.T) {
	t.Parallel()
	w := setup(t).member(t, "ada")
	who, err := w.people.Authenticate(t.Context(), w.cookie.Value)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.people.StartSecondFactor(t.Context(), who, password); err != nil {
		t.Fatal(err)
	}
	waiting, err := w.people.SetUp(t.Context(), tenants.User{ID: who.User.ID, Email: who.User.Email})
	if err != nil {
		t.Fatal(err)
	}
	code, err := totp.GenerateCode(waiting.Secret, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	codes, err := w.people.ConfirmSecondFactor(t.Context(), who, code)
	if err != nil {
		t.Fatal(err)
	}

	logIn := func(password, code string) reply {
		return w.sendWith(t, "", http.MethodPost, "/login", fmt.Sprintf(`{"email":"ada@example.com","password":%q,"code":%q}`, password, code))
	}
	for name, given := range map[string][2]string{"no code": {password, ""}, "a used code": {password, code}, "a wrong code": {password, "1"}} {
		answer := logIn(given[0], given[1])
		answer.want(t, http.StatusUnauthorized)
		if len(answer.cookies) > 0 || !strings.Contains(string(answer.body), `"field":"code"`) {
			t.Errorf("%s: %s", name, answer.body)
		}
	}
	answer := logIn("not hers", codes[0])
	answer.want(t, http.StatusUnauthorized)
	if strings.Contains(string(answer.body), `"field"`) {
		t.Errorf("a wrong password tells of the second factor: %s", answer.body)
	}
	answer = logIn(password, codes[0])
	answer.want(t, http.StatusOK)
	if len(answer.cookies) != 1 {
		t.Errorf("%d cookies", len(answer.cookies))
	}
}
