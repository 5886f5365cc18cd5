package manage_test

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/google/uuid"
)

func TestAPersonSignsUpLogsOutAndLogsIn(t *testing.T) {
	t.Parallel()
	w := setup(t).member(t, "ada")
	var me struct {
		User      struct{ Email string }
		Workspace struct{ Name string }
		Role      string
	}
	answer := w.send(t, http.MethodGet, "/me", "")
	answer.want(t, http.StatusOK)
	answer.decode(t, &me)
	if me.User.Email != "ada@example.com" || me.Workspace.Name != "ada" || me.Role != "owner" {
		t.Errorf("me is %+v", me)
	}

	logout := w.send(t, http.MethodPost, "/logout", "")
	logout.want(t, http.StatusNoContent)
	if len(logout.cookies) != 1 || logout.cookies[0].MaxAge >= 0 || logout.cookies[0].Name != w.cookie.Name {
		t.Errorf("logging out sets the cookies %v", logout.cookies)
	}
	w.send(t, http.MethodGet, "/me", "").want(t, http.StatusUnauthorized)
	w.send(t, http.MethodPost, "/logout", "").want(t, http.StatusNoContent)

	login := w.sendWith(t, "", http.MethodPost, "/login", fmt.Sprintf(`{"email":"Ada@Example.com","password":%q}`, password))
	login.want(t, http.StatusOK)
	if len(login.cookies) != 1 || login.cookies[0].Value == w.cookie.Value {
		t.Fatalf("logging in sets the cookies %v", login.cookies)
	}
	w.cookie = login.cookies[0]
	w.send(t, http.MethodGet, "/me", "").want(t, http.StatusOK)
}

func TestWrongLoginsAreRefusedAlike(t *testing.T) {
	t.Parallel()
	w := setup(t).member(t, "ada")
	wrong := w.sendWith(t, "", http.MethodPost, "/login", `{"email":"ada@example.com","password":"not her password"}`)
	unknown := w.sendWith(t, "", http.MethodPost, "/login", `{"email":"eve@example.com","password":"not her password"}`)
	wrong.want(t, http.StatusUnauthorized)
	unknown.want(t, http.StatusUnauthorized)
	if detail(t, wrong) != detail(t, unknown) || len(wrong.cookies)+len(unknown.cookies) > 0 {
		t.Errorf("a wrong password answers %s, an unknown address %s", wrong.body, unknown.body)
	}
	for range 12 {
		wrong = w.sendWith(t, "", http.MethodPost, "/login", `{"email":"ada@example.com","password":"not her password"}`)
	}
	wrong.want(t, http.StatusTooManyRequests)
	if seconds, err := strconv.Atoi(wrong.header.Get("Retry-After")); err != nil || seconds < 1 || !strings.Contains(detail(t, wrong), strconv.Itoa(seconds)) {
		t.Errorf("too many attempts are told %s, Retry-After %q", wrong.body, wrong.header.Get("Retry-After"))
	}
}

func detail(t *testing.T, answer reply) string {
	t.Helper()
	var problem struct{ Detail string }
	answer.decode(t, &problem)
	return problem.Detail
}

func TestSignUpNamesTheFieldAtFault(t *testing.T) {
	t.Parallel()
	w := setup(t).member(t, "ada")
	for name, test := range map[string]struct {
		body   string
		status int
		field  string
	}{
		"taken":        {`{"email":"ADA@example.com","password":"correct horse battery","workspace":"w"}`, http.StatusConflict, "email"},
		"no address":   {`{"email":"ada","password":"correct horse battery","workspace":"w"}`, http.StatusUnprocessableEntity, "email"},
		"short":        {`{"email":"b@example.com","password":"short","workspace":"w"}`, http.StatusUnprocessableEntity, "password"},
		"no workspace": {`{"email":"b@example.com","password":"correct horse battery"}`, http.StatusUnprocessableEntity, "workspace"},
		"unknown":      {`{"email":"b@example.com","passwort":"x"}`, http.StatusUnprocessableEntity, "passwort"},
		"wrong type":   {`{"email":7}`, http.StatusUnprocessableEntity, "email"},
	} {
		answer := w.sendWith(t, "", http.MethodPost, "/signup", test.body)
		answer.want(t, test.status)
		if got := answer.field(t); got != test.field {
			t.Errorf("%s: field %q, want %q", name, got, test.field)
		}
		if len(answer.cookies) > 0 {
			t.Errorf("%s: logs in all the same", name)
		}
	}
}

// S10
func TestTheCookieIsOutOfReachOfScriptsAndOtherSites(t *testing.T) {
	t.Parallel()
	for publicURL, want := range map[string]struct {
		name   string
		secure bool
	}{
		"https://palimpsest.example.com": {"__Host-palimpsest", true},
		"http://palimpsest.example.com":  {"__Host-palimpsest", true},
		"http://127.0.0.1:8080":          {"palimpsest", false},
		"http://localhost:8080":          {"palimpsest", false},
	} {
		cookie := setupAt(t, publicURL, true).member(t, "ada").cookie
		if cookie.Name != want.name || cookie.Secure != want.secure || !cookie.HttpOnly || cookie.SameSite != http.SameSiteLaxMode ||
			cookie.Path != "/" || cookie.Domain != "" {
			t.Errorf("%s: cookie is %s", publicURL, cookie)
		}
	}
}

