package identity

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/singleflight"

	"palimpsest/pipeline/localcache"
	"palimpsest/tenants"
)

const (
	// keyAge bounds how long a key is valid without a database lookup, because the notification of its
	// revocation may be lost.
	keyAge    = 30 * time.Second
	knownKeys = 100_000

	// keyOutage bounds how long a key stays valid while the database does not answer, so that requests
	// survive an outage.
	keyOutage = 10 * time.Minute

	findTimeout = 5 * time.Second

	// againTimeout bounds the database lookup of a key that was valid before. If the lookup fails, the key
	// remains valid for againAge.
	againTimeout = 500 * time.Millisecond
	againAge     = 5 * time.Second
)

// KeyStore finds API keys and records their use.
type KeyStore interface {
	// APIKeyByHash returns the key with a hash, or tenants.ErrKeyUnknown.
	APIKeyByHash(ctx context.Context, hash []byte) (tenants.APIKey, error)

	// APIKey returns a key of a workspace, with the scopes that the person behind it may use now. It returns
	// tenants.ErrNotFound.
	APIKey(ctx context.Context, workspace tenants.WorkspaceID, id uuid.UUID) (tenants.APIKey, error)

	// TouchAPIKeys sets when keys of a workspace were last used.
	TouchAPIKeys(ctx context.Context, workspace tenants.WorkspaceID, used map[uuid.UUID]time.Time) error

	// RehashAPIKey replaces the hash of a key, unless it has been replaced already.
	RehashAPIKey(ctx context.Context, workspace tenants.WorkspaceID, id uuid.UUID, old, hash []byte) error
}

// Keys finds the API key of a secret, from memory if it was seen recently.
type Keys struct {
	store   KeyStore
	peppers [][]byte
	now     func() time.Time
	known   *localcache.Cache[string, result]
	last    *localcache.Cache[string, result]   // valid keys, for store outages
	changed *localcache.Cache[[16]byte, uint64] // number of the latest change, by its workspace or person
	asking  singleflight.Group
	changes localcache.Changes

	mu   sync.Mutex
	used map[tenants.WorkspaceID]map[uuid.UUID]time.Time // by workspace and key
}

// result is the store's answer for a hash.
type result struct {
	key   tenants.APIKey
	err   error
	since uint64 // changes received before the store was asked
}

// NewKeys returns Keys. New keys are hashed with the first pepper; lookups try all.
func NewKeys(store KeyStore, peppers [][]byte, now func() time.Time) (*Keys, error) {
	known, err := newKeyCache(keyAge, now)
	if err != nil {
		return nil, err
	}
	last, err := newKeyCache(keyOutage, now)
	if err != nil {
		return nil, err
	}
	changed, err := localcache.New[[16]byte](localcache.Options[uint64]{MaximumSize: knownKeys, ExpireAfterWrite: keyOutage, Now: now})
	if err != nil {
		return nil, fmt.Errorf("changed API keys: %w", err)
	}
	return &Keys{store: store, peppers: peppers, now: now, known: known, last: last, changed: changed, used: make(map[tenants.WorkspaceID]map[uuid.UUID]time.Time)}, nil
}

func newKeyCache(age time.Duration, now func() time.Time) (*localcache.Cache[string, result], error) {
	cache, err := localcache.New[string](localcache.Options[result]{MaximumSize: knownKeys, ExpireAfterWrite: age, Now: now})
	if err != nil {
		return nil, fmt.Errorf("known API keys: %w", err)
	}
	return cache, nil
}

// Create returns a new API key of a workspace, its secret and the hash to store. The secret is stored
// nowhere.
func (k *Keys) Create(workspace tenants.WorkspaceID, name string, scopes []tenants.Scope, by uuid.UUID, expires *time.Time) (key tenants.APIKey, secret string, hash []byte) {
	secret, prefix, suffix := GenerateKey()
	key = tenants.APIKey{
		ID: uuid.Must(uuid.NewV7()), Workspace: workspace, Name: name, Prefix: prefix, Suffix: suffix,
		Scopes: scopes, CreatedBy: by, APIKeyTimes: tenants.APIKeyTimes{CreatedAt: k.now(), ExpiresAt: expires},
	}
	return key, secret, HashKey(k.peppers[0], secret)
}

// Renew returns a new secret for an API key and the rotation to store. The secret is stored nowhere. The
// previous secret works for grace.
func (k *Keys) Renew(grace time.Duration) (rotation tenants.Rotation, secret string) {
	secret, prefix, suffix := GenerateKey()
	return tenants.Rotation{Prefix: prefix, Suffix: suffix, Hash: HashKey(k.peppers[0], secret), OldUntil: k.now().Add(grace)}, secret
}

// Authenticate returns the API key of a secret, or one of the errors tenants.ErrKeyMalformed, ErrKeyUnknown,
// ErrKeyRevoked, ErrKeyExpired, ErrSuspended.
func (k *Keys) Authenticate(ctx context.Context, secret string) (tenants.APIKey, error) {
	if err := CheckKey(secret); err != nil {
		return tenants.APIKey{}, err
	}
	for i, pepper := range k.tried(secret) {
		key, err := k.find(ctx, string(HashKey(pepper, secret)))
		switch {
		case errors.Is(err, tenants.ErrKeyUnknown):
			continue
		case err != nil:
			return tenants.APIKey{}, err
		}
		if err := k.check(key); err != nil {
			return tenants.APIKey{}, err
		}
		k.touch(key)
		if i > 0 && i < len(k.peppers) {
			k.rehash(ctx, key, HashKey(pepper, secret), HashKey(k.peppers[0], secret))
		}
		return key, nil
	}
	return tenants.APIKey{}, tenants.ErrKeyUnknown
}

