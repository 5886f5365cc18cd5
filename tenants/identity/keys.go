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
	// keyAge bounds how long a key is believed without a look at the database,
	// should the notification of its revocation be lost.
	keyAge    = 30 * time.Second
	knownKeys = 100_000

	// keyOutage bounds how long a key is believed while the database does not
	// answer: its requests must not fail for that.
	keyOutage = 10 * time.Minute

	findTimeout = 5 * time.Second

	// againTimeout bounds how long a key waits for the database that was good before, and
	// againAge how long it is believed then.
	againTimeout = 500 * time.Millisecond
	againAge     = 5 * time.Second
)

// KeyStore finds API keys and notes their use.
type KeyStore interface {
	// APIKeyByHash returns the key with a hash, or tenants.ErrKeyUnknown.
	APIKeyByHash(ctx context.Context, hash []byte) (tenants.APIKey, error)

	// APIKey returns a key of a workspace, with those of its scopes that the person behind it
	// may use now. It returns tenants.ErrNotFound.
	APIKey(ctx context.Context, workspace tenants.WorkspaceID, id uuid.UUID) (tenants.APIKey, error)

	// TouchAPIKeys sets when keys of a workspace were last used.
	TouchAPIKeys(ctx context.Context, workspace tenants.WorkspaceID, used map[uuid.UUID]time.Time) error

	// RehashAPIKey replaces the hash of a key, unless it has another already.
	RehashAPIKey(ctx context.Context, workspace tenants.WorkspaceID, id uuid.UUID, old, hash []byte) error
}

// Keys tells whose API key a secret is, from memory where it has seen it lately.
type Keys struct {
	store   KeyStore
	peppers [][]byte
	now     func() time.Time
	known   *localcache.Cache[string, result]
	last    *localcache.Cache[string, result]   // good keys, for as long as the store fails
	changed *localcache.Cache[[16]byte, uint64] // number of the latest change, by the workspace or the person that it named
	asking  singleflight.Group
	changes localcache.Changes

	mu   sync.Mutex
	used map[tenants.WorkspaceID]map[uuid.UUID]time.Time // by workspace and key
}

// result is what the store said of a hash.
type result struct {
	key   tenants.APIKey
	err   error
	since uint64 // changes that had been heard when the store was asked
}

// NewKeys returns Keys. New keys are hashed with the first pepper; all are tried.
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

// Create returns a new API key of a workspace with its secret, which is not kept
// anywhere, and the hash to store.
func (k *Keys) Create(workspace tenants.WorkspaceID, name string, scopes []tenants.Scope, by uuid.UUID, expires *time.Time) (key tenants.APIKey, secret string, hash []byte) {
	secret, prefix, suffix := GenerateKey()
	key = tenants.APIKey{
		ID: uuid.Must(uuid.NewV7()), Workspace: workspace, Name: name, Prefix: prefix, Suffix: suffix,
		Scopes: scopes, CreatedBy: by, APIKeyTimes: tenants.APIKeyTimes{CreatedAt: k.now(), ExpiresAt: expires},
	}
	return key, secret, HashKey(k.peppers[0], secret)
}

// Renew returns another secret for an API key, which is not kept anywhere, and the
// rotation to store. The secret before works for grace.
func (k *Keys) Renew(grace time.Duration) (rotation tenants.Rotation, secret string) {
	secret, prefix, suffix := GenerateKey()
	return tenants.Rotation{Prefix: prefix, Suffix: suffix, Hash: HashKey(k.peppers[0], secret), OldUntil: k.now().Add(grace)}, secret
}

// Authenticate returns the API key that a secret belongs to, or one of the kinds
// tenants.ErrKeyMalformed, ErrKeyUnknown, ErrKeyRevoked, ErrKeyExpired, ErrSuspended.
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

// Remembers reports whether memory holds the API key of a secret, valid or not. It asks no database.
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

// Of returns an API key that a member created and that they may use now, without its secret.
// It returns tenants.ErrNotFound for a key
// of anyone else, or one of the kinds of Authenticate.
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

// ReadAhead has memory hold API keys with hashes, so that they are known should the database be away when
// they are used next. A hash that no key has any more is passed over.
func (k *Keys) ReadAhead(ctx context.Context, hashes [][]byte) error {
	for _, hash := range hashes {
		if _, err := k.find(ctx, string(hash)); err != nil && !errors.Is(err, tenants.ErrKeyUnknown) {
			return err
		}
	}
	return nil
}

// check returns why a key may not be used now; nil if it may.
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

// Forget makes the next use of every key ask the database: one may have changed. While the database
// does not answer, keys that were good are believed.
func (k *Keys) Forget() { k.changes.Heard(func(uint64) { k.known.Clear() }) }

// Changed makes the next use of every key ask the database: keys of the workspace or the person with this
// id have changed. Those are not believed before the database has answered, for it may have revoked them.
func (k *Keys) Changed(id string) {
	of, err := uuid.Parse(id)
	k.changes.Heard(func(count uint64) {
		k.known.Clear()
		if err == nil {
			k.changed.Set(of, count)
		}
	})
}

// Flush writes when keys were last used.
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
	// Anyone who asks after a change does not share an answer from before it.
	flight := strconv.FormatUint(changes, 10) + " " + hash
	found, err, _ := k.asking.Do(flight, func() (any, error) {
		// The answer is for all who wait, even if the first of them has left.
		return k.ask(context.WithoutCancel(ctx), hash, changes)
	})
	if err != nil {
		return tenants.APIKey{}, err
	}
	known, _ := found.(result)
	return known.key, known.err
}

// ask asks the store for the key with a hash, after a number of changes, and has memory keep the answer.
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

// wasGood returns a key that was good when the store was asked last, unless a change of its workspace or
// of a person behind it has been heard since.
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
