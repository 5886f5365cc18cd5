package identity_test

import (
	"bytes"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pquerna/otp/totp"

	"palimpsest/tenants"
	"palimpsest/tenants/rotation"
	"palimpsest/tenants/vault"
)

// guarded is someone with a second factor.
type guarded struct {
	*bundle

	vault  *vault.Vault
	who    tenants.Principal
	secret string
	codes  []string // recovery codes
}

func withFactor(t *testing.T) *guarded {
	t.Helper()
	g := &guarded{bundle: setup(t)}
	var err error
	if g.vault, err = vault.New([][]byte{bytes.Repeat([]byte("v"), 32)}); err != nil {
		t.Fatal(err)
	}
	g.service.SetSealer(g.vault)
	g.who, _ = g.signUp(t, "ada@example.com")
	if err := g.service.StartSecondFactor(t.Context(), g.who, password); err != nil {
		t.Fatal(err)
	}
	waiting, err := g.service.SetUp(t.Context(), g.who.User)
	if err != nil {
		t.Fatal(err)
	}
	g.secret = waiting.Secret
	if g.codes, err = g.service.ConfirmSecondFactor(t.Context(), g.who, g.code(t)); err != nil {
		t.Fatal(err)
	}
	g.clock.advance(time.Minute) // to a step whose code was not used
	return g
}

// code returns what the app shows now.
func (g *guarded) code(t *testing.T) string {
	t.Helper()
	code, err := totp.GenerateCode(g.secret, g.clock.Now())
	if err != nil {
		t.Fatal(err)
	}
	return code
}

// pending logs in with the password.
func (g *guarded) pending(t *testing.T) string {
	t.Helper()
	_, token, err := g.service.LogIn(t.Context(), "ada@example.com", password, "here", "test")
	needed, is := errors.AsType[tenants.CodeNeeded](err)
	if !is || token != "" {
		t.Fatalf("the password alone gives %q, %v", token, err)
	}
	return needed.Pending
}

func TestPasswordAloneDoesNotLogInWhoHasASecondFactor(t *testing.T) {
	t.Parallel()
	g := withFactor(t)
	pending := g.pending(t)
	if _, err := g.service.Authenticate(t.Context(), pending); !errors.Is(err, tenants.ErrLoginEnded) {
		t.Errorf("the pending token as a login: %v", err)
	}
	_, token, err := g.service.LogInWithCode(t.Context(), pending, " "+g.code(t)[:3]+" "+g.code(t)[3:], "test")
	if err != nil {
		t.Fatal(err)
	}
	if who, err := g.service.Authenticate(t.Context(), token); err != nil || who.User.ID != g.who.User.ID {
		t.Errorf("the token is of %v, %v", who.User, err)
	}
	if _, _, err := g.service.LogInWithCode(t.Context(), token, g.code(t), "test"); !errors.Is(err, tenants.ErrLoginEnded) {
		t.Errorf("a login's token as a pending one: %v", err)
	}
}

func TestCodeIsAcceptedOnceAlsoOfManyAtOnce(t *testing.T) {
	t.Parallel()
	g := withFactor(t)
	pending, code := g.pending(t), g.code(t)
	var mu sync.Mutex
	var opened int
	var group sync.WaitGroup
	for range 6 {
		group.Go(func() {
			_, _, err := g.service.LogInWithCode(t.Context(), pending, code, "test")
			if err != nil && !errors.Is(err, tenants.ErrWrongLogin) {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				opened++
			}
		})
	}
	group.Wait()
	if opened != 1 {
		t.Errorf("one code opened %d logins", opened)
	}
}

func TestCodeOfAnotherTimeIsWrong(t *testing.T) {
	t.Parallel()
	g := withFactor(t)
	pending, code := g.pending(t), g.code(t)
	g.clock.advance(90 * time.Second)
	if _, _, err := g.service.LogInWithCode(t.Context(), pending, code, "test"); !errors.Is(err, tenants.ErrWrongLogin) {
		t.Errorf("a code that is 90 seconds old: %v", err)
	}
	g.clock.advance(tenants.PendingAge)
	if _, _, err := g.service.LogInWithCode(t.Context(), pending, g.code(t), "test"); !errors.Is(err, tenants.ErrLoginEnded) {
		t.Errorf("a pending log-in that is too old: %v", err)
	}
}

