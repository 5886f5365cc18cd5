package vault_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/google/uuid"

	"palimpsest/tenants"
	"palimpsest/tenants/vault"
)

func setup(t *testing.T, secrets ...string) *vault.Vault {
	t.Helper()
	keys := make([][]byte, len(secrets))
	for i, secret := range secrets {
		keys[i] = bytes.Repeat([]byte(secret), 32)
	}
	v, err := vault.New(keys)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestSealedKeyOpensForItsWorkspaceAndProvider(t *testing.T) {
	t.Parallel()
	v, workspace := setup(t, "a"), uuid.New()
	sealed, err := v.Seal(workspace, tenants.ProviderAnthropic, "sk-secret")
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(sealed, []byte("sk-secret")) {
		t.Fatal("the sealed bytes hold the secret")
	}
	if opened, err := v.Open(workspace, tenants.ProviderAnthropic, sealed); err != nil || opened != "sk-secret" {
		t.Fatalf("opened %q, %v", opened, err)
	}
}

// S15: a ciphertext copied to another workspace or provider does not open.
func TestSealedKeyOpensNowhereElse(t *testing.T) {
	t.Parallel()
	v, workspace := setup(t, "a"), uuid.New()
	sealed, err := v.Seal(workspace, tenants.ProviderAnthropic, "sk-secret")
	if err != nil {
		t.Fatal(err)
	}
	tampered := bytes.Clone(sealed)
	tampered[len(tampered)-1] ^= 1
	for name, open := range map[string]func() (string, error){
		"another workspace":  func() (string, error) { return v.Open(uuid.New(), tenants.ProviderAnthropic, sealed) },
		"another provider":   func() (string, error) { return v.Open(workspace, tenants.ProviderOpenAI, sealed) },
		"another master key": func() (string, error) { return setup(t, "b").Open(workspace, tenants.ProviderAnthropic, sealed) },
		"changed bytes":      func() (string, error) { return v.Open(workspace, tenants.ProviderAnthropic, tampered) },
		"no bytes":           func() (string, error) { return v.Open(workspace, tenants.ProviderAnthropic, nil) },
	} {
		if opened, err := open(); !errors.Is(err, vault.ErrSealedElsewhere) {
			t.Errorf("%s: opened %q, %v", name, opened, err)
		}
	}
}

// S15: with a new master key in front, old secrets still open and new ones need it.
func TestNewMasterKeySealsWhileTheOldOneStillOpens(t *testing.T) {
	t.Parallel()
	workspace := uuid.New()
	old, err := setup(t, "a").Seal(workspace, tenants.ProviderOpenAI, "sk-old")
	if err != nil {
		t.Fatal(err)
	}
	rotated := setup(t, "b", "a")
	if opened, err := rotated.Open(workspace, tenants.ProviderOpenAI, old); err != nil || opened != "sk-old" {
		t.Fatalf("after the rotation: %q, %v", opened, err)
	}
	fresh, err := rotated.Seal(workspace, tenants.ProviderOpenAI, "sk-new")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := setup(t, "a").Open(workspace, tenants.ProviderOpenAI, fresh); !errors.Is(err, vault.ErrSealedElsewhere) {
		t.Fatalf("the old master key opens what the new one sealed: %v", err)
	}
}

func TestMasterKeysAreChecked(t *testing.T) {
	t.Parallel()
	for name, secrets := range map[string][][]byte{"none": nil, "short": {[]byte("short")}} {
		if _, err := vault.New(secrets); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestPurposesHaveKeysOfTheirOwn(t *testing.T) {
	t.Parallel()
	v := setup(t, "b", "a")
	if bytes.Equal(v.Derive("logins"), v.Derive("api keys")) {
		t.Error("two purposes share a key")
	}
	all := v.DeriveAll("logins")
	if len(all) != 2 || !bytes.Equal(all[0], v.Derive("logins")) || bytes.Equal(all[0], all[1]) {
		t.Error("the keys of one purpose are not those of the master keys, newest first")
	}
}