// S10: whatever the route that changes something.
func TestOtherSitesCannotUseTheCookie(t *testing.T) {
	t.Parallel()
	p := setup(t)
	w := p.member(t, "ada")
	for _, route := range routes(p.echo) {
		method, path, _ := strings.Cut(route, " ")
		if method == http.MethodGet || path == "/billing/webhook" { // of Stripe, which signs and has no cookie
			continue
		}
		path = strings.NewReplacer(":id", uuid.NewString(), ":domain", "none.example", ":model", "x", ":message", "0", ":version", "1").Replace(path)
		w.send(t, method, path, `{}`, "Sec-Fetch-Site", "cross-site", "Origin", "https://evil.example.com").want(t, http.StatusForbidden)
	}
	for _, header := range [][]string{
		{"Sec-Fetch-Site", "cross-site"},
		{"Sec-Fetch-Site", "same-site"},
		{"Origin", "https://evil.example.com"},
	} {
		w.send(t, http.MethodPost, "/keys", `{"name":"planted"}`, header...).want(t, http.StatusForbidden)
		w.send(t, http.MethodPost, "/logout", "", header...).want(t, http.StatusForbidden)
		w.send(t, http.MethodPost, "/login", `{}`, header...).want(t, http.StatusForbidden)
		w.send(t, http.MethodGet, "/keys", "", header...).want(t, http.StatusOK)
	}
	w.send(t, http.MethodPost, "/keys", `{"name":"mine"}`, "Sec-Fetch-Site", "same-origin").want(t, http.StatusCreated)

	// Who holds an API key is no browser that another site steers.
	_, secret := w.createKey(t, "manage")
	request := w.build(t, http.MethodPost, "/keys", `{"name":"scripted"}`, "Sec-Fetch-Site", "cross-site", "X-Api-Key", secret)
	do(t, request).want(t, http.StatusCreated)
}

func TestBadRequestsAreExplained(t *testing.T) {
	t.Parallel()
	w := setup(t).member(t, "ada")
	large := `{"name":"` + strings.Repeat("x", 1<<20) + `"}`
	for name, test := range map[string]struct {
		method, path, body, media string
		status                    int
		says                      string
	}{
		"not JSON":       {http.MethodPost, "/keys", `{"name"`, "", http.StatusBadRequest, "not valid JSON"},
		"empty":          {http.MethodPost, "/keys", " ", "", http.StatusBadRequest, "empty"},
		"two objects":    {http.MethodPost, "/keys", `{"name":"a"}{}`, "", http.StatusBadRequest, "goes on"},
		"a list":         {http.MethodPost, "/keys", `[]`, "", http.StatusUnprocessableEntity, "object"},
		"a bad time":     {http.MethodPost, "/keys", `{"name":"a","expires_at":"soon"}`, "", http.StatusBadRequest, "soon"},
		"too large":      {http.MethodPost, "/keys", large, "", http.StatusRequestEntityTooLarge, "1 MiB"},
		"a form":         {http.MethodPost, "/keys", "name=a", "application/x-www-form-urlencoded", http.StatusUnsupportedMediaType, "application/json"},
		"unknown route":  {http.MethodGet, "/nothing", "", "", http.StatusNotFound, "openapi.yaml"},
		"no id":          {http.MethodDelete, "/keys/7", "", "", http.StatusNotFound, "nothing with this id"},
		"wrong method":   {http.MethodPatch, "/keys", "{}", "", http.StatusNotFound, "openapi.yaml"},
		"unknown query":  {http.MethodGet, "/sessions?page=2", "", "", http.StatusUnprocessableEntity, "known are q"},
		"bad limit":      {http.MethodGet, "/sessions?limit=0", "", "", http.StatusUnprocessableEntity, "1 to 200"},
		"bad time":       {http.MethodGet, "/requests?from=yesterday", "", "", http.StatusUnprocessableEntity, "2026-01-31"},
		"times reversed": {http.MethodGet, "/usage?from=2026-02-01&to=2026-01-01", "", "", http.StatusUnprocessableEntity, "before from"},
		"bad dimension":  {http.MethodGet, "/usage?by=moon", "", "", http.StatusUnprocessableEntity, "day, key, member, project, model, client"},
		"bad cursor":     {http.MethodGet, "/sessions?cursor=x", "", "", http.StatusUnprocessableEntity, "next_cursor"},
		"bad cursor 2":   {http.MethodGet, "/requests?cursor=x", "", "", http.StatusUnprocessableEntity, "cursor"},
		"bad session":    {http.MethodGet, "/requests?session=x", "", "", http.StatusUnprocessableEntity, "session"},
	} {
		request := w.build(t, test.method, test.path, test.body)
		if test.media != "" {
			request.Header.Set("Content-Type", test.media)
		}
		request.AddCookie(w.cookie)
		answer := do(t, request)
		answer.want(t, test.status)
		if !bytes.Contains(answer.body, []byte(test.says)) {
			t.Errorf("%s: %s does not say %q", name, answer.body, test.says)
		}
	}
}
