// Package vault seals the secrets that a workspace gives to the product.
package vault

import (
	"crypto/hkdf"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/tink-crypto/tink-go/v2/aead/subtle"

	"palimpsest/tenants"
)

// keySize is the size of the sealing keys, in bytes: AES-256.
const keySize = 32

// ErrSealedElsewhere says that sealed bytes do not open: they were sealed for
// another workspace or provider, or with a master key that is no longer set.
var ErrSealedElsewhere = errors.New("sealed secret does not open")

// Vault seals provider keys, and the keys under which what is kept of workspaces is
// sealed, with AES-256-GCM under keys derived from the master keys. What is sealed
// is bound to its workspace, and a provider key to its provider.
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

// Seal returns a provider's key sealed for one workspace and provider.
func (v *Vault) Seal(workspace uuid.UUID, provider tenants.Provider, secret string) ([]byte, error) {
	sealed, err := v.keys[0].Encrypt([]byte(secret), boundTo(workspace, provider))
	if err != nil {
		return nil, fmt.Errorf("seal: %w", err)
	}
	return sealed, nil
}

// Open returns what was sealed for the workspace and provider, or
// ErrSealedElsewhere.
func (v *Vault) Open(workspace uuid.UUID, provider tenants.Provider, sealed []byte) (string, error) {
	for _, key := range v.keys {
		if secret, err := key.Decrypt(sealed, boundTo(workspace, provider)); err == nil {
			return string(secret), nil
		}
	}
	return "", ErrSealedElsewhere
}

// Wrap returns the data key of a workspace, sealed for it.
func (v *Vault) Wrap(workspace uuid.UUID, key []byte) ([]byte, error) {
	wrapped, err := v.wraps[0].Encrypt(key, dataKeyOf(workspace))
	if err != nil {
		return nil, fmt.Errorf("seal data key: %w", err)
	}
	return wrapped, nil
}

// Unwrap returns the data key that was sealed for a workspace, and whether it was
// sealed with the first master key. It returns ErrSealedElsewhere.
func (v *Vault) Unwrap(workspace uuid.UUID, wrapped []byte) (key []byte, newest bool, err error) {
	for i, wrap := range v.wraps {
		if key, err := wrap.Decrypt(wrapped, dataKeyOf(workspace)); err == nil {
			return key, i == 0, nil
		}
	}
	return nil, false, ErrSealedElsewhere
}

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

// boundTo is the associated data of sealed bytes.
func boundTo(workspace uuid.UUID, provider tenants.Provider) []byte {
	return fmt.Appendf(nil, "ws:%s|provider:%s", workspace, provider)
}

// dataKeyOf is the associated data of a sealed data key.
func dataKeyOf(workspace uuid.UUID) []byte { return fmt.Appendf(nil, "ws:%s|data key", workspace) }

// derive makes a key of keySize bytes for a purpose (HKDF-SHA256, RFC 5869).
func derive(secret []byte, purpose string) []byte {
	key, err := hkdf.Key(sha256.New, secret, nil, "palimpsest "+purpose, keySize)
	if err != nil {
		panic("vault: " + err.Error()) // the size is a constant that HKDF allows
	}
	return key
}
