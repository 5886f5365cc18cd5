package main

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"palimpsest/api"
	"palimpsest/api/embeddings"
	"palimpsest/api/failover"
	"palimpsest/api/limits"
	"palimpsest/api/proxysettings"
	"palimpsest/api/recorder"
	"palimpsest/api/summaries"
	"palimpsest/api/upstream"
	"palimpsest/cmd/palimpsest/settings"
	"palimpsest/pipeline"
	"palimpsest/pipeline/archive/archivedb"
	"palimpsest/pipeline/idle"
	"palimpsest/pipeline/jobs"
	"palimpsest/pipeline/modules"
	"palimpsest/pipeline/modules/compactionbridge"
	"palimpsest/pipeline/modules/ipc"
	"palimpsest/pipeline/modules/patterns"
	"palimpsest/pipeline/modules/patterns/patternsdb"
	"palimpsest/pipeline/modules/semanticcache"
	"palimpsest/pipeline/modules/semanticcache/semanticcachedb"
	"palimpsest/pipeline/prompt"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/session/journal"
	"palimpsest/pipeline/session/sessiondb"
	"palimpsest/pipeline/tokens"
	"palimpsest/pipeline/tokens/catalog"
	"palimpsest/pipeline/wire/formats"
	"palimpsest/tenants"
)

// proxying holds the parts that a client's exchange passes through.
type proxying struct {
	settings  *proxysettings.Cache
	provider  *upstream.Client
	recorder  *recorder.Recorder
	index     *archivedb.Index
	learned   *patternsdb.Store
	patterns  *patterns.Cache
	writer    *prompt.Writer
	journal   *journal.Journal
	limiter   *limits.Limiter
	failover  *failover.Keys
	summaries *summaries.Service
	answers   *semanticcache.Cache
	origins   *api.Origins
}

// openProxying creates the parts for prompts, answers and records, and starts their background work.
// recorded counts exchanges that have become durable.
func openProxying(b base, of stored, recorded *tally) (proxying, error) {
	settings, err := proxysettings.New(b.db.ProxySettings, b.vault, b.Config.Pipe, b.Config.Serving.AllowPrivateUpstreams)
	if err != nil {
		return proxying{}, err
	}
	settings.WithRedaction(of.archiveKeys.TagKey)
	settings.WithBudgets(b.db.Data.Budgets).WithPrices(b.db.Data.ModelPrices).WithLimits(b.db.Data.ModelLimits)
	counter, err := tokens.NewCounter()
	if err != nil {
		return proxying{}, fmt.Errorf("token counter: %w", err)
	}
	t := proxying{settings: settings, provider: upstream.NewGuarded(b.Guard)}
	b.OnClose(t.provider.Close)
	// Record the exchanges of killed processes from the local disk before spend is added up.
	t.limiter = newLimits(b, func(ctx context.Context) { t.recorder.CatchUp(ctx) })
	if t.recorder, err = startRecorder(b, of, recorded, t.limiter.Release); err != nil {
		return proxying{}, err
	}
	embedder, err := embeddings.New(embeddings.Config{Settings: settings, Upstream: t.provider, Recorder: t.recorder, Spent: b.metrics.Spent, Now: b.Now})
	if err != nil {
		return proxying{}, err
	}
	if t.index, err = openIndex(b, of, embedder); err != nil {
		return proxying{}, err
	}
	t.learned = patternsdb.New(b.db)
	t.patterns = patterns.NewCache(t.learned.Approved, b.Now)
	built := modules.All(counter, modules.Memory{
		Past: compactionbridge.Past{Lanes: of.sessions, Originals: of.originals}, Archive: t.index, Learned: t.patterns,
	})
	if t.writer, err = prompt.NewWriter(of.sessions, counter, pipeline.NewChain(built...)); err != nil {
		return proxying{}, err
	}
	t.writer.Now, t.writer.Redactor = b.Now, settings.Redact
	lives, err := session.NewLives(of.sessions.Lives, b.Now)
	if err != nil {
		return proxying{}, err
	}
	t.writer.Lives = lives.Of
	followCatalog(b, t.writer.Models)
	share(b, of.sessions, t.writer.Resolver)
	if t.journal, err = openJournal(b, of, t.writer.Resolver); err != nil {
		return proxying{}, err
	}
	t.writer.Store = t.journal
	planAhead(b, of, t.writer, built)
	t.limiter.Start()
	b.OnClose(t.limiter.Stop)
	if t.summaries, err = summaries.New(summaries.Config{
		Settings: settings, Upstream: t.provider, Recorder: t.recorder, Limits: t.limiter, Originals: of.originals, Store: of.sessions,
		Lanes: t.writer.Resolver, Models: t.writer.Models, Counter: counter, Log: b.Log, Now: b.Now,
		Spent: b.metrics.Spent, Ended: b.metrics.SummaryEnded,
	}); err != nil {
		return proxying{}, err
	}
	t.summaries.Start()
	b.OnClose(t.summaries.Stop)
	if t.origins, err = api.NewOrigins(b.db.APIKeys.OriginAllowed); err != nil {
		return proxying{}, err
	}
	if t.failover, err = failover.New(b.Now, failover.Sleep); err != nil {
		return proxying{}, err
	}
	if t.answers, err = semanticcache.NewCache(semanticcache.Services{
		Store: semanticcachedb.New(b.db, of.archiveKeys), Secret: b.vault.Derive("questions"), Log: b.Log, Now: b.Now,
	}); err != nil {
		return proxying{}, err
	}
	t.answers.Start()
	b.OnClose(t.answers.Stop)
	return t, nil
}