// S11
func TestGuessingCodesIsSlowedDown(t *testing.T) {
	t.Parallel()
	g := withFactor(t)
	pending := g.pending(t)
	for range 5 {
		if _, _, err := g.service.LogInWithCode(t.Context(), pending, "00000x", "test"); !errors.Is(err, tenants.ErrWrongLogin) {
			t.Fatal(err)
		}
	}
	if _, _, err := g.service.LogInWithCode(t.Context(), pending, g.code(t), "test"); !errors.Is(err, tenants.ErrTooMany) {
		t.Errorf("the right code after five wrong ones: %v", err)
	}
}

// S12
func TestRecoveryCodeWorksOnce(t *testing.T) {
	t.Parallel()
	g := withFactor(t)
	if len(g.codes) != tenants.RecoveryCodes || len(slices.Compact(slices.Sorted(slices.Values(g.codes)))) != tenants.RecoveryCodes {
		t.Fatalf("recovery codes %v", g.codes)
	}
	pending := g.pending(t)
	if _, _, err := g.service.LogInWithCode(t.Context(), pending, g.codes[3], "test"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := g.service.LogInWithCode(t.Context(), pending, g.codes[3], "test"); !errors.Is(err, tenants.ErrWrongLogin) {
		t.Errorf("a second time: %v", err)
	}
	if factor, err := g.service.SecondFactor(t.Context(), g.who.User.ID); err != nil || factor.Left != tenants.RecoveryCodes-1 {
		t.Errorf("%d are left, %v", factor.Left, err)
	}
	others, err := g.service.RenewRecoveryCodes(t.Context(), g.who, password, g.codes[4])
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := g.service.LogInWithCode(t.Context(), pending, g.codes[5], "test"); !errors.Is(err, tenants.ErrWrongLogin) {
		t.Errorf("one from before: %v", err)
	}
	if _, _, err := g.service.LogInWithCode(t.Context(), pending, others[5], "test"); err != nil {
		t.Errorf("a new one: %v", err)
	}
	for action, want := range map[tenants.Action]int{tenants.RecoveryCodeUsed: 3, tenants.RecoveryCodesChanged: 1} { // S32
		entries, err := g.DB.Audit.Audit(t.Context(), g.who.Workspace.ID, tenants.AuditFilter{Action: string(action)})
		if err != nil || len(entries) != want {
			t.Errorf("%s is noted %d times, want %d: %v", action, len(entries), want, err)
		}
	}
}

// S12
func TestRecoveryCodeWorksOnceAlsoOfManyAtOnce(t *testing.T) {
	t.Parallel()
	g := withFactor(t)
	pending := g.pending(t)
	var opened atomic.Int64
	var group sync.WaitGroup
	for range 6 {
		group.Go(func() {
			_, _, err := g.service.LogInWithCode(t.Context(), pending, g.codes[0], "test")
			if err == nil {
				opened.Add(1)
			} else if !errors.Is(err, tenants.ErrWrongLogin) {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if opened.Load() != 1 {
		t.Errorf("one recovery code opened %d logins", opened.Load())
	}
}

// S9: switching the second factor on ends the logins that were opened without a code,
// and this one goes on.
func TestOtherLoginsEndWithTheSecondFactor(t *testing.T) {
	t.Parallel()
	g := withFactor(t)
	eve, token := g.signUp(t, "eve@example.com")
	_, other, err := g.service.LogIn(t.Context(), "eve@example.com", password, "here", "test")
	if err != nil {
		t.Fatal(err)
	}
	if err := g.service.StartSecondFactor(t.Context(), eve, password); err != nil {
		t.Fatal(err)
	}
	if _, err := g.service.Authenticate(t.Context(), other); err != nil {
		t.Errorf("before a code was typed: %v", err)
	}
	waiting, err := g.service.SetUp(t.Context(), eve.User)
	if err != nil {
		t.Fatal(err)
	}
	g.secret = waiting.Secret
	if _, err := g.service.ConfirmSecondFactor(t.Context(), eve, g.code(t)); err != nil {
		t.Fatal(err)
	}
	if _, err := g.service.Authenticate(t.Context(), other); !errors.Is(err, tenants.ErrLoginEnded) {
		t.Errorf("the other login: %v", err)
	}
	if _, err := g.service.Authenticate(t.Context(), token); err != nil {
		t.Errorf("this login: %v", err)
	}
}

// S9
func TestPendingLogInEndsWithThePassword(t *testing.T) {
	t.Parallel()
	g := withFactor(t)
	pending := g.pending(t)
	if err := g.service.ChangePassword(t.Context(), g.who, password, "another long password"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := g.service.LogInWithCode(t.Context(), pending, g.code(t), "test"); !errors.Is(err, tenants.ErrLoginEnded) {
		t.Errorf("a log-in that began with the old password: %v", err)
	}
}

func TestSecondFactorIsRemovedWithPasswordAndCodeOnly(t *testing.T) {
	t.Parallel()
	g := withFactor(t)
	_, other, err := g.service.LogInWithCode(t.Context(), g.pending(t), g.code(t), "test")
	if err != nil {
		t.Fatal(err)
	}
	g.clock.advance(time.Minute)
	for field, given := range map[string][2]string{"password": {"not hers", g.code(t)}, "code": {password, "123"}} {
		err := g.service.RemoveSecondFactor(t.Context(), g.who, given[0], given[1])
		if invalid, is := errors.AsType[tenants.Invalid](err); !is || invalid.Field != field {
			t.Errorf("a wrong %s: %v", field, err)
		}
	}
	if err := g.service.RemoveSecondFactor(t.Context(), g.who, password, g.code(t)); err != nil {
		t.Fatal(err)
	}
	if _, err := g.service.Authenticate(t.Context(), other); !errors.Is(err, tenants.ErrLoginEnded) {
		t.Errorf("another login: %v", err)
	}
	if _, token, err := g.service.LogIn(t.Context(), "ada@example.com", password, "here", "test"); err != nil || token == "" {
		t.Errorf("the password alone: %v", err)
	}
	for _, action := range []tenants.Action{tenants.SecondFactorOn, tenants.SecondFactorOff} { // S32
		var noted int
		err := g.Owner(t).QueryRow(t.Context(), "SELECT count(*) FROM audit_entries WHERE workspace_id = $1 AND action = $2", g.who.Workspace.ID, string(action)).Scan(&noted)
		if err != nil || noted != 1 {
			t.Errorf("%s is noted %d times, %v", action, noted, err)
		}
	}
}

// S14, S15: what is kept of a second factor is neither its secret nor a recovery code,
// opens for its person only, and is sealed again when the master key changes.
func TestSecretOfASecondFactorIsSealedForItsPerson(t *testing.T) {
	t.Parallel()
	g := withFactor(t)
	factor, err := g.DB.Factors.SecondFactor(t.Context(), g.who.User.ID)
	if err != nil || bytes.Contains(factor.Sealed, []byte(g.secret)) {
		t.Fatalf("sealed %q, %v", factor.Sealed, err)
	}
	eve, _ := g.signUp(t, "eve@example.com")
	if _, _, err := g.vault.OpenAbout(tenants.AboutSecondFactor(eve.User.ID), factor.Sealed); !errors.Is(err, vault.ErrSealedElsewhere) {
		t.Errorf("for someone else: %v", err)
	}
	during, err := vault.New([][]byte{bytes.Repeat([]byte("w"), 32), bytes.Repeat([]byte("v"), 32)})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []int{1, 0} {
		if count, err := rotation.SecondFactors(t.Context(), g.DB, during); err != nil || count != want {
			t.Errorf("%d sealed again, want %d: %v", count, want, err)
		}
	}
	after, err := vault.New([][]byte{bytes.Repeat([]byte("w"), 32)})
	if err != nil {
		t.Fatal(err)
	}
	g.service.SetSealer(after)
	if _, _, err := g.service.LogInWithCode(t.Context(), g.pending(t), g.code(t), "test"); err != nil {
		t.Errorf("without the old master key: %v", err)
	}
}

func TestSecretThatNobodyConfirmedAsksForNoCode(t *testing.T) {
	t.Parallel()
	g := withFactor(t)
	eve, _ := g.signUp(t, "eve@example.com")
	if err := g.service.StartSecondFactor(t.Context(), eve, password); err != nil {
		t.Fatal(err)
	}
	if _, token, err := g.service.LogIn(t.Context(), "eve@example.com", password, "here", "test"); err != nil || token == "" {
		t.Errorf("log in: %v", err)
	}
	g.clock.advance(tenants.SetUpAge + time.Second)
	if _, err := g.service.SetUp(t.Context(), eve.User); !errors.Is(err, tenants.ErrNotFound) {
		t.Errorf("the secret is still shown: %v", err)
	}
	if err := g.service.StartSecondFactor(t.Context(), g.who, password); !errors.Is(err, tenants.ErrConflict) {
		t.Errorf("in place of one that is on: %v", err)
	}
	if _, err := g.service.SetUp(t.Context(), g.who.User); !errors.Is(err, tenants.ErrNotFound) {
		t.Errorf("the secret of one that is on is shown: %v", err)
	}
}

// Interface guard.
var _ tenants.Sealer = (*vault.Vault)(nil)
