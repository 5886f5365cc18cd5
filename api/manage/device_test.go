package manage_test

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"palimpsest/tenants"
)

// terminal is a terminal that logs in, with a clock of its own.
type terminal struct {
	*product

	now          time.Time
	user, device string
}

func (p *product) terminal(t *testing.T, machine string) *terminal {
	t.Helper()
	one := &terminal{product: p, now: time.Now()}
	p.devices.Now = func() time.Time { return one.now }
	answer := one.form(t, "/login/device", "client_id", "palimpsest", "machine", machine)
	answer.want(t, http.StatusOK)
	var codes struct {
		Device string `json:"device_code"`
		User   string `json:"user_code"`
		Page   string `json:"verification_uri"`
		Whole  string `json:"verification_uri_complete"`
	}
	answer.decode(t, &codes)
	if !strings.HasSuffix(codes.Page, "/device") || codes.Whole != "" || len(codes.User) != 9 || len(codes.Device) < 40 {
		t.Fatalf("codes %s", answer.body)
	}
	one.user, one.device = codes.User, codes.Device
	return one
}

// form sends a form without any credentials.
func (p *product) form(t *testing.T, path string, values ...string) reply {
	t.Helper()
	form := url.Values{}
	for i := 0; i+1 < len(values); i += 2 {
		form.Add(values[i], values[i+1])
	}
	request := p.build(t, http.MethodPost, path, form.Encode(), "Content-Type", "application/x-www-form-urlencoded")
	return exchange(t, request)
}

// poll asks for the token. It returns the error, or the secret.
func (o *terminal) poll(t *testing.T) (word, secret string) {
	t.Helper()
	answer := o.form(t, "/login/token", "grant_type", "urn:ietf:params:oauth:grant-type:device_code", "client_id", "palimpsest", "device_code", o.device)
	var said struct {
		Error  string
		Secret string `json:"access_token"`
	}
	answer.decode(t, &said)
	if want := map[bool]int{true: http.StatusOK, false: http.StatusBadRequest}[said.Error == ""]; answer.status != want || answer.header.Get("Cache-Control") != "no-store" {
		t.Fatalf("status %d, %v: %s", answer.status, answer.header, answer.body)
	}
	return said.Error, said.Secret
}

// wants polls when the terminal may, and fails the test unless the answer is an error.
func (o *terminal) wants(t *testing.T, word string) {
	t.Helper()
	o.now = o.now.Add(30 * time.Second)
	if got, _ := o.poll(t); got != word {
		t.Fatalf("the answer is %q, want %q", got, word)
	}
}

// as returns a context of a person, who asks from an address.
func (w *tenant) as(t *testing.T, from string) (context.Context, tenants.DeviceDecision) {
	t.Helper()
	user := uuid.MustParse(w.userID(t))
	ctx := tenants.WithActor(t.Context(), tenants.Actor{User: user, Name: "person@example.com", From: from})
	return ctx, tenants.DeviceDecision{User: user, Email: "person@example.com", Workspace: w.workspace, Name: "ant"}
}

func (o *terminal) decide(t *testing.T, who *tenant, denied bool) {
	t.Helper()
	ctx, decision := who.as(t, "192.0.2.1")
	if denied {
		decision = tenants.DeviceDecision{Denied: true}
	}
	if _, err := o.devices.Decide(ctx, strings.ToLower(o.user), decision); err != nil {
		t.Fatal(err)
	}
}

