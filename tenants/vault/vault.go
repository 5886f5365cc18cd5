// Package vault seals the secrets of workspaces.
package vault

import (
	"crypto/hkdf"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/tink-crypto/tink-go/v2/aead/subtle"

	"palimpsest/tenants"
)

// keySize is the size of the sealing keys, in bytes: AES-256.
const keySize = 32

// ErrSealedElsewhere says that sealed bytes do not open, because they were sealed for another workspace or
// provider, or with a removed master key.
var ErrSealedElsewhere = errors.New("sealed secret does not open")

// Vault seals provider keys, and the data keys of workspaces, with AES-256-GCM under keys derived from the
// master keys. Sealed bytes are bound to their workspace, and a provider's secret also to its key and
// destination.
type Vault struct {
	secrets [][]byte
	keys    []*subtle.AESGCM // the first seals, all open
	wraps   []*subtle.AESGCM // the same for data keys
}

// New returns a vault on master keys of at least 32 bytes: the first seals, all
// open.
func New(secrets [][]byte) (*Vault, error) {
	if len(secrets) == 0 {
		return nil, errors.New("vault: no master key")
	}
	vault := &Vault{secrets: secrets}
	for i, secret := range secrets {
		if len(secret) < keySize {
			return nil, fmt.Errorf("vault: master key %d has %d bytes; at least %d are needed", i+1, len(secret), keySize)
		}
		key, err := subtle.NewAESGCM(derive(secret, "provider keys"))
		if err != nil {
			return nil, fmt.Errorf("vault: %w", err)
		}
		wrap, err := subtle.NewAESGCM(derive(secret, "data keys"))
		if err != nil {
			return nil, fmt.Errorf("vault: %w", err)
		}
		vault.keys, vault.wraps = append(vault.keys, key), append(vault.wraps, wrap)
	}
	return vault, nil
}

// Seal returns a provider's secret, sealed for the workspace, id, provider and base URL of key, so that it
// does not open with any other.
func (v *Vault) Seal(key tenants.ProviderKey, secret string) ([]byte, error) {
	sealed, err := v.keys[0].Encrypt([]byte(secret), boundTo(key))
	if err != nil {
		return nil, fmt.Errorf("seal: %w", err)
	}
	return sealed, nil
}

// Open returns the secret of a provider key, or ErrSealedElsewhere.
func (v *Vault) Open(key tenants.ProviderKey) (string, error) {
	secret, _, err := v.open(key)
	return secret, err
}

// Reseal returns the secret of a provider key sealed as Seal does, and whether this was needed because an
// older master key had sealed it. It returns ErrSealedElsewhere.
func (v *Vault) Reseal(key tenants.ProviderKey) (sealed []byte, was bool, err error) {
	secret, newest, err := v.open(key)
	if err != nil || newest {
		return key.Sealed, false, err
	}
	sealed, err = v.Seal(key, secret)
	return sealed, err == nil, err
}

func (v *Vault) open(key tenants.ProviderKey) (secret string, newest bool, err error) {
	for i, master := range v.keys {
		if opened, err := master.Decrypt(key.Sealed, boundTo(key)); err == nil {
			return string(opened), i == 0, nil
		}
	}
	return "", false, ErrSealedElsewhere
}

// Wrap returns the data key of a workspace, sealed for it.
func (v *Vault) Wrap(workspace tenants.WorkspaceID, key []byte) ([]byte, error) {
	wrapped, err := v.wraps[0].Encrypt(key, dataKeyOf(workspace))
	if err != nil {
		return nil, fmt.Errorf("seal data key: %w", err)
	}
	return wrapped, nil
}

// Unwrap returns the data key sealed for a workspace, and whether the first master key sealed it. It returns
// ErrSealedElsewhere.
func (v *Vault) Unwrap(workspace tenants.WorkspaceID, wrapped []byte) (key []byte, newest bool, err error) {
	for i, wrap := range v.wraps {
		if key, err := wrap.Decrypt(wrapped, dataKeyOf(workspace)); err == nil {
			return key, i == 0, nil
		}
	}
	return nil, false, ErrSealedElsewhere
}

// Masters returns how many master keys are set.
func (v *Vault) Masters() int { return len(v.secrets) }

// Derive returns a key for one purpose, derived from the first master key.
func (v *Vault) Derive(purpose string) []byte { return derive(v.secrets[0], purpose) }

// DeriveAll returns the keys for one purpose of all master keys, the newest first.
func (v *Vault) DeriveAll(purpose string) [][]byte {
	keys := make([][]byte, len(v.secrets))
	for i, secret := range v.secrets {
		keys[i] = derive(secret, purpose)
	}
	return keys
}

// boundTo is the associated data of a sealed secret.
func boundTo(key tenants.ProviderKey) []byte {
	return fmt.Appendf(nil, "ws:%s|provider:%s|key:%s|url:%s", key.Workspace, key.Provider, key.ID, key.BaseURL)
}

// dataKeyOf is the associated data of a sealed data key.
func dataKeyOf(workspace tenants.WorkspaceID) []byte {
	return fmt.Appendf(nil, "ws:%s|data key", workspace)
}

// derive makes a key of keySize bytes for a purpose (HKDF-SHA256, RFC 5869).
func derive(secret []byte, purpose string) []byte {
	key, err := hkdf.Key(sha256.New, secret, nil, "palimpsest "+purpose, keySize)
	if err != nil {
		panic("vault: " + err.Error()) // the size is a constant that HKDF allows
	}
	return key
}

// SealAbout returns a secret sealed and bound to the context about, so that it opens with the same context
// only. It is for secrets other than providers' ones.
func (v *Vault) SealAbout(about, secret string) ([]byte, error) {
	sealed, err := v.keys[0].Encrypt([]byte(secret), boundToName(about))
	if err != nil {
		return nil, fmt.Errorf("seal: %w", err)
	}
	return sealed, nil
}

// OpenAbout returns the secret that SealAbout sealed, and whether the first master key sealed it, or
// ErrSealedElsewhere.
func (v *Vault) OpenAbout(about string, sealed []byte) (secret string, newest bool, err error) {
	for i, master := range v.keys {
		if opened, err := master.Decrypt(sealed, boundToName(about)); err == nil {
			return string(opened), i == 0, nil
		}
	}
	return "", false, ErrSealedElsewhere
}

// ResealAbout returns a secret sealed as SealAbout does, and whether this was needed because an older master
// key had sealed it. It returns ErrSealedElsewhere.
func (v *Vault) ResealAbout(about string, sealed []byte) (resealed []byte, was bool, err error) {
	secret, newest, err := v.OpenAbout(about, sealed)
	if err != nil || newest {
		return sealed, false, err
	}
	resealed, err = v.SealAbout(about, secret)
	return resealed, err == nil, err
}

// boundToName is the associated data of secrets other than providers' ones. Its prefix differs from theirs.
func boundToName(about string) []byte { return []byte("about:" + about) }

// aboutProof is the context and the content of a database's proof.
const aboutProof = "master key of this database"

// Proof returns bytes by which OpensProof recognizes the master key.
func (v *Vault) Proof() ([]byte, error) { return v.SealAbout(aboutProof, aboutProof) }

// OpensProof returns ErrSealedElsewhere if a proof is from an unknown master key.
func (v *Vault) OpensProof(proof []byte) error {
	_, _, err := v.OpenAbout(aboutProof, proof)
	return err
}

// ResealProof is ResealAbout for a proof.
func (v *Vault) ResealProof(proof []byte) (sealed []byte, was bool, err error) {
	return v.ResealAbout(aboutProof, proof)
}
