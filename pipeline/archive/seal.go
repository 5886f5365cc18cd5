package archive

import (
	"context"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/crypto/chacha20poly1305"

	"palimpsest/tenants"
)

const (
	// SealedRoom is the number of bytes before the sealed text.
	SealedRoom = chacha20poly1305.NonceSizeX
	// SealedOverhead is how many bytes sealing adds to a text.
	SealedOverhead = SealedRoom + chacha20poly1305.Overhead
)

// ErrSealed says that sealed bytes do not open: they were changed, or sealed for another workspace or with
// other associated data.
var ErrSealed = errors.New("sealed bytes do not open")

// DataKeys keeps the data key of each workspace: 32 random bytes, never stored in plain form. DataKey
// creates the key if absent. It is durable when DataKey returns.
type DataKeys interface {
	DataKey(ctx context.Context, workspace tenants.WorkspaceID) ([]byte, error)
}

// Keys opens each workspace's data key once and keeps it in memory. It is safe for concurrent use.
type Keys struct {
	from DataKeys

	mu        sync.RWMutex
	open      map[tenants.WorkspaceID]*Key
	forgotten int // number of calls of Forget
}

// NewKeys returns the keys of all workspaces.
func NewKeys(from DataKeys) *Keys { return &Keys{from: from, open: make(map[tenants.WorkspaceID]*Key)} }

// Key returns the key of a workspace. The first call for a workspace queries the database, outside a
// transaction that ctx may belong to.
func (k *Keys) Key(ctx context.Context, workspace tenants.WorkspaceID) (*Key, error) {
	k.mu.RLock()
	key, forgotten := k.open[workspace], k.forgotten
	k.mu.RUnlock()
	if key != nil {
		return key, nil
	}
	secret, err := k.from.DataKey(ctx, workspace)
	if err != nil {
		return nil, fmt.Errorf("open the archive's key: %w", err)
	}
	if key, err = NewKey(workspace, secret); err != nil {
		return nil, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.forgotten == forgotten { // otherwise the workspace may be deleted by now
		k.open[workspace] = key
	}
	return key, nil
}

// Forget drops the key of a deleted workspace.
func (k *Keys) Forget(workspace tenants.WorkspaceID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.forgotten++
	delete(k.open, workspace)
}

// Key seals the data of one workspace, and makes names and proofs that require the key.
type Key struct {
	workspace tenants.WorkspaceID
	aead      cipher.AEAD
	proofs    []byte
}

// NewKey returns the key of a workspace from its data key of 32 bytes. It derives separate keys for sealing
// and for proofs with HKDF-SHA256 (RFC 5869).
func NewKey(workspace tenants.WorkspaceID, dataKey []byte) (*Key, error) {
	if len(dataKey) != chacha20poly1305.KeySize {
		return nil, fmt.Errorf("data key has %d bytes, want %d", len(dataKey), chacha20poly1305.KeySize)
	}
	sealing, err := hkdf.Expand(sha256.New, dataKey, "palimpsest archive sealing", chacha20poly1305.KeySize)
	if err != nil {
		return nil, fmt.Errorf("derive archive key: %w", err)
	}
	proofs, err := hkdf.Expand(sha256.New, dataKey, "palimpsest archive proofs", sha256.Size)
	if err != nil {
		return nil, fmt.Errorf("derive archive key: %w", err)
	}
	aead, err := chacha20poly1305.NewX(sealing)
	if err != nil {
		return nil, fmt.Errorf("derive archive key: %w", err)
	}
	return &Key{workspace: workspace, aead: aead, proofs: proofs}, nil
}

// TermKey returns the key with which the search index hashes the words of a workspace.
func (k *Keys) TermKey(ctx context.Context, workspace tenants.WorkspaceID) ([]byte, error) {
	key, err := k.Key(ctx, workspace)
	if err != nil {
		return nil, err
	}
	return key.Proof([]byte("search terms")), nil
}

// TagKey returns the key for the tags of redacted personal data in a workspace.
func (k *Keys) TagKey(ctx context.Context, workspace tenants.WorkspaceID) ([]byte, error) {
	key, err := k.Key(ctx, workspace)
	if err != nil {
		return nil, err
	}
	return key.Proof([]byte("redaction tags")), nil
}

// Seal seals plain with XChaCha20-Poly1305 and returns a random nonce of 24 bytes and the sealed text. The
// nonce is long enough for any number of messages with one key. The result opens only for the same workspace
// and the same about.
func (k *Key) Seal(about, plain []byte) []byte {
	sealed := make([]byte, SealedRoom, len(plain)+SealedOverhead)
	_, _ = rand.Read(sealed) // never returns an error, see crypto/rand
	return k.aead.Seal(sealed, sealed, plain, k.bound(about))
}

// SealInPlace is Seal for the part of text after its first SealedRoom bytes. The result uses text's memory if
// it has the capacity.
func (k *Key) SealInPlace(about, text []byte) []byte {
	nonce := text[:SealedRoom]
	_, _ = rand.Read(nonce) // never returns an error, see crypto/rand
	return k.aead.Seal(nonce, nonce, text[SealedRoom:], k.bound(about))
}

// Open returns the text that was sealed with the same about, or ErrSealed.
func (k *Key) Open(about, sealed []byte) ([]byte, error) {
	if len(sealed) < SealedOverhead {
		return nil, ErrSealed
	}
	nonce, text := sealed[:SealedRoom], sealed[SealedRoom:]
	plain, err := k.aead.Open(make([]byte, 0, len(text)), nonce, text, k.bound(about))
	if err != nil {
		return nil, ErrSealed
	}
	return plain, nil
}

// Proof returns the HMAC-SHA256 of about. It is deterministic and cannot be made without the key, which makes
// it a proof, or a name that does not reveal about.
func (k *Key) Proof(about []byte) []byte {
	mac := hmac.New(sha256.New, k.proofs)
	mac.Write(k.bound(about))
	return mac.Sum(nil)
}

// bound returns about with the workspace's id as a prefix.
func (k *Key) bound(about []byte) []byte {
	return append(append(make([]byte, 0, len(k.workspace)+len(about)), k.workspace[:]...), about...)
}
