package main

import (
	"context"
	"errors"
	"net/http"

	"palimpsest/api"
	"palimpsest/tenants"
	"palimpsest/tenants/identity"
)

// handler serves each request with the site that it belongs to.
func (s sites) handler() http.Handler {
	if len(s) == 1 {
		return s[0].handler
	}
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		home, isOurs := s.at(request.Host)
		found := s.of(request, home)
		if found != home && isOurs { // a site does not trust another host's name
			request = request.WithContext(request.Context())
			request.Host = found.config.Host
		}
		found.handler.ServeHTTP(w, request)
	})
}

// at returns the site of a host, or the first one if the host is not ours.
func (s sites) at(host string) (home *site, isOurs bool) {
	for _, one := range s {
		if one.config.Host == hostOf(one.config.PublicURL, host) {
			return one, true
		}
	}
	return s[0], false
}

// of returns the site that a request belongs to: the one that knows its API key, or else the one of its
// host. If the key may belong to a site that does not answer, it returns that site, which reports the
// outage.
func (s sites) of(request *http.Request, home *site) *site {
	var silent *site
	for _, secret := range api.Secrets(request.Header) {
		if identity.CheckKey(secret) != nil {
			continue
		}
		holder, unsure := s.holding(request.Context(), home, secret)
		if holder != nil {
			return holder
		}
		if silent == nil {
			silent = unsure
		}
	}
	if silent != nil {
		return silent
	}
	return home
}

// holding returns the site that has an API key, or nil, and a site that could not be asked, if any. If
// memory knows the key, it asks no database. Otherwise it asks all databases concurrently.
func (s sites) holding(ctx context.Context, home *site, secret string) (holder, silent *site) {
	for _, one := range append(sites{home}, s...) {
		if one.keys.Remembers(secret) {
			return one, nil
		}
	}
	unsure := func(one *site) {
		if silent == nil || one == home {
			silent = one
		}
	}
	type answer struct {
		from *site
		err  error
	}
	asked, answers := 0, make(chan answer, len(s))
	for _, one := range s {
		if one.health.away.Load() {
			unsure(one)
			continue
		}
		asked++
		go func() { // ends with the store's timeout
			_, err := one.keys.Authenticate(ctx, secret)
			answers <- answer{one, err}
		}()
	}
	for range asked {
		switch got := <-answers; {
		case got.err == nil, errors.Is(got.err, tenants.ErrKeyRevoked), errors.Is(got.err, tenants.ErrKeyExpired), errors.Is(got.err, tenants.ErrSuspended):
			return got.from, nil
		case !errors.Is(got.err, tenants.ErrKeyUnknown):
			unsure(got.from)
		}
	}
	return nil, silent
}
