package identity

import (
	"context"
	"errors"
	"iter"

	"github.com/google/uuid"

	"palimpsest/tenants"
)

// agedHash is the hash of a key that was made with an older pepper, and what it is to
// become.
type agedHash struct {
	workspace tenants.WorkspaceID
	old, hash []byte
}

// tried yields the peppers with which a secret may have been hashed, the newest first.
// Where there are several, the newest comes once more at the end, and is looked up
// then whatever is remembered: another replica may have hashed the key anew since.
func (k *Keys) tried(secret string) iter.Seq2[int, []byte] {
	return func(yield func(int, []byte) bool) {
		for i, pepper := range k.peppers {
			if !yield(i, pepper) {
				return
			}
		}
		if len(k.peppers) > 1 {
			k.known.Invalidate(string(HashKey(k.peppers[0], secret)))
			yield(len(k.peppers), k.peppers[0])
		}
	}
}

// age notes that a key is to be hashed anew.
func (k *Keys) age(key tenants.APIKey, old, hash []byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.aged == nil {
		k.aged = make(map[uuid.UUID]agedHash)
	}
	k.aged[key.ID] = agedHash{workspace: key.Workspace, old: old, hash: hash}
}

// rehash hashes the keys anew with the newest pepper that were used with an older one.
func (k *Keys) rehash(ctx context.Context) error {
	k.mu.Lock()
	aged := k.aged
	k.aged = nil
	k.mu.Unlock()
	var failures []error
	for id, hash := range aged {
		failures = append(failures, k.store.RehashAPIKey(ctx, hash.workspace, id, hash.old, hash.hash))
	}
	return errors.Join(failures...)
}
