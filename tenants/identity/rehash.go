package identity

import (
	"context"
	"iter"

	"palimpsest/tenants"
)

// tried yields the peppers with which a secret may have been hashed, the newest first.
// Where there are several, the newest comes once more at the end, and is looked up
// then whatever is remembered: another replica may have hashed the key again since.
func (k *Keys) tried(secret string) iter.Seq2[int, []byte] {
	return func(yield func(int, []byte) bool) {
		for i, pepper := range k.peppers {
			if !yield(i, pepper) {
				return
			}
		}
		if len(k.peppers) > 1 {
			k.known.Delete(string(HashKey(k.peppers[0], secret)))
			yield(len(k.peppers), k.peppers[0])
		}
	}
}

// rehash has a key hashed again that was found with an older pepper, once: it is
// remembered under the newest from now on. If that fails it is tried again when it is
// forgotten.
func (k *Keys) rehash(ctx context.Context, key tenants.APIKey, old, hash []byte) {
	k.known.Set(string(hash), result{key: key})
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), findTimeout)
	defer cancel()
	_ = k.store.RehashAPIKey(ctx, key.Workspace, key.ID, old, hash)
}
