package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"palimpsest/tenants/identity"
	"palimpsest/tenants/tenantsdb"
)

// site is the whole product on one database, at one public URL. Related changes share a transaction there,
// and the outage of a database affects its site only.
type site struct {
	setup
	health  *health
	keys    *identity.Keys
	handler http.Handler
	seams   seams
}

// registered returns the registerer of a site's metrics. With several sites, it adds a label.
func (s *site) registered(registry prometheus.Registerer) prometheus.Registerer {
	if s.config.Host == "" {
		return registry
	}
	return prometheus.WrapRegistererWith(prometheus.Labels{"database": s.config.Host}, registry)
}

// sites are the sites of a process, at least one.
type sites []*site

// openSites opens a site for each database, all databases at once. With several, it opens those that refuse
// connections later. It is an error if all of them do.
func (p *program) openSites(ctx context.Context) error {
	p.onClose(func() { p.sites.close() })
	for _, config := range p.config.each() {
		one := &site{setup: newSetup(config, p.log, p.now)}
		one.listening, one.mailToken, one.guard = p.listening, p.mailToken, p.guard
		if config.Host != "" {
			one.log = p.log.With("database", config.Host)
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
			bases[i], errs[i] = openBase(ctx, one.setup, p.after, one.registered(p.registry), another)
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
	if s.config.Host == "" {
		return err
	}
	return fmt.Errorf("DATABASE_URLS: %s: %w", s.config.Host, err)
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
	s.log.Warn("the database takes no connections; its workspaces are served once it does", "error", b.away)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		said := b.away.Error()
		for {
			select {
			case <-ctx.Done():
				return
			case <-b.opening.after(databaseLater):
			}
			err := b.opening.open(ctx, b.db, b.vault)
			if err == nil {
				err = start(ctx)
			}
			if err == nil {
				s.log.Info("the database is open; its workspaces are served")
				return
			}
			if ctx.Err() == nil && err.Error() != said {
				said = err.Error()
				s.log.Error("open the database: it is tried again", "every", databaseLater, "error", err)
			}
		}
	}()
	s.onClose(func() { cancel(); <-done })
}

// close ends all sites at once, because one with its database away takes long.
func (s sites) close() {
	var ends sync.WaitGroup
	for _, one := range s {
		ends.Go(one.close)
	}
	ends.Wait()
}

// fields returns members of a JSON object with the state of each part, by host if there are several
// databases.
func (s sites) fields() string {
	if s[0].config.Host == "" {
		return s[0].health.fields()
	}
	each := make([]string, len(s))
	for i, one := range s {
		each[i] = fmt.Sprintf("%q:{%s}", one.config.Host, one.health.fields())
	}
	return fmt.Sprintf("%q:{%s}", "databases", strings.Join(each, ","))
}