// S53: a terminal gets a key once a person allows it, once, and may end it itself.
func TestTerminalLogsInAndOut(t *testing.T) {
	t.Parallel()
	p := setup(t)
	w := p.member(t, "ant")
	member := w.colleague(t, tenants.Regular)
	one := p.terminal(t, "ada's laptop")
	one.wants(t, "authorization_pending")
	one.decide(t, member, false)
	one.now = one.now.Add(30 * time.Second)
	word, secret := one.poll(t)
	if word != "" || !strings.HasPrefix(secret, tenants.KeyStart) {
		t.Fatalf("the answer is %q, %q", word, secret)
	}
	one.wants(t, "expired_token") // the second time

	var me struct {
		Key struct {
			Name   string
			Scopes []string
		}
	}
	answer := w.sendWith(t, secret, http.MethodGet, "/me", "")
	answer.want(t, http.StatusOK)
	answer.decode(t, &me)
	if me.Key.Name != "ada's laptop" || strings.Join(me.Key.Scopes, " ") != "proxy recall read sessions" {
		t.Errorf("the key is %+v", me.Key)
	}
	answer = w.send(t, http.MethodGet, "/audit?action=key.created", "")
	if !strings.Contains(string(answer.body), "ada's laptop") || !strings.Contains(string(answer.body), "person@example.com") {
		t.Errorf("audited is %s", answer.body)
	}

	w.send(t, http.MethodDelete, "/keys/self", "").want(t, http.StatusForbidden)
	w.sendWith(t, secret, http.MethodDelete, "/keys/self", "").want(t, http.StatusNoContent)
	p.keys.Changed(w.workspace.String())
	w.sendWith(t, secret, http.MethodGet, "/me", "").want(t, http.StatusUnauthorized)
}

// S53
func TestTerminalGetsNoKeyThatNobodyAllows(t *testing.T) {
	t.Parallel()
	p := setup(t)
	w := p.member(t, "ant")
	viewer, demoted := w.colleague(t, tenants.Viewer), w.colleague(t, tenants.Admin)

	denied := p.terminal(t, "laptop")
	denied.decide(t, w, true)
	denied.wants(t, "access_denied")

	byViewer := p.terminal(t, "laptop")
	byViewer.decide(t, viewer, false) // the page offers them no workspace
	byViewer.wants(t, "access_denied")
	byViewer.wants(t, "expired_token")

	later := p.terminal(t, "laptop")
	later.decide(t, demoted, false)
	w.changeRole(t, demoted, tenants.Viewer)
	later.wants(t, "access_denied")

	late := p.terminal(t, "laptop")
	late.now = late.now.Add(tenants.DeviceLoginAge)
	late.wants(t, "expired_token")
	ctx, decision := w.as(t, "192.0.2.1")
	if _, err := late.devices.Decide(ctx, late.user, decision); !isInvalid(err) {
		t.Errorf("an expired code: %v", err)
	}

	twice := p.terminal(t, "laptop")
	twice.decide(t, w, true)
	if _, err := twice.devices.Decide(ctx, twice.user, decision); !isInvalid(err) {
		t.Errorf("a decision after the first one: %v", err)
	}
	twice.wants(t, "access_denied")
	if keys := w.scopesOf(t); len(keys) != 0 {
		t.Errorf("keys were made: %v", keys)
	}
}

// S53: the user code is short, and so never opens what the device code opens.
func TestUserCodeIsNotADeviceCode(t *testing.T) {
	t.Parallel()
	p := setup(t)
	w := p.member(t, "ant")
	one := p.terminal(t, "laptop")
	one.decide(t, w, false)
	for _, code := range []string{one.user, strings.ReplaceAll(one.user, "-", ""), "nothing"} {
		guess := terminal{product: p, now: one.now, device: code}
		guess.wants(t, "expired_token")
	}
	ctx, _ := w.as(t, "192.0.2.1")
	if _, err := p.devices.Find(ctx, one.device); !isInvalid(err) {
		t.Errorf("the device code as a user code: %v", err)
	}
}

// S53
func TestTerminalThatAsksTooOftenIsSlowedDown(t *testing.T) {
	t.Parallel()
	p := setup(t)
	one := p.terminal(t, "laptop")
	one.wants(t, "authorization_pending")
	for range 2 { // each adds five seconds, to 15
		one.now = one.now.Add(time.Second)
		if word, _ := one.poll(t); word != "slow_down" {
			t.Fatalf("the answer is %q", word)
		}
	}
	one.now = one.now.Add(14 * time.Second)
	if word, _ := one.poll(t); word != "slow_down" {
		t.Fatalf("after 14 seconds the answer is %q", word)
	}
	one.now = one.now.Add(20 * time.Second)
	if word, _ := one.poll(t); word != "authorization_pending" {
		t.Fatalf("after 20 seconds the answer is %q", word)
	}
}