// Remembers reports whether memory holds the API key of a secret, valid or not. It does not ask the database.
func (k *Keys) Remembers(secret string) bool {
	for _, pepper := range k.peppers {
		hash := string(HashKey(pepper, secret))
		if known, ok := k.known.Get(hash); ok && known.err == nil {
			return true
		}
		if _, ok := k.last.Get(hash); ok {
			return true
		}
	}
	return false
}

// Of returns an API key that a member created and may use now, without its secret. It returns
// tenants.ErrNotFound for other people's keys, or the errors of Authenticate.
func (k *Keys) Of(ctx context.Context, workspace tenants.WorkspaceID, person, id uuid.UUID) (tenants.APIKey, error) {
	key, err := k.store.APIKey(ctx, workspace, id)
	if err != nil {
		return tenants.APIKey{}, err
	}
	if key.CreatedBy != person || key.Person != person {
		return tenants.APIKey{}, tenants.ErrNotFound
	}
	if err := k.check(key); err != nil {
		return tenants.APIKey{}, err
	}
	k.touch(key)
	return key, nil
}

// ReadAhead loads API keys by their hashes into memory, so that they work if the database is down at their
// next use. It skips unknown hashes.
func (k *Keys) ReadAhead(ctx context.Context, hashes [][]byte) error {
	for _, hash := range hashes {
		if _, err := k.find(ctx, string(hash)); err != nil && !errors.Is(err, tenants.ErrKeyUnknown) {
			return err
		}
	}
	return nil
}

// check returns why a key may not be used now, or nil.
func (k *Keys) check(key tenants.APIKey) error {
	switch {
	case key.RevokedAt != nil:
		return tenants.ErrKeyRevoked
	case key.ExpiresAt != nil && !k.now().Before(*key.ExpiresAt):
		return tenants.ErrKeyExpired
	case key.Suspended:
		return tenants.ErrSuspended
	}
	return nil
}

// Forget clears the cache, so that the next use of each key asks the database. While the database does not
// answer, keys that were valid still work.
func (k *Keys) Forget() { k.changes.Heard(func(uint64) { k.known.Clear() }) }

// Changed makes the next use of every key ask the database, because keys of the workspace or person with this
// id have changed. Those stay invalid until the database has answered, since they may have been revoked.
func (k *Keys) Changed(id string) {
	of, err := uuid.Parse(id)
	k.changes.Heard(func(count uint64) {
		k.known.Clear()
		if err == nil {
			k.changed.Set(of, count)
		}
	})
}

// Flush writes the last uses of keys.
func (k *Keys) Flush(ctx context.Context) error {
	k.mu.Lock()
	used := k.used
	k.used = make(map[tenants.WorkspaceID]map[uuid.UUID]time.Time)
	k.mu.Unlock()
	var failures []error
	for workspace, keys := range used {
		if err := k.store.TouchAPIKeys(ctx, workspace, keys); err != nil {
			failures = append(failures, err)
		}
	}
	return errors.Join(failures...)
}

func (k *Keys) find(ctx context.Context, hash string) (tenants.APIKey, error) {
	if known, ok := k.known.Get(hash); ok {
		return known.key, known.err
	}
	changes := k.changes.Count()
	// Lookups after a change do not share an answer from before it.
	flight := strconv.FormatUint(changes, 10) + " " + hash
	found, err, _ := k.asking.Do(flight, func() (any, error) {
		// The answer is for all waiting callers, even if the first has left.
		return k.ask(context.WithoutCancel(ctx), hash, changes)
	})
	if err != nil {
		return tenants.APIKey{}, err
	}
	known, _ := found.(result)
	return known.key, known.err
}

// ask looks up the key with a hash, after a number of changes, and caches the answer.
func (k *Keys) ask(ctx context.Context, hash string, changes uint64) (result, error) {
	patience := findTimeout
	if _, good := k.wasGood(hash); good {
		patience = againTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	key, err := k.store.APIKeyByHash(ctx, []byte(hash))
	if err != nil && !errors.Is(err, tenants.ErrKeyUnknown) {
		before, good := k.wasGood(hash)
		if !good {
			return result{}, fmt.Errorf("find API key: %w", err)
		}
		k.changes.Keep(changes, func() {
			k.known.Set(hash, before)
			k.known.SetExpiresAfter(hash, againAge)
		})
		return before, nil
	}
	known := result{key: key, err: err, since: changes}
	k.changes.Keep(changes, func() {
		k.known.Set(hash, known)
		if err == nil && key.RevokedAt == nil && !key.Suspended {
			k.last.Set(hash, known)
		} else {
			k.last.Delete(hash)
		}
	})
	return known, nil
}

// wasGood returns a key that was valid at the store's last answer, unless its workspace or a person behind it
// has changed since.
func (k *Keys) wasGood(hash string) (result, bool) {
	before, good := k.last.Get(hash)
	for _, id := range [...][16]byte{before.key.Workspace, before.key.CreatedBy, before.key.Person} {
		if changed, is := k.changed.Get(id); is && changed > before.since {
			good = false
		}
	}
	return before, good
}

func (k *Keys) touch(key tenants.APIKey) {
	k.mu.Lock()
	defer k.mu.Unlock()
	keys := k.used[key.Workspace]
	if keys == nil {
		keys = make(map[uuid.UUID]time.Time)
		k.used[key.Workspace] = keys
	}
	keys[key.ID] = k.now()
}
