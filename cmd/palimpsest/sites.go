package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"palimpsest/tenants/identity"
)

// site is the whole product on one database, at one public URL. What belongs together is in one
// transaction there, and the outage of a database is that of its site alone.
type site struct {
	setup
	health  *health
	keys    *identity.Keys
	handler http.Handler
	seams   seams
}

// registered returns where the metrics of a site are registered: of several, each has a label.
func (s *site) registered(registry prometheus.Registerer) prometheus.Registerer {
	if s.config.Host == "" {
		return registry
	}
	return prometheus.WrapRegistererWith(prometheus.Labels{"database": s.config.Host}, registry)
}

// sites are those of a process, at least one.
type sites []*site

// openSites opens a site for each database, one after the other.
func (p *program) openSites(ctx context.Context) error {
	p.onClose(func() { p.sites.close() })
	for _, config := range p.config.each() {
		one := &site{setup: newSetup(config, p.log, p.now)}
		one.listening, one.mailToken = p.listening, p.mailToken
		if config.Host != "" {
			one.log = p.log.With("database", config.Host)
		}
		p.sites = append(p.sites, one)
		err := one.wire(ctx, p.process)
		if err != nil && config.Host != "" {
			return fmt.Errorf("DATABASE_URLS: %s: %w", config.Host, err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// close ends all sites at once: one whose database is away takes its time.
func (s sites) close() {
	var ends sync.WaitGroup
	for _, one := range s {
		ends.Go(one.close)
	}
	ends.Wait()
}

// fields are members of a JSON object that say what is up and down: of several databases, by
// their hosts.
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
