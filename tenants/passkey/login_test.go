package passkey_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/descope/virtualwebauthn"
	"github.com/google/uuid"

	"palimpsest/tenants"
	"palimpsest/tenants/identity"
	"palimpsest/tenants/passkey"
)

func TestPasskeyLogsInWithoutAPasswordAndAfterIt(t *testing.T) {
	t.Parallel()
	h := setup(t).withPasskey(t, "ada@example.com")
	token, err := h.logIn(t)
	if err != nil {
		t.Fatal(err)
	}
	h.is(t, token)

	pending := h.pending(t)
	options, held, err := h.service.AskSecond(t.Context(), pending)
	if err != nil {
		t.Fatal(err)
	}
	if parsed, err := virtualwebauthn.ParseAssertionOptions(string(options)); err != nil || len(parsed.AllowCredentials) != 1 || !h.key.IsAllowedForAssertion(*parsed) {
		t.Errorf("asked for %s, %v", options, err)
	}
	// The password has told who it is, so the device need not verify them.
	h.device.Options.UserNotVerified = true
	if token, err = h.service.LogInSecond(t.Context(), pending, held, h.assert(t, options), "test"); err != nil {
		t.Fatal(err)
	}
	h.is(t, token)
	if passkeys, _, err := h.service.List(t.Context(), h.who.User.ID); err != nil || !passkeys[0].UsedAt.Equal(h.clock.Now()) {
		t.Errorf("last used %v, %v", passkeys[0].UsedAt, err)
	}
}

// What discoverable log-ins are asked names nobody.
func TestStrangersLearnNothingFromWhatTheyAreAsked(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.withPasskey(t, "ada@example.com")
	options, _ := b.ask(t)
	if parsed, err := virtualwebauthn.ParseAssertionOptions(string(options)); err != nil || len(parsed.AllowCredentials) != 0 || parsed.RelyingPartyID != "palimpsest.example" {
		t.Errorf("asked for %s, %v", options, err)
	}
}

func TestPasswordAloneDoesNotLogInWhoHasAPasskey(t *testing.T) {
	t.Parallel()
	h := setup(t).withPasskey(t, "ada@example.com")
	pending := h.pending(t)
	if factors, err := h.people.PendingFactors(t.Context(), pending); err != nil || factors != (tenants.Factors{Passkeys: 1, Left: tenants.RecoveryCodes}) {
		t.Errorf("asked for %+v, %v", factors, err)
	}
	if _, _, err := h.people.LogInWithCode(t.Context(), pending, "123456", "test"); !errors.Is(err, tenants.ErrWrongLogin) {
		t.Errorf("six digits without an app: %v", err)
	}
	for i, want := range []error{nil, tenants.ErrWrongLogin} { // S12: single use
		if _, _, err := h.people.LogInWithCode(t.Context(), pending, h.codes[0], "test"); !errors.Is(err, want) {
			t.Errorf("a recovery code, time %d: %v", i+1, err)
		}
	}
	// S9: what waits ends with the password.
	_, held, err := h.service.AskSecond(t.Context(), pending)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.people.ChangePassword(t.Context(), h.who, password, "another long password"); err != nil {
		t.Fatal(err)
	}
	if _, err := h.service.LogInSecond(t.Context(), pending, held, "{}", "test"); !errors.Is(err, tenants.ErrLoginEnded) {
		t.Errorf("a log-in that began with the old password: %v", err)
	}
	if _, _, err := h.service.AskSecond(t.Context(), pending); !errors.Is(err, tenants.ErrLoginEnded) {
		t.Errorf("asked for a log-in that began with the old password: %v", err)
	}
}

