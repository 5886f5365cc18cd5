package tenantsdb_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"palimpsest/tenants"
)

// addPasskey gives the bundle's person a passkey.
func (b bundle) addPasskey(t *testing.T, credential string, at time.Time) tenants.Passkey {
	t.Helper()
	passkey := tenants.Passkey{
		ID: uuid.Must(uuid.NewV7()), Name: "Laptop\x00", Credential: []byte(credential), PublicKey: []byte("k"), SignCount: 3,
		Transports: []string{"internal", "hybrid"}, BackupEligible: true, CreatedAt: at,
	}
	if _, err := b.Factors.AddPasskey(t.Context(), b.user, uuid.Nil, passkey, []byte("challenge of "+credential), [][]byte{[]byte("code")}); err != nil {
		t.Fatal(err)
	}
	return passkey
}

func TestPasskeyIsKeptAsItIs(t *testing.T) {
	t.Parallel()
	b := setup(t)
	at := time.Now().Truncate(time.Microsecond)
	wanted := b.addPasskey(t, "one", at)
	later := b.addPasskey(t, "two", at.Add(time.Second))
	owner, passkeys, err := b.Factors.PasskeyOwner(t.Context(), b.user.ID)
	if err != nil || owner.Email != b.user.Email || len(passkeys) != 2 || passkeys[1].ID != later.ID {
		t.Fatalf("%+v, %+v, %v", owner, passkeys, err)
	}
	got := passkeys[0]
	if got.Name != "Laptop" || string(got.Credential) != "one" || string(got.PublicKey) != "k" || got.SignCount != 3 || !slices.Equal(got.Transports, wanted.Transports) ||
		!got.BackupEligible || got.BackedUp || !got.CreatedAt.Equal(at) || !got.UsedAt.IsZero() || !got.CopiedAt.IsZero() {
		t.Errorf("kept is %+v", got)
	}
	if _, _, err := b.Factors.PasskeyOwner(t.Context(), uuid.New()); !errors.Is(err, tenants.ErrNotFound) {
		t.Errorf("of nobody: %v", err)
	}
	if factors, err := b.Factors.FactorsOf(t.Context(), b.user.ID); err != nil || factors != (tenants.Factors{Passkeys: 2, Left: 1}) {
		t.Errorf("factors %+v, %v", factors, err)
	}
}

// Of two answers that were checked at once, the one with the lower count comes to
// nothing, and so does one of a passkey that is gone.
func TestPasskeyIsUsedAsItWasChecked(t *testing.T) {
	t.Parallel()
	b := setup(t)
	passkey := b.addPasskey(t, "one", time.Now())
	use := func(count uint32, challenge string) error {
		passkey.SignCount, passkey.UsedAt = count, time.Now()
		return b.Factors.UsePasskey(t.Context(), b.user.ID, passkey, []byte(challenge))
	}
	for i, try := range []struct {
		count     uint32
		challenge string
		want      error
	}{
		{5, "a", nil}, {4, "b", tenants.ErrPasskey}, {6, "a", tenants.ErrPasskey}, {6, "b", nil},
	} {
		if err := use(try.count, try.challenge); !errors.Is(err, try.want) {
			t.Errorf("use %d: %v", i+1, err)
		}
	}
	if err := b.Factors.NotePasskeyCopied(t.Context(), b.user.ID, passkey, time.Now()); err != nil {
		t.Fatal(err)
	}
	if err := use(9, "c"); !errors.Is(err, tenants.ErrPasskey) {
		t.Errorf("of a copied one: %v", err)
	}
	if err := b.Factors.RemovePasskey(t.Context(), b.user.ID, uuid.Nil, passkey.ID); err != nil {
		t.Fatal(err)
	}
	if err := use(10, "d"); !errors.Is(err, tenants.ErrPasskey) {
		t.Errorf("of a removed one: %v", err)
	}
	if err := b.Factors.RemovePasskey(t.Context(), b.user.ID, uuid.Nil, passkey.ID); !errors.Is(err, tenants.ErrNotFound) {
		t.Errorf("removed again: %v", err)
	}
}

// A challenge that nobody may answer any more need not be known.
func TestAnsweredChallengesAreForgottenOnceTheyAreTooOld(t *testing.T) {
	t.Parallel()
	b := setup(t)
	at := time.Now().Add(-time.Hour)
	passkey := b.addPasskey(t, "one", at)
	count := func() (left int) {
		t.Helper()
		if err := b.database.Owner(t).QueryRow(t.Context(), "SELECT count(*) FROM passkey_challenges").Scan(&left); err != nil {
			t.Fatal(err)
		}
		return left
	}
	for i, after := range []time.Duration{time.Minute, 2 * time.Minute, time.Hour} {
		passkey.SignCount, passkey.UsedAt = passkey.SignCount+1, at.Add(after)
		if err := b.Factors.UsePasskey(t.Context(), b.user.ID, passkey, []byte{byte(i)}); err != nil {
			t.Fatal(err)
		}
		if left := count(); left != []int{2, 3, 1}[i] {
			t.Errorf("%d are known after %s", left, after)
		}
	}
}
