package vault

import (
	"fmt"

	"github.com/google/uuid"
	"github.com/tink-crypto/tink-go/v2/aead/subtle"
)

// Sealer seals bytes of workspaces for one purpose, with AES-256-GCM under keys of
// that purpose. What is sealed is bound to its workspace and name.
type Sealer struct{ keys []*subtle.AESGCM } // the first seals, all open

// Sealer returns a sealer for one purpose.
func (v *Vault) Sealer(purpose string) (*Sealer, error) {
	sealer := &Sealer{}
	for _, secret := range v.DeriveAll(purpose) {
		key, err := subtle.NewAESGCM(secret)
		if err != nil {
			return nil, fmt.Errorf("vault: %w", err)
		}
		sealer.keys = append(sealer.keys, key)
	}
	return sealer, nil
}

// SealBytes returns bytes sealed for one workspace and name.
func (s *Sealer) SealBytes(workspace uuid.UUID, name string, plain []byte) ([]byte, error) {
	sealed, err := s.keys[0].Encrypt(plain, namedOf(workspace, name))
	if err != nil {
		return nil, fmt.Errorf("seal: %w", err)
	}
	return sealed, nil
}

// OpenBytes returns what was sealed for the workspace and name, or
// ErrSealedElsewhere.
func (s *Sealer) OpenBytes(workspace uuid.UUID, name string, sealed []byte) ([]byte, error) {
	for _, key := range s.keys {
		if plain, err := key.Decrypt(sealed, namedOf(workspace, name)); err == nil {
			return plain, nil
		}
	}
	return nil, ErrSealedElsewhere
}

// namedOf is the associated data of sealed bytes.
func namedOf(workspace uuid.UUID, name string) []byte {
	return fmt.Appendf(nil, "ws:%s|name:%s", workspace, name)
}