// A challenge is good once, for some minutes, for the browser that holds it and for
// what it was made for.
func TestChallengeIsAnsweredOnce(t *testing.T) {
	t.Parallel()
	h := setup(t).withPasskey(t, "ada@example.com")
	options, held := h.ask(t)
	answer := h.assert(t, options)
	_, another := h.ask(t)
	pending := h.pending(t)
	_, second, err := h.service.AskSecond(t.Context(), pending)
	if err != nil {
		t.Fatal(err)
	}
	for name, given := range map[string]string{"nothing": "", "another challenge": another, "a second factor's": second} {
		if _, err := h.service.LogIn(t.Context(), given, answer, "test"); !errors.Is(err, tenants.ErrPasskey) {
			t.Errorf("a browser that holds %s: %v", name, err)
		}
	}
	if _, err := h.service.LogInSecond(t.Context(), pending, held, answer, "test"); !errors.Is(err, tenants.ErrPasskey) {
		t.Errorf("as second factor: %v", err)
	}
	for i, want := range []error{nil, tenants.ErrPasskey} {
		if _, err := h.service.LogIn(t.Context(), held, answer, "test"); !errors.Is(err, want) {
			t.Errorf("time %d: %v", i+1, err)
		}
	}
	h.clock.advance(20 * time.Minute) // and the throttle forgets
	if _, err := h.service.LogIn(t.Context(), held, answer, "test"); !errors.Is(err, tenants.ErrPasskey) {
		t.Errorf("long after: %v", err)
	}
	options, held = h.ask(t)
	answer = h.assert(t, options)
	h.clock.advance(tenants.PasskeyAge + time.Second)
	if _, err := h.service.LogIn(t.Context(), held, answer, "test"); !errors.Is(err, tenants.ErrPasskey) {
		t.Errorf("too late: %v", err)
	}
}

