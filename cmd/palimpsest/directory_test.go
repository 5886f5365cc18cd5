package main

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"palimpsest/cmd/palimpsest/settings"
	"palimpsest/cmd/palimpsest/setup"
	"palimpsest/tenants"
	"palimpsest/tenants/identity"
)

// keyStore is a database that knows API keys, or does not answer.
type keyStore struct {
	identity.KeyStore

	find func(ctx context.Context) (tenants.APIKey, error)
}

func (s keyStore) APIKeyByHash(ctx context.Context, _ []byte) (tenants.APIKey, error) {
	return s.find(ctx)
}

func unknown(context.Context) (tenants.APIKey, error) {
	return tenants.APIKey{}, tenants.ErrKeyUnknown
}

func known(context.Context) (tenants.APIKey, error) { return tenants.APIKey{}, nil }

func broken(context.Context) (tenants.APIKey, error) {
	return tenants.APIKey{}, errors.New("connection refused")
}

// siteWith returns a site at a host with what its database says of API keys.
func siteWith(t *testing.T, host string, find func(context.Context) (tenants.APIKey, error)) *site {
	t.Helper()
	keys, err := identity.NewKeys(keyStore{find: find}, [][]byte{[]byte("pepper")}, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	return &site{Inputs: setup.Inputs{Config: settings.Config{Storage: settings.Storage{Host: host}}}, keys: keys, health: new(health)}
}

// found returns the site that a request goes to.
func found(all sites, request *http.Request) *site {
	home, _ := all.at(request.Host)
	return all.of(request, home)
}

// asking returns a request to a host, with an API key where header names one for it.
func asking(t *testing.T, host, header, secret string) *http.Request {
	t.Helper()
	request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+host+"/v1/messages", nil)
	if header == "Authorization" {
		secret = "Bearer " + secret
	}
	if header != "" {
		request.Header.Set(header, secret)
	}
	return request
}

func TestRequestsWithoutAKeyGoToTheirHost(t *testing.T) {
	t.Parallel()
	never := func(context.Context) (tenants.APIKey, error) {
		t.Error("a database is asked")
		return unknown(t.Context())
	}
	a, b := siteWith(t, "a.example.com", never), siteWith(t, "b.example.com:8443", never)
	all := sites{a, b}
	for host, want := range map[string]*site{
		"a.example.com": a, "A.Example.com:443": a, "b.example.com:8443": b, "B.example.com:8443": b,
		"b.example.com": a, "elsewhere.example.com": a, "127.0.0.1:8080": a,
	} {
		if found(all, asking(t, host, "", "")) != want {
			t.Errorf("%s is not answered by %s", host, want.Config.Storage.Host)
		}
	}
	if found(all, asking(t, "b.example.com:8443", "X-Api-Key", "sk-someone-else")) != b {
		t.Error("a key of another kind does not stay at its host")
	}
}

func TestAPIKeysGoToTheDatabaseThatKnowsThem(t *testing.T) {
	t.Parallel()
	secret, _, _ := identity.GenerateKey()
	revoked := func(context.Context) (tenants.APIKey, error) {
		return tenants.APIKey{APIKeyTimes: tenants.APIKeyTimes{RevokedAt: new(time.Time)}}, nil
	}
	for name, finds := range map[string]func(context.Context) (tenants.APIKey, error){"a valid key": known, "a revoked key": revoked} {
		for _, header := range []string{"Authorization", "X-Api-Key", "Api-Key"} {
			a, b := siteWith(t, "a.example.com", unknown), siteWith(t, "b.example.com", finds)
			for _, host := range []string{"a.example.com", "b.example.com", "c.example.com"} {
				if found(sites{a, b}, asking(t, host, header, secret)) != b {
					t.Errorf("%s in %s at %s does not get to its database", name, header, host)
				}
			}
		}
	}
	a, b := siteWith(t, "a.example.com", unknown), siteWith(t, "b.example.com", unknown)
	if found(sites{a, b}, asking(t, "b.example.com", "Api-Key", secret)) != b || found(sites{a, b}, asking(t, "c.example.com", "Api-Key", secret)) != a {
		t.Error("a key that nobody knows does not stay at its host")
	}
	request, other := asking(t, "a.example.com", "X-Api-Key", secret), siteWith(t, "b.example.com", known)
	request.Header.Set("Authorization", "Bearer of something else")
	if found(sites{a, other}, request) != other {
		t.Error("one of two keys is enough")
	}
}

// A database that stands still delays no key of another, whether memory knows the key or its
// database has to be asked.
func TestKeyDoesNotWaitForADatabaseThatStandsStill(t *testing.T) {
	t.Parallel()
	secret, _, _ := identity.GenerateKey()
	var gaveUp atomic.Int32
	still := func(ctx context.Context) (tenants.APIKey, error) {
		<-ctx.Done() // the lookup has run out of time
		gaveUp.Add(1)
		return tenants.APIKey{}, ctx.Err()
	}
	a, b := siteWith(t, "a.example.com", still), siteWith(t, "b.example.com", known)
	if found(sites{a, b}, asking(t, "a.example.com", "Api-Key", secret)) != b || gaveUp.Load() > 0 {
		t.Errorf("the database that answers is not the one, or has waited for %d others", gaveUp.Load())
	}
	b.keys.Forget() // another key has changed
	var asked atomic.Int32
	for range 100 {
		c := siteWith(t, "c.example.com", func(context.Context) (tenants.APIKey, error) {
			asked.Add(1)
			return unknown(t.Context())
		})
		if found(sites{c, b}, asking(t, "c.example.com", "Api-Key", secret)) != b {
			t.Fatal("memory does not know the key")
		}
	}
	if asked.Load() > 0 {
		t.Errorf("other databases are asked %d times for a key that memory knows", asked.Load())
	}
}

// A key that only a database could know that does not answer is not refused as unknown.
func TestKeyThatNoDatabaseKnowsIsLeftToTheOneThatIsAway(t *testing.T) {
	t.Parallel()
	secret, _, _ := identity.GenerateKey()
	a, b, c := siteWith(t, "a.example.com", unknown), siteWith(t, "b.example.com", broken), siteWith(t, "c.example.com", known)
	if found(sites{a, b}, asking(t, "a.example.com", "Api-Key", secret)) != b {
		t.Error("the database that fails is not left to say so")
	}
	if found(sites{a, b, c}, asking(t, "a.example.com", "Api-Key", secret)) != c {
		t.Error("the database that knows the key is not the one")
	}
	never := siteWith(t, "d.example.com", func(context.Context) (tenants.APIKey, error) {
		t.Error("a database that is away is asked")
		return unknown(t.Context())
	})
	never.health.away.Store(true)
	if found(sites{a, never}, asking(t, "a.example.com", "Api-Key", secret)) != never {
		t.Error("the database that is away is not left to say so")
	}
}
