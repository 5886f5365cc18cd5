package identity

import (
	"context"
	"iter"

	"palimpsest/tenants"
)

// tried yields the peppers with which a secret may have been hashed, the newest first. With several peppers,
// it yields the newest again at the end. That last lookup bypasses the cache because another replica may have
// rehashed the key meanwhile.
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

// rehash rehashes a key that was found with an older pepper. It runs once, since the key is then cached under
// the newest pepper. If it fails, it runs again after the cache entry has expired.
func (k *Keys) rehash(ctx context.Context, key tenants.APIKey, old, hash []byte) {
	k.known.Set(string(hash), result{key: key})
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), findTimeout)
	defer cancel()
	_ = k.store.RehashAPIKey(ctx, key.Workspace, key.ID, old, hash)
}
