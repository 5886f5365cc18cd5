package vault_test

import (
	"errors"
	"testing"

	"palimpsest/tenants/vault"
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
