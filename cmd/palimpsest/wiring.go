package main

import (
	"context"

	"palimpsest/api"
	"palimpsest/api/proxysettings"
	"palimpsest/api/recall"
	"palimpsest/pipeline/wire/formats"
	"palimpsest/tenants"
	"palimpsest/tenants/datakeys"
	"palimpsest/tenants/identity"
	"palimpsest/tenants/tenantsdb"
)

// wire creates every part of the product and connects them, top to bottom.
func (s *site) wire(ctx context.Context, base base, process process) error {
	people, keys, err := openAccess(base)
	if err != nil {
		return err
	}
	stored, err := openStored(base)
	if err != nil {
		return err
	}
	mails, err := newOutbox(base, people)
	if err != nil {
		return err
	}
	alerting, err := newAlerts(base)
	if err != nil {
		return err
	}
	proxying, err := openProxying(base, stored, &s.seams.recorded)
	if err != nil {
		return err
	}
	compares, advice := advise(base, stored.sessions, proxying.writer.Models, proxying.settings)
	sold := newBilling(base, proxying.settings)
	deleting := newDeletion(base, people, stored.mover, sold)
	s.health, s.keys = base.health, keys
	s.seams.db, s.seams.people, s.seams.work, s.seams.mover, s.seams.journal, s.seams.writer = base.db, people, base.work, stored.mover, proxying.journal, proxying.writer
	if err := openWork(base); err != nil {
		return err
	}
	readAhead := ahead{base, keys, proxying.settings, stored.archiveKeys, stored.sessions, proxying.writer.Resolver}.start()
	listener := hear(base, changes{
		people: people, keys: keys, archive: stored.archiveKeys, settings: proxying.settings, lanes: proxying.writer.Resolver, patterns: proxying.patterns, answers: proxying.answers, pages: process.pages, work: base.work,
		ahead: readAhead,
	})
	if err := s.begin(ctx, base, listener, readAhead); err != nil {
		return err
	}

	e := newEcho(s.Log, clientAddress(s.Config.Serving))
	proxy := proxying.proxy(base, admittingKeys{keys}, e.IPExtractor)
	proxy.Bytes, proxy.Tracer, proxy.Recall = process.bytes, process.tracer, recall.New(recall.Config{
		Readers: base.db.Data, Lanes: stored.sessions.Browser(), Archive: stored.originals, Searcher: proxying.index, Behind: proxying.index.Behind, Codecs: formats.ByFormat(), PublicURL: s.Reachable(),
		Observe: proxy.Recalled, Log: s.Log, Now: s.Now,
	})
	if s.Config.Serving.Role.Proxies() {
		proxy.Register(e)
		base.Every(api.RecheckEvery, proxy.Recheck)
	}
	product{
		base: base, stored: stored, proxying: proxying, people: people, keys: keys, mails: mails, deleting: deleting, sold: sold,
		preview: compares, advice: advice, alerting: alerting, again: api.Resender{KeyOf: keys.Of, Proxy: proxy}, pages: process.pages,
	}.serve(e)
	s.handler = e
	return nil
}

// Interface guards.
var (
	_ identity.KeyStore        = tenantsdb.APIKeys{}
	_ tenants.Exchanges        = tenantsdb.Exchanges{}
	_ proxysettings.Workspaces = tenantsdb.ProxySettings{}
	_ tenants.Transactor       = (*tenantsdb.DB)(nil)
	_ datakeys.Store           = tenantsdb.DataKeys{}
)
