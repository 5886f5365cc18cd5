package passkey_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/pquerna/otp/totp"

	"palimpsest/tenants"
)

// S9, S32
func TestRemovedPasskeyLogsNobodyInAndEndsOtherLogins(t *testing.T) {
	t.Parallel()
	h := setup(t).withPasskey(t, "ada@example.com")
	other := mustLogIn(t, h)
	passkeys, _, err := h.service.List(t.Context(), h.who.User.ID)
	if err != nil {
		t.Fatal(err)
	}
	id := passkeys[0].ID
	if err := h.service.Remove(t.Context(), h.who, id, "not hers"); !strings.Contains(err.Error(), "password") {
		t.Errorf("a wrong password: %v", err)
	}
	if err := h.service.Remove(t.Context(), h.who, uuid.New(), password); !errors.Is(err, tenants.ErrNotFound) {
		t.Errorf("no passkey: %v", err)
	}
	if err := h.service.Remove(t.Context(), h.who, id, password); err != nil {
		t.Fatal(err)
	}
	if _, err := h.people.Authenticate(t.Context(), other); !errors.Is(err, tenants.ErrLoginEnded) {
		t.Errorf("another login: %v", err)
	}
	if _, err := h.logIn(t); !errors.Is(err, tenants.ErrPasskey) {
		t.Errorf("the passkey: %v", err)
	}
	if _, token, err := h.people.LogIn(t.Context(), "ada@example.com", password, "here", "test"); err != nil || token == "" {
		t.Errorf("the password alone: %v", err)
	}
	if factors, err := h.DB.Factors.FactorsOf(t.Context(), h.who.User.ID); err != nil || factors != (tenants.Factors{}) {
		t.Errorf("left: %+v, %v", factors, err)
	}
	if got := h.noted(t, tenants.PasskeyRemoved); got != 1 {
		t.Errorf("noted %d times", got)
	}
}

func TestPasskeysOfOthersAreNotThere(t *testing.T) {
	t.Parallel()
	b := setup(t)
	h, eve := b.withPasskey(t, "ada@example.com"), b.signUp(t, "eve@example.com")
	passkeys, _, err := h.service.List(t.Context(), h.who.User.ID)
	if err != nil {
		t.Fatal(err)
	}
	if err := eve.service.Remove(t.Context(), eve.who, passkeys[0].ID, password); !errors.Is(err, tenants.ErrNotFound) {
		t.Errorf("removed: %v", err)
	}
	if err := eve.service.Rename(t.Context(), eve.who, passkeys[0].ID, "mine"); !errors.Is(err, tenants.ErrNotFound) {
		t.Errorf("renamed: %v", err)
	}
	if others, _, err := eve.service.List(t.Context(), eve.who.User.ID); err != nil || len(others) != 0 {
		t.Errorf("listed: %+v, %v", others, err)
	}
	if _, err := h.logIn(t); err != nil {
		t.Error(err)
	}
}

func TestRenamedPasskeyIsNoted(t *testing.T) {
	t.Parallel()
	h := setup(t).withPasskey(t, "ada@example.com")
	passkeys, _, err := h.service.List(t.Context(), h.who.User.ID)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"Blue key", "Blue key"} {
		if err := h.service.Rename(t.Context(), h.who, passkeys[0].ID, name); err != nil {
			t.Fatal(err)
		}
	}
	if err := h.service.Rename(t.Context(), h.who, passkeys[0].ID, " "); err == nil {
		t.Error("no name is taken")
	}
	passkeys, _, err = h.service.List(t.Context(), h.who.User.ID)
	if err != nil || passkeys[0].Name != "Blue key" || h.noted(t, tenants.PasskeyRenamed) != 1 {
		t.Errorf("named %q, noted %d times, %v", passkeys[0].Name, h.noted(t, tenants.PasskeyRenamed), err)
	}
}

// A second factor of one kind keeps the recovery codes that one of the other kind gave.
func TestRecoveryCodesGoWithTheLastFactor(t *testing.T) {
	t.Parallel()
	h := setup(t).withPasskey(t, "ada@example.com")
	if err := h.people.StartSecondFactor(t.Context(), h.who, password); err != nil {
		t.Fatal(err)
	}
	waiting, err := h.people.SetUp(t.Context(), h.who.User)
	if err != nil {
		t.Fatal(err)
	}
	code := func() string {
		code, err := totp.GenerateCode(waiting.Secret, h.clock.Now())
		if err != nil {
			t.Fatal(err)
		}
		return code
	}
	if _, err := h.people.ConfirmSecondFactor(t.Context(), h.who, code()); err != nil {
		t.Fatal(err)
	}
	h.clock.advance(time.Minute)
	if _, _, err := h.people.LogInWithCode(t.Context(), h.pending(t), h.codes[0], "test"); !errors.Is(err, tenants.ErrWrongLogin) {
		t.Errorf("a code from before the app: %v", err)
	}
	if _, err := h.service.RenewCodes(t.Context(), h.who, password); !errors.Is(err, tenants.ErrNotFound) {
		t.Errorf("new codes for the password alone, with an app: %v", err)
	}
	if _, err := h.logIn(t); err != nil {
		t.Errorf("the passkey alone, with an app: %v", err)
	}
	if err := h.people.RemoveSecondFactor(t.Context(), h.who, password, code()); err != nil {
		t.Fatal(err)
	}
	if factors, err := h.DB.Factors.FactorsOf(t.Context(), h.who.User.ID); err != nil || factors != (tenants.Factors{Passkeys: 1, Left: tenants.RecoveryCodes}) {
		t.Errorf("without the app: %+v, %v", factors, err)
	}
	others, err := h.service.RenewCodes(t.Context(), h.who, password)
	if err != nil || len(others) != tenants.RecoveryCodes {
		t.Fatalf("new codes: %v, %v", others, err)
	}
	if _, err := h.service.RenewCodes(t.Context(), h.who, "not hers"); err == nil {
		t.Error("a wrong password gives new codes")
	}
	if _, _, err := h.people.LogInWithCode(t.Context(), h.pending(t), others[1], "test"); err != nil {
		t.Errorf("a new code: %v", err)
	}
}
