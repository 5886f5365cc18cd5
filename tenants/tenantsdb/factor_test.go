package tenantsdb_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"

	"palimpsest/tenants"
)

// addFactor has the bundle's person turn a second factor on, and returns its sealed secret.
func (b bundle) addFactor(t *testing.T, codes ...string) []byte {
	t.Helper()
	sealed := []byte("sealed")
	if err := b.Factors.StartSecondFactor(t.Context(), b.user.ID, sealed, now()); err != nil {
		t.Fatal(err)
	}
	if err := b.confirm(t, sealed, codes...); err != nil {
		t.Fatal(err)
	}
	return sealed
}

// confirm answers for a sealed secret that waits, at step 7.
func (b bundle) confirm(t *testing.T, sealed []byte, codes ...string) error {
	t.Helper()
	var hashes [][]byte
	for _, code := range codes {
		hashes = append(hashes, []byte(code))
	}
	return b.Factors.ConfirmSecondFactor(t.Context(), b.user, uuid.Nil, tenants.SecondFactor{User: b.user.ID, Sealed: sealed, ConfirmedAt: now(), LastStep: 7}, hashes)
}

// Of two logins that checked one code at once, one is let in, and no older code is taken after it.
func TestCodeOfAStepIsUsedOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	if err := b.Factors.StartSecondFactor(t.Context(), b.user.ID, []byte("sealed"), now()); err != nil {
		t.Fatal(err)
	}
	use := func(step int64) error { return b.Factors.UseStep(t.Context(), b.user.ID, step, now()) }
	if err := use(6); !errors.Is(err, tenants.ErrWrongLogin) {
		t.Errorf("before it is confirmed: %v", err)
	}
	if err := b.confirm(t, []byte("sealed")); err != nil {
		t.Fatal(err)
	}
	for i, try := range []struct {
		step int64
		want error
	}{{7, tenants.ErrWrongLogin}, {8, nil}, {8, tenants.ErrWrongLogin}, {7, tenants.ErrWrongLogin}, {9, nil}} {
		if err := use(try.step); !errors.Is(err, try.want) {
			t.Errorf("try %d, step %d: %v, want %v", i+1, try.step, err, try.want)
		}
	}
}

// A code for a secret that another has replaced turns nothing on, and what is on is replaced by nothing.
func TestOnlyTheSecretThatWaitsIsConfirmed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, sealed := range []string{"first", "second"} {
		if err := b.Factors.StartSecondFactor(t.Context(), b.user.ID, []byte(sealed), now()); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.confirm(t, []byte("first"), "code"); !errors.Is(err, tenants.ErrConflict) {
		t.Errorf("the first: %v", err)
	}
	if factors, err := b.Factors.FactorsOf(t.Context(), b.user.ID); err != nil || factors != (tenants.Factors{}) {
		t.Errorf("the first turned on %+v (%v)", factors, err)
	}
	if err := b.confirm(t, []byte("second"), "code"); err != nil {
		t.Error(err)
	}
	if err := b.confirm(t, []byte("second"), "other", "codes"); !errors.Is(err, tenants.ErrConflict) {
		t.Errorf("again: %v", err)
	}
	if err := b.Factors.StartSecondFactor(t.Context(), b.user.ID, []byte("third"), now()); !errors.Is(err, tenants.ErrConflict) {
		t.Errorf("a third: %v", err)
	}
	if factors, err := b.Factors.FactorsOf(t.Context(), b.user.ID); err != nil || factors != (tenants.Factors{App: true, Left: 1}) {
		t.Errorf("turned on %+v (%v)", factors, err)
	}
}

// Recovery codes stay as long as there is a second factor that they stand in for.
func TestRecoveryCodesStayWithTheLastFactor(t *testing.T) {
	t.Parallel()
	for name, appFirst := range map[string]bool{"the app goes first": true, "the passkey goes first": false} {
		b := setup(t)
		b.addFactor(t, "one", "two")
		passkey := b.addPasskey(t, "laptop", time.Now())
		removals := []func() error{
			func() error { return b.Factors.RemoveSecondFactor(t.Context(), b.user, uuid.Nil) },
			func() error { return b.Factors.RemovePasskey(t.Context(), b.user.ID, uuid.Nil, passkey.ID) },
		}
		if !appFirst {
			removals[0], removals[1] = removals[1], removals[0]
		}
		for i, left := range []int{2, 0} {
			if err := removals[i](); err != nil {
				t.Fatal(err)
			}
			if factors, err := b.Factors.FactorsOf(t.Context(), b.user.ID); err != nil || factors.Left != left || factors.AreOn() != (i == 0) {
				t.Errorf("%s: after %d removals %+v (%v)", name, i+1, factors, err)
			}
		}
	}
}

// A place is known by logins from it, of the same person and not too long ago. An empty place is never known.
func TestPlaceIsKnownByTheLoginsOfItsPerson(t *testing.T) {
	t.Parallel()
	b := setup(t)
	other, _ := b.signUp(t, "other@example.com")
	for place, age := range map[string]time.Duration{"Berlin": time.Minute, "Paris": 3 * time.Hour, "": time.Minute} {
		login := tenants.Login{ID: uuid.Must(uuid.NewV7()), UserID: b.user.ID, Workspace: b.workspace, Place: place, CreatedAt: now().Add(-age), ExpiresAt: now().Add(time.Hour)}
		if err := b.Logins.CreateLogin(t.Context(), login); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		email, place string
		want         bool
	}{{b.user.Email, "Berlin", true}, {b.user.Email, "Paris", false}, {b.user.Email, "", false}, {other.Email, "Berlin", false}, {"nobody@example.com", "Berlin", false}} {
		if used, err := b.Logins.UsedPlace(t.Context(), c.email, c.place, now().Add(-time.Hour)); err != nil || used != c.want {
			t.Errorf("%s from %q: %t (%v)", c.email, c.place, used, err)
		}
	}
}

// An admin leaves alone the invitation of an owner.
func TestInvitationIsChangedByThoseWhoMayMakeIt(t *testing.T) {
	t.Parallel()
	b := setup(t)
	admin := b.join(t, "admin@example.com", tenants.Admin)
	if err := b.Invitations.CreateInvitations(as(t, b.user), b.workspace, wantedInvitation("new@example.com", tenants.Owner, "new")); err != nil {
		t.Fatal(err)
	}
	pending, err := b.Invitations.Invitations(t.Context(), b.workspace)
	if err != nil || len(pending) != 1 {
		t.Fatalf("%d wait (%v)", len(pending), err)
	}
	letter := func(tenants.Invitation) (tenants.Mail, error) { return tenants.Mail{To: "new@example.com"}, nil }
	later := now().Add(time.Hour)
	for _, c := range []struct {
		by   tenants.User
		want error
	}{{admin, tenants.ErrDenied}, {b.user, nil}} {
		if err := b.Invitations.RenewInvitation(as(t, c.by), b.workspace, pending[0].ID, later, later.AddDate(0, 0, 7), []byte("newer"), letter); !errors.Is(err, c.want) {
			t.Errorf("%s sends it again: %v", c.by.Email, err)
		}
		if err := b.Invitations.RevokeInvitation(as(t, c.by), b.workspace, pending[0].ID); !errors.Is(err, c.want) {
			t.Errorf("%s revokes it: %v", c.by.Email, err)
		}
	}
}