// proxy creates the proxy's HTTP handler, with its limits on incoming requests. address extracts a client's
// address.
func (t proxying) proxy(b base, keys tenants.KeyAuthenticator, address echo.IPExtractor) *api.Server {
	return bounded(b.Config, &api.Server{
		Gate:    api.Gate{Keys: keys, Settings: t.settings, Limits: t.limiter, Address: address, Origins: t.origins},
		Records: api.Records{Recorder: t.recorder, Metrics: b.metrics, Log: b.Log, Now: b.Now},
		Prompts: t.writer, Upstream: t.provider, Summaries: t.summaries, Answers: t.answers, Failover: t.failover,
	})
}

// bounded sets the proxy's limits on incoming requests.
func bounded(config settings.Config, proxy *api.Server) *api.Server {
	proxy.Concurrency = api.NewConcurrency(config.WorkspaceConcurrency)
	proxy.RequireVerified, proxy.Contact = config.Accounts.RequireVerifiedEmail, config.Accounts.OperatorContact
	return proxy
}

// startRecorder starts the recorder of exchanges, and the spool that keeps them on the local disk until
// then. released receives the reservations of exchanges of killed processes.
func startRecorder(b base, of stored, recorded *tally, released func(ctx context.Context, held []string)) (*recorder.Recorder, error) {
	kept, err := openSpool(b, of.archiveKeys)
	if err != nil {
		return nil, err
	}
	recorder := recorder.New(b.db, of.sessions, b.db.Exchanges, of.archiveKeys, b.metrics.Recorded, b.Log).WithSpool(kept)
	announcer := b.db.NewAnnouncer(b.Log)
	announcer.Start()
	b.OnClose(announcer.Stop)
	recorder.Recorded, recorder.Released = recorded.counting(announcer.Recorded), released
	recorder.Start()
	b.health.parts.WatchRecorder(recorder, kept)
	b.OnClose(recorder.Stop)
	b.Every(spoolReplay, recorder.Replay)
	return recorder, nil
}

// share lets all processes on the database find lanes, if there can be several. A private database has only
// one process.
func share(b base, sessions *sessiondb.Store, lanes *session.Resolver) {
	lanes.Heed(b.health.outage)
	if b.Config.Storage.DatabaseURL == "" {
		return
	}
	announcer := session.NewAnnouncer(sessions.Announce, b.health.outage, b.metrics.Unannounced)
	b.OnClose(announcer.Stop)
	lanes.Share(announcer, sessions.Ends)
}

// planAhead lets the module plan epochs before they are needed, if it supports that.
func planAhead(b base, of stored, writer *prompt.Writer, built []pipeline.Module) {
	for _, module := range built {
		planner, is := module.(*ipc.Module)
		if !is {
			continue
		}
		worker := idle.New(idle.Config{
			Lanes: writer.Resolver, Reader: writer.Reader, Modules: modules.Catalog(), Codecs: formats.ByFormat(), Archive: of.originals, Store: of.sessions,
			Plan: planner.Plan, Log: b.Log, Now: b.Now, Ended: b.metrics.PlanEnded,
		})
		b.work.Handle(sessiondb.JobPlan, jobs.Limits{Timeout: idle.Timeout}, worker.Plan)
		b.work.Handle(sessiondb.JobExpirePlan, jobs.Limits{}, func(ctx context.Context, workspace tenants.WorkspaceID, lane uuid.UUID) error {
			return of.sessions.ExpirePlan(ctx, workspace, lane, b.Now())
		})
		writer.PlanLater = worker.Later
	}
}

// newLimits creates the limiter that enforces quotas: in Redis, for all replicas, if configured. It calls
// catchUp before it adds up spend.
func newLimits(b base, catchUp func(context.Context)) *limits.Limiter {
	spend := func(ctx context.Context, workspace tenants.WorkspaceID, who tenants.Spender, day, month time.Time) (int64, int64, error) {
		catchUp(ctx)
		return b.db.Data.Spend(ctx, workspace, who, day, month)
	}
	config := limits.Config{Spend: spend, Alone: b.metrics.LimitedAlone, Log: b.Log, Now: b.Now}
	if b.redis != nil {
		config.Redis = b.redis
	}
	return limits.New(config)
}

// followCatalog keeps the models' catalog up to date with the configured one.
func followCatalog(b base, models *tokens.Models) {
	of := b.Config.Catalog
	if of.Place == "" {
		return
	}
	b.OnClose(catalog.Source{Place: of.Place, Key: of.Key, Kept: filepath.Join(b.Config.Storage.DataDir, "catalog.json"), Models: models, Log: b.Log}.Start())
}