func TestOnlyOneOfManyEqualAnswersLogsIn(t *testing.T) {
	t.Parallel()
	h := setup(t).withPasskey(t, "ada@example.com")
	options, held := h.ask(t)
	answer := h.assert(t, options)
	var opened atomic.Int64
	var group sync.WaitGroup
	for range 6 {
		group.Go(func() {
			_, err := h.service.LogIn(t.Context(), held, answer, "test")
			if err == nil {
				opened.Add(1)
			} else if !errors.Is(err, tenants.ErrPasskey) {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if opened.Load() != 1 {
		t.Errorf("one answer opened %d logins", opened.Load())
	}
}

func TestAnswerThatProvesNothingIsRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	h, eve := b.withPasskey(t, "ada@example.com"), b.withPasskey(t, "eve@example.com")
	stranger := newKey()
	tries := 0
	for name, change := range map[string]func(*holder){
		"another site":      func(h *holder) { h.site.Origin = "https://evil.example" },
		"another site's id": func(h *holder) { h.site.ID = "evil.example" },
		"nobody verified":   func(h *holder) { h.device.Options.UserNotVerified = true },
		"nobody there":      func(h *holder) { h.device.Options.UserNotPresent = true },
		"an unknown key":    func(h *holder) { h.key = stranger },
		"another's key":     func(h *holder) { h.key = eve.key },
		"a forged key":      func(h *holder) { h.key.Key = stranger.Key },
		"no person":         func(h *holder) { h.device.Options.UserHandle = nil },
		"an unknown person": func(h *holder) { id := uuid.New(); h.device.Options.UserHandle = id[:] },
		"another person":    func(h *holder) { h.device.Options.UserHandle = eve.who.User.ID[:] },
		"a synced key now":  func(h *holder) { h.device.Options.BackupEligible = true },
	} {
		changed := *h
		change(&changed)
		if token, err := changed.logIn(t); !errors.Is(err, tenants.ErrPasskey) || token != "" {
			t.Errorf("%s: %v", name, err)
		}
		if tries++; tries%5 == 0 {
			b.clock.advance(20 * time.Minute) // the throttle forgets
		}
	}
	options, held, err := eve.service.AskSecond(t.Context(), eve.pending(t))
	if err != nil {
		t.Fatal(err)
	}
	// Someone who knows both passwords answers for the one with the other's key.
	if _, err := h.service.LogInSecond(t.Context(), h.pending(t), held, eve.assert(t, options), "test"); !errors.Is(err, tenants.ErrPasskey) {
		t.Errorf("what another was asked: %v", err)
	}
	if _, err := h.logIn(t); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// S11
func TestRefusedPasskeysAreSlowedDown(t *testing.T) {
	t.Parallel()
	h := setup(t).withPasskey(t, "ada@example.com")
	from := tenants.WithActor(t.Context(), tenants.Actor{From: "203.0.113.7"})
	for range 10 {
		if _, err := h.service.LogIn(from, "", "{}", "test"); !errors.Is(err, tenants.ErrPasskey) {
			t.Fatal(err)
		}
	}
	options, held := h.ask(t)
	answer := h.assert(t, options)
	_, err := h.service.LogIn(from, held, answer, "test")
	if many, is := errors.AsType[tenants.TooMany](err); !is || many.Wait <= 0 {
		t.Errorf("after ten refused ones: %v", err)
	}
	if _, err := h.service.LogIn(t.Context(), held, answer, "test"); err != nil {
		t.Errorf("from elsewhere: %v", err)
	}
}

// A count that does not rise tells of a copy: from then on neither logs anybody in.
func TestCopiedPasskeyIsFoundOut(t *testing.T) {
	t.Parallel()
	h := setup(t).withPasskey(t, "ada@example.com")
	for _, count := range []uint32{5, 6} {
		h.key.Counter = count
		if _, err := h.logIn(t); err != nil {
			t.Fatalf("count %d: %v", count, err)
		}
	}
	for _, count := range []uint32{6, 100} {
		h.key.Counter = count
		if token, err := h.logIn(t); !errors.Is(err, tenants.ErrPasskeyCopied) || !errors.Is(err, tenants.ErrPasskey) || token != "" {
			t.Errorf("count %d after 6: %v", count, err)
		}
	}
	pending := h.pending(t)
	options, held, err := h.service.AskSecond(t.Context(), pending)
	if err != nil {
		t.Fatal(err)
	}
	h.key.Counter = 200
	if _, err := h.service.LogInSecond(t.Context(), pending, held, h.assert(t, options), "test"); !errors.Is(err, tenants.ErrPasskeyCopied) {
		t.Errorf("as second factor: %v", err)
	}
	passkeys, _, err := h.service.List(t.Context(), h.who.User.ID)
	if err != nil || passkeys[0].CopiedAt.IsZero() || passkeys[0].SignCount != 6 || h.noted(t, tenants.PasskeyCopied) != 1 {
		t.Errorf("%+v, noted %d times, %v", passkeys, h.noted(t, tenants.PasskeyCopied), err)
	}
	if _, _, err := h.people.LogInWithCode(t.Context(), pending, h.codes[2], "test"); err != nil {
		t.Errorf("a recovery code: %v", err)
	}
}

func TestWhoMustVerifyTheirAddressFirstIsRefused(t *testing.T) {
	t.Parallel()
	h := setup(t).withPasskey(t, "ada@example.com")
	h.people.SetMails(identity.Mails{PublicURL: origin, RequireVerified: true})
	if token, err := h.logIn(t); !errors.Is(err, tenants.ErrPasskey) || token != "" {
		t.Errorf("an unverified address: %v", err)
	}
	if err := h.DB.Accounts.VerifyUser(t.Context(), h.who.User.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := h.logIn(t); err != nil {
		t.Errorf("a verified one: %v", err)
	}
}

func TestPasskeysAreForTheNameInThePublicURL(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"https://palimpsest.example":      "https://palimpsest.example",
		"https://Palimpsest.Example:8443": "https://palimpsest.example:8443",
		"http://localhost:8080":           "http://localhost:8080",
		"http://127.0.0.1:8080":           "http://localhost:8080",
		"http://[::1]:8080":               "http://localhost:8080",
		"http://palimpsest.example":       "",
		"https://192.0.2.7":               "",
		"https://[2001:db8::1]:8080":      "",
		"":                                "",
		"::":                              "",
	} {
		service := passkey.New(passkey.Config{PublicURL: url})
		if service.Origin() != want || service.IsOn() != (want != "") {
			t.Errorf("%s: %q, on %v", url, service.Origin(), service.IsOn())
		}
		if want != "" {
			continue
		}
		if _, _, err := service.Ask(); !errors.Is(err, tenants.ErrPasskey) {
			t.Errorf("%s: asks, %v", url, err)
		}
	}
}