// S53: guesses are bounded for each person and each place, and so are terminals of a place.
func TestGuessesOfTerminalCodesAreBounded(t *testing.T) {
	t.Parallel()
	p := setup(t)
	w, other := p.member(t, "ant"), p.member(t, "bee")
	one := p.terminal(t, "laptop")
	wrong, _ := w.as(t, "192.0.2.1")
	for i := range 10 {
		if _, err := p.devices.Find(wrong, "BBBB-BBBB"); !isInvalid(err) {
			t.Fatalf("guess %d: %v", i, err)
		}
	}
	elsewhere, _ := w.as(t, "192.0.2.2")
	neighbor, _ := other.as(t, "192.0.2.1")
	for name, ctx := range map[string]context.Context{"person": elsewhere, "place": neighbor} {
		if _, err := p.devices.Find(ctx, one.user); !errors.Is(err, tenants.ErrTooMany) {
			t.Errorf("the right code after ten wrong ones of the %s: %v", name, err)
		}
	}
	free, _ := other.as(t, "192.0.2.2")
	if _, err := p.devices.Find(free, one.user); err != nil {
		t.Errorf("someone else elsewhere: %v", err)
	}

	for range 19 {
		p.form(t, "/login/device", "client_id", "palimpsest", "machine", "laptop").want(t, http.StatusOK)
	}
	p.form(t, "/login/device", "client_id", "palimpsest", "machine", "laptop").want(t, http.StatusTooManyRequests)
}

func TestBadTerminalLoginsSayWhatIsWrong(t *testing.T) {
	t.Parallel()
	p := setup(t)
	for _, bad := range []struct {
		path, says string
		values     []string
	}{
		{"/login/device", "invalid_request", []string{"client_id", "palimpsest", "machine", "a\nb"}},
		{"/login/device", "invalid_request", []string{"client_id", "palimpsest", "machine", strings.Repeat("é", 81)}},
		{"/login/device", "invalid_request", []string{"machine", "laptop"}},
		{"/login/token", "unsupported_grant_type", []string{"grant_type", "password"}},
		{"/login/token", "invalid_request", []string{"grant_type", "urn:ietf:params:oauth:grant-type:device_code"}},
	} {
		answer := p.form(t, bad.path, bad.values...)
		if answer.status != http.StatusBadRequest || !strings.Contains(string(answer.body), bad.says) {
			t.Errorf("%s with %q: status %d: %s", bad.path, bad.values, answer.status, answer.body)
		}
	}
	p.form(t, "/login/device", "client_id", "a", "client_id", "b").want(t, http.StatusBadRequest)
	request := p.build(t, http.MethodPost, "/login/device", "{}")
	exchange(t, request).want(t, http.StatusUnsupportedMediaType)
	request = p.build(t, http.MethodPost, "/login/device", "client_id=a&machine=b", "Content-Type", "application/x-www-form-urlencoded", "Sec-Fetch-Site", "cross-site")
	exchange(t, request).want(t, http.StatusForbidden)
}

// S34: the scope sessions changes sessions and nothing else.
func TestKeyForSessionsChangesSessionsOnly(t *testing.T) {
	t.Parallel()
	w := setup(t).tenant(t, "ant")
	_, secret := w.createKey(t, "sessions")
	w.sendWith(t, secret, http.MethodPost, w.path("/pins"), `{"message":2}`).want(t, http.StatusOK)
	w.sendWith(t, secret, http.MethodDelete, w.path("/pins/2"), "").want(t, http.StatusNoContent)
	w.sendWith(t, secret, http.MethodGet, w.path(""), "").want(t, http.StatusForbidden)
	w.sendWith(t, secret, http.MethodDelete, w.path(""), "").want(t, http.StatusForbidden)
	w.sendWith(t, secret, http.MethodPost, "/keys", `{"name":"another"}`).want(t, http.StatusForbidden)
}

func isInvalid(err error) bool {
	_, is := errors.AsType[tenants.Invalid](err)
	return is
}
