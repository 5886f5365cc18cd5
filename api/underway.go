package api

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"palimpsest/tenants"
)

const (
	// RecheckEvery is the interval for calls of Recheck, so that a request of a revoked key goes on for two
	// seconds at most.
	RecheckEvery = time.Second

	recheckAtOnce = 8 // keys
)

// underway holds the admitted requests that have not ended, by the secret of each.
type underway struct {
	mu sync.Mutex
	of map[string]map[*RequestLog]context.CancelCauseFunc
}

// enter adds a request and its cancel function. The returned function removes it.
func (u *underway) enter(secret string, event *RequestLog, cancel context.CancelCauseFunc) (leave func()) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.of == nil {
		u.of = map[string]map[*RequestLog]context.CancelCauseFunc{}
	}
	if u.of[secret] == nil {
		u.of[secret] = map[*RequestLog]context.CancelCauseFunc{}
	}
	u.of[secret][event] = cancel
	return func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		if delete(u.of[secret], event); len(u.of[secret]) == 0 {
			delete(u.of, secret)
		}
	}
}

// secrets returns the secrets of the requests under way.
func (u *underway) secrets() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	all := make([]string, 0, len(u.of))
	for secret := range u.of {
		all = append(all, secret)
	}
	return all
}

// end ends the requests with a secret.
func (u *underway) end(secret string, cause error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, cancel := range u.of[secret] {
		cancel(keyLost{cause})
	}
}

// keyLost says why an admitted request may not continue.
type keyLost struct{ error }

// Unwrap returns the cause.
func (e keyLost) Unwrap() error { return e.error }

// whyEnded returns why a request may not continue; nil if its context has not ended, or for another cause.
func whyEnded(ctx context.Context) error {
	if why, is := errors.AsType[keyLost](context.Cause(ctx)); is {
		return why.error
	}
	return nil
}

// Recheck ends the requests under way whose key may no longer send requests: it was revoked, it has expired,
// its workspace is suspended or deleted, or the person behind it was removed.
func (g *Gate) Recheck(ctx context.Context) {
	var checks errgroup.Group
	checks.SetLimit(recheckAtOnce)
	for _, secret := range g.underway.secrets() {
		checks.Go(func() error {
			if err := g.lost(ctx, secret); err != nil {
				g.underway.end(secret, err)
			}
			return nil
		})
	}
	_ = checks.Wait() // never fails
}

// lost returns why an admitted key may not send requests now; nil if it may, or if the database does not
// answer.
func (g *Gate) lost(ctx context.Context, secret string) error {
	key, err := g.Keys.Authenticate(ctx, secret)
	if err == nil && !slices.Contains(key.Scopes, tenants.ScopeProxy) {
		return tenants.ErrScopeMissing
	}
	for _, final := range []error{tenants.ErrKeyRevoked, tenants.ErrKeyExpired, tenants.ErrKeyUnknown, tenants.ErrSuspended} {
		if errors.Is(err, final) {
			return err
		}
	}
	return nil
}
