package main

import (
	"context"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"palimpsest/api"
	"palimpsest/api/recall"
	"palimpsest/pipeline/wire/formats"
	"palimpsest/tenants"
	"palimpsest/tenants/datakeys"
	"palimpsest/tenants/identity"
	"palimpsest/tenants/tenantsdb"
)

// wire makes every part of the product and connects them, top to bottom.
func (p *program) wire(ctx context.Context, registry *prometheus.Registry) (http.Handler, error) {
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	base, err := openBase(ctx, p.setup, p.after, registry)
	if err != nil {
		return nil, err
	}
	people, keys, err := openAccess(base)
	if err != nil {
		return nil, err
	}
	stored, err := openStored(ctx, base)
	if err != nil {
		return nil, err
	}
	mails, err := newOutbox(base, people)
	if err != nil {
		return nil, err
	}
	alerting, err := newAlerts(base)
	if err != nil {
		return nil, err
	}
	proxying, err := openProxying(base, stored, &p.seams.recorded)
	if err != nil {
		return nil, err
	}
	compares, advice := advise(base, stored.sessions, proxying.writer.Models)
	sold := newBilling(base, proxying.settings)
	deleting := newDeletion(base, people, stored.mover, sold)
	p.health, p.seams.db, p.seams.people, p.seams.work, p.seams.mover, p.seams.journal = base.health, base.db, people, base.work, stored.mover, proxying.journal
	if err := startWork(ctx, base); err != nil {
		return nil, err
	}
	if err := hear(ctx, base, changes{
		people: people, keys: keys, archive: stored.archiveKeys, settings: proxying.settings, lanes: proxying.writer.Resolver, patterns: proxying.shelf, pages: p.pages, work: base.work,
	}); err != nil {
		return nil, err
	}

	e := newEcho(p.log, p.config.clientAddress())
	proxy := proxying.proxy(base, admittingKeys{keys}, e.IPExtractor)
	proxy.Tracer, proxy.Recall = p.tracer, recall.New(recall.Config{
		Lanes: stored.sessions.Browser(), Archive: stored.originals, Searcher: proxying.index, Codecs: formats.ByFormat(), PublicURL: p.reachable(),
		Observe: proxy.Recalled, Log: p.log, Now: p.now,
	})
	if p.config.Role.proxies() {
		proxy.Register(e)
	}
	product{
		base: base, stored: stored, proxying: proxying, people: people, keys: keys, mails: mails, deleting: deleting, sold: sold,
		preview: compares, advice: advice, alerting: alerting, again: api.Again{KeyOf: keys.Of, Proxy: proxy}, pages: p.pages,
	}.serve(e)
	return e, nil
}

// Interface guards.
var (
	_ identity.KeyStore  = tenantsdb.APIKeys{}
	_ tenants.Exchanges  = tenantsdb.Exchanges{}
	_ api.Workspaces     = tenantsdb.ProxySettings{}
	_ tenants.Transactor = (*tenantsdb.DB)(nil)
	_ datakeys.Store     = tenantsdb.DataKeys{}
)
