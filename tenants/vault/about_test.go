package vault_test

import (
	"bytes"
	"errors"
	"testing"

	"palimpsest/tenants/vault"
	"palimpsest/tenants/vault/vaulttest"
)

// S15
func TestSecretSealedAboutSomethingOpensBesideNothingElse(t *testing.T) {
	t.Parallel()
	first, second := []byte("the first secret of 32 bytes ...."), []byte("the second secret of 32 bytes ...")
	before, err := vault.New([][]byte{first})
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := before.SealAbout("user:ada", "hidden")
	if err != nil {
		t.Fatal(err)
	}
	if secret, newest, err := before.OpenAbout("user:ada", sealed); err != nil || secret != "hidden" || !newest {
		t.Errorf("opens as %q, %v, %v", secret, newest, err)
	}
	if _, _, err := before.OpenAbout("user:eve", sealed); !errors.Is(err, vault.ErrSealedElsewhere) {
		t.Errorf("beside another name: %v", err)
	}
	during, err := vault.New([][]byte{second, first})
	if err != nil {
		t.Fatal(err)
	}
	if secret, newest, err := during.OpenAbout("user:ada", sealed); err != nil || secret != "hidden" || newest {
		t.Errorf("with a newer master key: %q, %v, %v", secret, newest, err)
	}
}

// S15: a secret is sealed again once, and then needs the newest master key alone.
func TestSecretSealedAboutSomethingIsSealedAgainWithNewestKey(t *testing.T) {
	t.Parallel()
	before, during, after := vaulttest.Of(t, "a"), vaulttest.Of(t, "b", "a"), vaulttest.Of(t, "b")
	sealed, err := before.SealAbout("user:ada", "hidden")
	if err != nil {
		t.Fatal(err)
	}
	fresh, was, err := during.ResealAbout("user:ada", sealed)
	if err != nil || !was {
		t.Fatalf("sealed again %t, %v", was, err)
	}
	if again, was, err := during.ResealAbout("user:ada", fresh); err != nil || was || !bytes.Equal(again, fresh) {
		t.Errorf("a second time: %t, %v", was, err)
	}
	if secret, newest, err := after.OpenAbout("user:ada", fresh); err != nil || secret != "hidden" || !newest {
		t.Errorf("without the old master key: %q, %v, %v", secret, newest, err)
	}
	if _, _, err := during.ResealAbout("user:eve", sealed); !errors.Is(err, vault.ErrSealedElsewhere) {
		t.Errorf("beside another name: %v", err)
	}
}
