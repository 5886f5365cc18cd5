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
	// SealedRoom is how many bytes stand before what was sealed.
	SealedRoom = chacha20poly1305.NonceSizeX
	// SealedOverhead is how many bytes sealed text is longer than what was sealed.
	SealedOverhead = SealedRoom + chacha20poly1305.Overhead
)

// ErrSealed says that sealed bytes do not open: they were changed, or sealed for
// another workspace or as something else.
var ErrSealed = errors.New("sealed bytes do not open")

// DataKeys keeps the data key of each workspace: 32 random bytes, never stored as
// they are. DataKey makes the key if absent; it is durable when DataKey
// returns.
type DataKeys interface {
	DataKey(ctx context.Context, workspace tenants.WorkspaceID) ([]byte, error)
}

// Keys opens each workspace's data key once and keeps it in memory. It may be used
// by several goroutines at once.
type Keys struct {
	from DataKeys

	mu        sync.RWMutex
	open      map[tenants.WorkspaceID]*Key
	forgotten int // times that Forget was called
}

// NewKeys returns the keys of all workspaces.
func NewKeys(from DataKeys) *Keys { return &Keys{from: from, open: make(map[tenants.WorkspaceID]*Key)} }

// Key returns the key of a workspace. The first call for one asks the database,
// outside the transaction that ctx may belong to.
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
	if k.forgotten == forgotten { // or the workspace may be deleted by now
		k.open[workspace] = key
	}
	return key, nil
}

// Forget drops the key of a workspace that is deleted.
func (k *Keys) Forget(workspace tenants.WorkspaceID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.forgotten++
	delete(k.open, workspace)
}

// Key seals what is kept of one workspace, and makes names and proofs that nobody
// else can.
type Key struct {
	workspace tenants.WorkspaceID
	aead      cipher.AEAD
	proofs    []byte
}

// NewKey returns the key of a workspace on its data key of 32 bytes. What is
// sealed and what is proven have keys of their own, derived from it with
// HKDF-SHA256 (RFC 5869).
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

// TermKey returns the key by which the search index hashes the words of a workspace.
func (k *Keys) TermKey(ctx context.Context, workspace tenants.WorkspaceID) ([]byte, error) {
	key, err := k.Key(ctx, workspace)
	if err != nil {
		return nil, err
	}
	return key.Proof([]byte("search terms")), nil
}

// TagKey returns the key by which personal data that is redacted in a workspace gets its tags.
func (k *Keys) TagKey(ctx context.Context, workspace tenants.WorkspaceID) ([]byte, error) {
	key, err := k.Key(ctx, workspace)
	if err != nil {
		return nil, err
	}
	return key.Proof([]byte("redaction tags")), nil
}

// Seal returns plain sealed with XChaCha20-Poly1305: a random nonce of 24 bytes,
// so that one key seals as many messages as come, then the sealed text. It opens
// only for the same workspace and with the same about.
func (k *Key) Seal(about, plain []byte) []byte {
	sealed := make([]byte, SealedRoom, len(plain)+SealedOverhead)
	_, _ = rand.Read(sealed) // never returns an error, see crypto/rand
	return k.aead.Seal(sealed, sealed, plain, k.bound(about))
}

// SealInPlace is Seal of what stands in text behind SealedRoom bytes. Where text has the
// capacity, what it returns lies in its memory.
func (k *Key) SealInPlace(about, text []byte) []byte {
	nonce := text[:SealedRoom]
	_, _ = rand.Read(nonce) // never returns an error, see crypto/rand
	return k.aead.Seal(nonce, nonce, text[SealedRoom:], k.bound(about))
}

// Open returns what was sealed about the same, or ErrSealed.
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

// Proof returns HMAC-SHA256 of what it is about, the same each time: a name that
// says nothing of what it was made from, or a proof that nobody without the key
// can make.
func (k *Key) Proof(about []byte) []byte {
	mac := hmac.New(sha256.New, k.proofs)
	mac.Write(k.bound(about))
	return mac.Sum(nil)
}

// bound puts the workspace before what something is about.
func (k *Key) bound(about []byte) []byte {
	return append(append(make([]byte, 0, len(k.workspace)+len(about)), k.workspace[:]...), about...)
}
