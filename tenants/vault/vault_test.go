package vault_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/google/uuid"

	"palimpsest/tenants"
	"palimpsest/tenants/vault"
	"palimpsest/tenants/vault/vaulttest"
)

// keyOf returns a provider key of a workspace.
func keyOf(workspace tenants.WorkspaceID) tenants.ProviderKey {
	return tenants.ProviderKey{ID: uuid.New(), Workspace: workspace, Provider: tenants.ProviderAnthropic, BaseURL: "https://llm.example.com"}
}

// sealed returns a key with its secret.
func sealed(t *testing.T, v *vault.Vault, key tenants.ProviderKey, secret string) tenants.ProviderKey {
	t.Helper()
	bytes, err := v.Seal(key, secret)
	if err != nil {
		t.Fatal(err)
	}
	key.Sealed = bytes
	return key
}

func TestSealedKeyOpensForWhatItWasSealedFor(t *testing.T) {
	t.Parallel()
	v := vaulttest.Of(t, "a")
	key := sealed(t, v, keyOf(tenants.NewWorkspaceID()), "sk-secret")
	if bytes.Contains(key.Sealed, []byte("sk-secret")) {
		t.Fatal("the sealed bytes hold the secret")
	}
	if opened, err := v.Open(key); err != nil || opened != "sk-secret" {
		t.Fatalf("opened %q, %v", opened, err)
	}
	key.Name, key.Order, key.Models = "renamed", 3, []string{"m"}
	if opened, err := v.Open(key); err != nil || opened != "sk-secret" {
		t.Fatalf("after it was edited: %q, %v", opened, err)
	}
}

// S15: a ciphertext copied to another workspace or provider row does not open, nor
// one whose row has been given another address.
func TestSealedKeyOpensNowhereElse(t *testing.T) {
	t.Parallel()
	v := vaulttest.Of(t, "a")
	key := sealed(t, v, keyOf(tenants.NewWorkspaceID()), "sk-secret")
	with := func(change func(*tenants.ProviderKey)) func() (string, error) {
		other := key
		change(&other)
		return func() (string, error) { return v.Open(other) }
	}
	tampered := bytes.Clone(key.Sealed)
	tampered[len(tampered)-1] ^= 1
	for name, open := range map[string]func() (string, error){
		"another workspace":  with(func(k *tenants.ProviderKey) { k.Workspace = tenants.NewWorkspaceID() }),
		"another provider":   with(func(k *tenants.ProviderKey) { k.Provider = tenants.ProviderOpenAI }),
		"another row":        with(func(k *tenants.ProviderKey) { k.ID = uuid.New() }),
		"another address":    with(func(k *tenants.ProviderKey) { k.BaseURL = "https://evil.example.com" }),
		"no address":         with(func(k *tenants.ProviderKey) { k.BaseURL = "" }),
		"another master key": func() (string, error) { return vaulttest.Of(t, "b").Open(key) },
		"changed bytes":      with(func(k *tenants.ProviderKey) { k.Sealed = tampered }),
		"no bytes":           with(func(k *tenants.ProviderKey) { k.Sealed = nil }),
	} {
		if opened, err := open(); !errors.Is(err, vault.ErrSealedElsewhere) {
			t.Errorf("%s: opened %q, %v", name, opened, err)
		}
	}
}

// S15: with a new master key in front, old secrets still open and new ones need it.
func TestNewMasterKeySealsWhileTheOldOneStillOpens(t *testing.T) {
	t.Parallel()
	old := sealed(t, vaulttest.Of(t, "a"), keyOf(tenants.NewWorkspaceID()), "sk-old")
	rotated := vaulttest.Of(t, "b", "a")
	if opened, err := rotated.Open(old); err != nil || opened != "sk-old" {
		t.Fatalf("after the rotation: %q, %v", opened, err)
	}
	fresh := old
	var was bool
	var err error
	if fresh.Sealed, was, err = rotated.Reseal(old); err != nil || !was {
		t.Fatalf("sealed again %t, %v", was, err)
	}
	if _, was, err := rotated.Reseal(fresh); err != nil || was {
		t.Errorf("and once more: %t, %v", was, err)
	}
	if opened, err := vaulttest.Of(t, "b").Open(fresh); err != nil || opened != "sk-old" {
		t.Errorf("without the old master key: %q, %v", opened, err)
	}
	if _, err := vaulttest.Of(t, "a").Open(fresh); !errors.Is(err, vault.ErrSealedElsewhere) {
		t.Errorf("the old master key opens what the new one sealed: %v", err)
	}
	if _, _, err := vaulttest.Of(t, "c").Reseal(old); !errors.Is(err, vault.ErrSealedElsewhere) {
		t.Errorf("a foreign master key seals again: %v", err)
	}
}

// The data key of a workspace opens for it alone, and tells whether the newest master key has sealed it.
func TestDataKeyOpensForItsWorkspaceAlone(t *testing.T) {
	t.Parallel()
	workspace, key := tenants.NewWorkspaceID(), bytes.Repeat([]byte("k"), 32)
	wrapped, err := vaulttest.Of(t, "a").Wrap(workspace, key)
	if err != nil {
		t.Fatal(err)
	}
	for master, newest := range map[string]bool{"a": true, "b": false} {
		opened, is, err := vaulttest.Of(t, master, "a").Unwrap(workspace, wrapped)
		if err != nil || !bytes.Equal(opened, key) || is != newest {
			t.Errorf("first master key %s: newest %t, %v", master, is, err)
		}
	}
	if _, _, err := vaulttest.Of(t, "a").Unwrap(tenants.NewWorkspaceID(), wrapped); !errors.Is(err, vault.ErrSealedElsewhere) {
		t.Errorf("another workspace: %v", err)
	}
	if _, _, err := vaulttest.Of(t, "b").Unwrap(workspace, wrapped); !errors.Is(err, vault.ErrSealedElsewhere) {
		t.Errorf("another master key: %v", err)
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
	v := vaulttest.Of(t, "b", "a")
	if bytes.Equal(v.Derive("logins"), v.Derive("api keys")) {
		t.Error("two purposes share a key")
	}
	all := v.DeriveAll("logins")
	if len(all) != 2 || !bytes.Equal(all[0], v.Derive("logins")) || bytes.Equal(all[0], all[1]) {
		t.Error("the keys of one purpose are not those of the master keys, newest first")
	}
}
