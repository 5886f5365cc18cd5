package vault_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/google/uuid"

	"palimpsest/tenants/vault"
)

func TestSealedBytesOpenForTheirWorkspaceNameAndPurposeOnly(t *testing.T) {
	t.Parallel()
	old, fresh := bytes.Repeat([]byte{1}, 32), bytes.Repeat([]byte{2}, 32)
	sealer := sealerOf(t, "answers", old)
	a, b := uuid.New(), uuid.New()
	sealed, err := sealer.SealBytes(a, "one", []byte("the answer"))
	if err != nil || bytes.Contains(sealed, []byte("answer")) {
		t.Fatalf("%q, %v", sealed, err)
	}

	for name, by := range map[string]*vault.Sealer{"the same": sealer, "a newer master key in front": sealerOf(t, "answers", fresh, old)} {
		if plain, err := by.OpenBytes(a, "one", sealed); err != nil || string(plain) != "the answer" {
			t.Errorf("%s: %q, %v", name, plain, err)
		}
	}
	for name, open := range map[string]func() ([]byte, error){
		"another workspace":  func() ([]byte, error) { return sealer.OpenBytes(b, "one", sealed) },
		"another name":       func() ([]byte, error) { return sealer.OpenBytes(a, "two", sealed) },
		"another purpose":    func() ([]byte, error) { return sealerOf(t, "other", old).OpenBytes(a, "one", sealed) },
		"another master key": func() ([]byte, error) { return sealerOf(t, "answers", fresh).OpenBytes(a, "one", sealed) },
		"a changed byte": func() ([]byte, error) {
			return sealer.OpenBytes(a, "one", append(sealed[:len(sealed)-1:len(sealed)-1], sealed[len(sealed)-1]^1))
		},
	} {
		if plain, err := open(); !errors.Is(err, vault.ErrSealedElsewhere) || plain != nil {
			t.Errorf("%s opens: %q, %v", name, plain, err)
		}
	}
}

func sealerOf(t *testing.T, purpose string, secrets ...[]byte) *vault.Sealer {
	t.Helper()
	safe, err := vault.New(secrets)
	if err != nil {
		t.Fatal(err)
	}
	sealer, err := safe.Sealer(purpose)
	if err != nil {
		t.Fatal(err)
	}
	return sealer
}
