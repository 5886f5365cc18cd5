package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"palimpsest/api"
	"palimpsest/cmd/palimpsest/settings"
	"palimpsest/cmd/palimpsest/setup"
	"palimpsest/tenants"
	"palimpsest/tenants/identity"
	"palimpsest/tenants/tenantsdb"
)

// site is the whole product on one database, at one public URL. Related changes share a transaction there,
// and the outage of a database affects its site only.
type site struct {
	setup.Inputs
	health  *health
	keys    *identity.Keys
	handler http.Handler
	seams   seams
}

// registered returns the registerer of a site's metrics. With several sites, it adds a label.
func (s *site) registered(registry prometheus.Registerer) prometheus.Registerer {
	if s.Config.Storage.Host == "" {
		return registry
	}
	return prometheus.WrapRegistererWith(prometheus.Labels{"database": s.Config.Storage.Host}, registry)
}

// sites are the sites of a process, at least one.
type sites []*site

// openSites opens a site for each database, all databases at once. With several, it opens those that refuse
// connections later. It is an error if all of them do.
func (p *program) openSites(ctx context.Context) error {
	p.OnClose(func() { p.sites.close() })
	for _, config := range p.Config.Each() {
		one := &site{Inputs: setup.New(config, p.Log, p.Now)}
		one.Listening, one.MailToken, one.Guard = p.Listening, p.MailToken, p.Guard
		if config.Storage.Host != "" {
			one.Log = p.Log.With("database", config.Storage.Host)
		}
		p.sites = append(p.sites, one)
	}
	bases, err := p.openBases(ctx)
	if err != nil {
		return err
	}
	for i, one := range p.sites {
		if err := one.wire(ctx, bases[i], p.process); err != nil {
			return one.about(err)
		}
	}
	return nil
}

// openBases opens the shared dependencies of each site.
func (p *program) openBases(ctx context.Context) ([]base, error) {
	bases, errs := make([]base, len(p.sites)), make([]error, len(p.sites))
	var another chan struct{} // nil: keep waiting for the only database
	if len(p.sites) > 1 {
		another = make(chan struct{})
	}
	var opened sync.Once
	var opening sync.WaitGroup
	for i, one := range p.sites {
		opening.Go(func() {
			bases[i], errs[i] = openBase(ctx, one.Inputs, p.after, one.registered(p.registry), another)
			if another != nil && errs[i] == nil && bases[i].away == nil {
				opened.Do(func() { close(another) })
			}
		})
	}
	opening.Wait()
	isAway := 0
	for i, one := range p.sites {
		if errs[i] != nil {
			return nil, one.about(errs[i])
		}
		if bases[i].away != nil {
			isAway++
		}
	}
	if isAway == len(p.sites) {
		return nil, p.sites[0].about(bases[0].away)
	}
	return bases, nil
}

// about adds the database's host to an error, if there are several.
func (s *site) about(err error) error {
	if s.Config.Storage.Host == "" {
		return err
	}
	return fmt.Errorf("DATABASE_URLS: %s: %w", s.Config.Storage.Host, err)
}

// begin starts the parts that need the database, now or once it is open: jobs, notices of other replicas,
// and reading ahead.
func (s *site) begin(ctx context.Context, b base, listener *tenantsdb.Listener, readAhead func()) error {
	start := func(ctx context.Context) error {
		if err := b.work.Start(ctx); err != nil {
			return err
		}
		if err := listener.Start(ctx); err != nil {
			return err
		}
		readAhead() // the listener hears changes from now on
		return nil
	}
	if b.away == nil {
		return start(ctx)
	}
	s.openLater(b, start)
	return nil
}

// openLater opens a database that was away at the start, and then starts the parts that need it. It retries
// until it succeeds or the program closes.
func (s *site) openLater(b base, start func(context.Context) error) {
	s.Log.Warn("the database takes no connections; its workspaces are served once it does", "error", b.away)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		said := b.away.Error()
		for {
			select {
			case <-ctx.Done():
				return
			case <-b.opening.After(setup.DatabaseLater):
			}
			err := b.opening.Open(ctx, b.db, b.vault)
			if err == nil {
				err = start(ctx)
			}
			if err == nil {
				s.Log.Info("the database is open; its workspaces are served")
				return
			}
			if ctx.Err() == nil && err.Error() != said {
				said = err.Error()
				s.Log.Error("open the database: it is tried again", "every", setup.DatabaseLater, "error", err)
			}
		}
	}()
	s.OnClose(func() { cancel(); <-done })
}

// close ends all sites at once, because one with its database away takes long.
func (s sites) close() {
	var ends sync.WaitGroup
	for _, one := range s {
		ends.Go(one.Close)
	}
	ends.Wait()
}

// fields returns members of a JSON object with the state of each part, by host if there are several
// databases.
func (s sites) fields() string {
	if s[0].Config.Storage.Host == "" {
		return s[0].health.fields()
	}
	each := make([]string, len(s))
	for i, one := range s {
		each[i] = fmt.Sprintf("%q:{%s}", one.Config.Storage.Host, one.health.fields())
	}
	return fmt.Sprintf("%q:{%s}", "databases", strings.Join(each, ","))
}

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
			request.Host = found.Config.Storage.Host
		}
		found.handler.ServeHTTP(w, request)
	})
}

// at returns the site of a host, or the first one if the host is not ours.
func (s sites) at(host string) (home *site, isOurs bool) {
	for _, one := range s {
		if one.Config.Storage.Host == settings.HostOf(one.Config.Serving.PublicURL, host) {
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
