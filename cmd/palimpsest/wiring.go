package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/redis/go-redis/v9"

	"palimpsest/api"
	"palimpsest/api/alerts"
	"palimpsest/api/credentials"
	"palimpsest/api/limits"
	"palimpsest/api/manage"
	"palimpsest/api/recall"
	"palimpsest/api/upstream"
	"palimpsest/billing"
	"palimpsest/pipeline"
	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/archive/archivedb"
	"palimpsest/pipeline/archive/blob"
	"palimpsest/pipeline/idle"
	"palimpsest/pipeline/jobs"
	"palimpsest/pipeline/jobs/jobsdb"
	"palimpsest/pipeline/modules"
	"palimpsest/pipeline/modules/compactionbridge"
	"palimpsest/pipeline/modules/patterns"
	"palimpsest/pipeline/modules/patterns/patternsdb"
	"palimpsest/pipeline/modules/semanticcache/semanticcachedb"
	"palimpsest/pipeline/preview"
	"palimpsest/pipeline/preview/previewdb"
	"palimpsest/pipeline/prompt"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/session/sessiondb"
	"palimpsest/pipeline/tokens"
	"palimpsest/pipeline/wire/formats"
	"palimpsest/tenants"
	"palimpsest/tenants/datakeys"
	"palimpsest/tenants/deletion"
	"palimpsest/tenants/identity"
	"palimpsest/tenants/tenantsdb"
	"palimpsest/tenants/vault"
	"palimpsest/web"
	"palimpsest/web/devmail"
)

// wire makes every part of the product and connects them, top to bottom.
func (p *program) wire(ctx context.Context, registry *prometheus.Registry) (http.Handler, error) {
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	safe, err := p.openVault()
	if err != nil {
		return nil, err
	}
	db, err := p.awaitDatabase(ctx, safe)
	if err != nil {
		return nil, err
	}
	p.watch(db, registry)
	people, keys, err := p.identities(db, safe)
	if err != nil {
		return nil, err
	}
	work := p.newWork(db, registry)
	dataKeys := datakeys.New(db.DataKeys, safe)
	archiveKeys := archive.NewKeys(dataKeys)
	sessions := sessiondb.New(db).WithKeys(archiveKeys).WithJobs(work)
	p.keepUp(work, upkeep{db: db, keys: dataKeys, vault: safe, rotation: newRotation(registry, safe.Masters()), sessions: sessions, log: p.log, now: p.now})
	originals, mover, err := p.openArchive(ctx, db, archiveKeys, work, registry)
	if err != nil {
		return nil, err
	}
	settings, err := api.NewSettings(db.ProxySettings, safe, p.config.Pipe, p.config.AllowPrivateUpstreams)
	if err != nil {
		return nil, err
	}
	counter, err := tokens.NewCounter()
	if err != nil {
		return nil, fmt.Errorf("token counter: %w", err)
	}
	provider, metrics := p.startProvider(), api.NewMetrics(registry)
	mails, alerting, mailErr := p.outgoing(db, safe, people, work, metrics)
	p.seams.work, p.seams.people, p.seams.db = work, people, db
	recorder, recorderErr := p.startRecorder(db, sessions, archiveKeys, metrics, registry)
	embeddings, index, err := searched(originals, archiveKeys, work, settings, provider, recorder, metrics, p.now)
	if err != nil {
		return nil, err
	}
	learned, shelf := p.patterns(work, db, originals, sessions)
	writer, err := p.newWriter(parts{sessions: sessions, originals: originals, index: index, counter: counter, metrics: metrics, work: work, patterns: shelf, keys: archiveKeys, registry: registry})
	if err != nil {
		return nil, err
	}
	compares, advice := p.advise(work, db, sessions, writer.Models)
	limiter := p.startLimits(db, metrics)
	summaries, err := p.summaries(api.SummaryConfig{
		Settings: settings, Upstream: provider, Recorder: recorder, Limits: limiter, Metrics: metrics, Originals: originals, Store: sessions,
		Lanes: writer.Resolver, Models: writer.Models, Counter: counter, Log: p.log, Now: p.now,
	})
	if err != nil {
		return nil, err
	}
	sold := p.billing(db, work, settings)
	deleting := p.deletion(db, people, mover, work, sold)
	answers, err := p.answers(db, archiveKeys, safe, embeddings)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(mailErr, recorderErr, p.startWork(ctx, work), p.hear(ctx, db, changes{people: people, keys: keys, archive: archiveKeys, settings: settings, lanes: writer.Resolver, patterns: shelf, pages: p.pages, work: work})); err != nil {
		return nil, err
	}

	e := newEcho(p.log, p.clientAddress())
	proxy := p.bounded(&api.Server{
		Keys: admittingKeys{keys}, Settings: settings, Prompts: writer, Upstream: provider,
		Recorder: recorder, Summaries: summaries, Answers: answers, Limits: limiter, Metrics: metrics, Address: e.IPExtractor, Log: p.log, Now: p.now,
	})
	p.serveProxy(e, proxy, recall.Config{
		Lanes: sessions.Browser(), Archive: originals, Searcher: index, Codecs: formats.ByFormat(), PublicURL: p.reachable(), Log: p.log, Now: p.now,
	})
	p.serveProduct(e, product{
		db: db, vault: safe, people: people, keys: keys, provider: provider, learned: learned, sessions: sessions,
		originals: originals, archiveKeys: archiveKeys, index: index, mails: mails, deleting: deleting, sold: sold,
		preview: compares, advice: advice, alerting: alerting,
		again: api.Again{Keys: keys, Proxy: proxy}, models: writer.Models,
	})
	return e, nil
}

// keepUp schedules what the database needs done now and then.
func (p *program) keepUp(work *jobsdb.Runner, due upkeep) {
	work.Every("upkeep", upkeepEvery, upkeepTimeout, due.run)
	work.Every("fold_sums", foldEvery, foldTimeout, due.db.Usage.FoldSums)
}

// product is what the JSON API and the dashboard work on.
type product struct {
	db          *tenantsdb.DB
	vault       *vault.Vault
	people      *identity.Service
	keys        *identity.Keys
	provider    *upstream.Client
	learned     *patternsdb.Store
	sessions    *sessiondb.Store
	originals   *archivedb.DB
	archiveKeys *archive.Keys
	index       *archivedb.Index
	mails       devmail.Outbox // nil where mails are sent
	deleting    *deletion.Service
	sold        *billing.Service
	preview     *preview.Preview
	advice      *previewdb.Store
	alerting    *alerts.Service
	again       api.Again
	models      *tokens.Models
}

// serveProduct makes e serve the JSON API and the dashboard, so far as that is the
// process's role.
func (p *program) serveProduct(e *echo.Echo, of product) {
	if p.config.Role == RoleWorker {
		return
	}
	keeper, invitations := p.keeper(of.db, of.keys, of.vault, of.provider), identity.NewInvitations(of.people, of.db.Invitations, p.reachable())
	signOn := p.signOn(of.db, of.vault, of.people)
	reads := of.db.Reader()
	costs := sessiondb.New(reads).WithKeys(of.archiveKeys).Browser()
	api := manage.Config{
		Defaults: p.defaults(), Codecs: formats.ByFormat(),
		Identity: admittingPeople{of.people}, Cookies: tenants.NewCookies(p.reachable()), Keys: admittingKeys{of.keys}, APIKeys: keeper, ProviderKeys: keeper,
		Pipelines: of.db.Pipelines, ModelWindows: of.db.ModelWindows, Patterns: of.learned, Sessions: of.sessions.Browser(), Costs: costs, Archive: of.originals, ArchiveKeys: of.archiveKeys, Searcher: of.index,
		Exchanges: reads.Exchanges, Usage: reads.Usage, Members: of.people.Workspaces(), Workspaces: of.people.Workspaces(), Invitations: invitations, Data: of.db.Data, Views: of.db.Views, Audit: of.db.Audit, Deletion: of.deleting,
		Billing: of.sold, Operators: of.db.Operators, SignOn: signOn, Alerts: of.alerting, Stars: of.db.Stars, Comments: of.db.Comments, Previews: of.preview, Log: p.log, Now: p.now,
	}
	manage.Register(e.Group("/api/v1"), api)
	p.serveDashboard(e, web.Deps{
		Identity: admittingPeople{of.people}, APIKeys: keeper, ProviderKeys: keeper, Pipelines: of.db.Pipelines, Usage: reads.Usage,
		Sessions: of.sessions.Browser(), Costs: costs, Exchanges: reads.Exchanges, Archive: of.originals, ArchiveKeys: of.archiveKeys, Mails: of.mails, Members: of.people.Workspaces(), Workspaces: of.people.Workspaces(), Invitations: invitations,
		Data: of.db.Data, Audit: of.db.Audit, Views: of.db.Views, Deletion: of.deleting, Config: manage.NewConfigurations(api), Billing: of.sold, Preview: of.preview, TriggerAdvice: of.advice, ModelWindows: of.db.ModelWindows,
		Patterns: of.learned, Searcher: of.index, Live: p.pages,
		Operator: of.db.Operators, Health: p.newChecks(), LatestHealth: p.latestChecks, SignOn: signOn, Passkeys: p.passkeys(of.db, of.vault, of.people),
		Stars: of.db.Stars, Comments: of.db.Comments,
		Alerts: of.alerting, Sender: of.again, Models: of.models,
	})
}

// serveDashboard has e serve the dashboard, if that is the process's role.
func (p *program) serveDashboard(e *echo.Echo, deps web.Deps) {
	if !p.config.Role.shows() {
		return
	}
	web.New(web.Config{
		PublicURL: p.reachable(), Defaults: p.defaults(), Codecs: formats.ByFormat(), Log: p.log, Now: p.now, Contact: p.config.OperatorContact, Demo: p.config.Demo,
		MailToken: p.mailToken, Version: version(),
	}, deps).Register(e)
}

// serveProxy has e serve the proxy and recall, if that is the process's role.
func (p *program) serveProxy(e *echo.Echo, proxy *api.Server, recalling recall.Config) {
	recalling.Observe = proxy.Recalled
	proxy.Recall, proxy.Tracer = recall.New(recalling), p.tracer
	if p.config.Role.proxies() {
		proxy.Register(e)
	}
}

// openVault makes what seals provider keys, and derives keys, with the master key.
func (p *program) openVault() (*vault.Vault, error) {
	secrets, err := p.config.Secrets()
	if err != nil {
		return nil, err
	}
	return vault.New(secrets)
}

// startProvider makes what asks providers.
func (p *program) startProvider() *upstream.Client {
	provider := upstream.New(p.config.AllowPrivateUpstreams)
	p.onClose(provider.Close)
	return provider
}

// startRecorder starts what records exchanges, and what keeps them on the local disk until then.
func (p *program) startRecorder(db *tenantsdb.DB, sessions *sessiondb.Store, keys *archive.Keys, metrics *api.Metrics, registry prometheus.Registerer) (*api.Recorder, error) {
	kept, err := p.openSpool(keys, registry)
	if err != nil {
		return nil, err
	}
	recorder := api.NewRecorder(db, sessions, db.Exchanges, metrics, p.log).WithKeys(keys).WithSpool(kept)
	announcer := db.NewAnnouncer(p.log)
	announcer.Start()
	p.onClose(announcer.Stop)
	recorder.Recorded = p.seams.counting(announcer.Recorded)
	recorder.Start()
	p.probeRecorder(recorder, kept)
	p.onClose(recorder.Stop)
	p.every(spoolReplay, recorder.Replay)
	return recorder, nil
}

// share has lanes found by all processes on the database, where there can be several: the
// private one ends with its process.
func (p *program) share(lanes *session.Resolver, parts parts) {
	lanes.Heed(p.health.absence)
	if p.config.DatabaseURL == "" {
		return
	}
	announcer := session.NewAnnouncer(parts.sessions, p.health.absence, parts.metrics.Unannounced)
	p.onClose(announcer.Stop)
	lanes.Share(announcer, parts.sessions)
}

// summaries starts what has models write summaries in the background.
func (p *program) summaries(config api.SummaryConfig) (*api.Summaries, error) {
	summaries, err := api.NewSummaries(config)
	if err != nil {
		return nil, err
	}
	summaries.Start()
	p.onClose(summaries.Stop)
	return summaries, nil
}

// answers starts what gives answers again to the same question.
func (p *program) answers(db *tenantsdb.DB, keys *archive.Keys, safe *vault.Vault, embeddings *api.Embeddings) (*api.Answers, error) {
	answers, err := api.NewAnswers(api.AnswersConfig{
		Store: semanticcachedb.New(db, keys), Embedder: embeddings, Secret: safe.Derive("questions"), Log: p.log, Now: p.now,
	})
	if err != nil {
		return nil, err
	}
	answers.Start()
	p.onClose(answers.Stop)
	return answers, nil
}

// defaults is the pipeline of a workspace that has set none.
func (p *program) defaults() pipeline.Layer {
	return pipeline.Layer{Source: pipeline.FromDefault, Modules: p.config.Pipe}
}

// keeper makes what creates and tests the keys of workspaces.
func (p *program) keeper(db *tenantsdb.DB, keys *identity.Keys, safe *vault.Vault, provider *upstream.Client) *credentials.Keeper {
	return credentials.New(credentials.Config{
		Store: credentials.Store{APIKeyStore: db.APIKeys, ProviderKeyStore: db.ProviderKeys}, Issuer: keys, Vault: safe, Upstream: provider,
		Defaults: p.defaults(), AllowPrivate: p.config.AllowPrivateUpstreams, Now: p.now,
	})
}

// openArchive opens the archive: in the database, or with its bytes moved to a
// bucket once they are durable.
func (p *program) openArchive(ctx context.Context, db *tenantsdb.DB, keys *archive.Keys, work *jobsdb.Runner, registry *prometheus.Registry) (*archivedb.DB, *archivedb.Mover, error) {
	originals := archivedb.New(db).WithKeys(keys)
	var bucket archive.Bucket
	if p.config.BlobURL != "" {
		var err error
		if bucket, err = blob.Open(ctx, p.config.BlobURL); err != nil {
			return nil, nil, fmt.Errorf("PALIMPSEST_BLOB_URL: %w", err)
		}
		originals = originals.WithBucket(bucket)
	}
	mover := archivedb.NewMover(db, bucket)
	mover.Keys, p.seams.mover = keys, mover
	p.probeArchive(bucket, mover.WaitsSince)
	volume := newVolume(registry)
	work.Share("archive", movePace(bucket != nil), moveTimeout, func(ctx context.Context) error {
		_, err := mover.Pass(ctx)
		if bucket == nil {
			return err
		}
		now, countErr := mover.Volume(ctx)
		if countErr == nil {
			volume.set(now)
		}
		return errors.Join(err, countErr)
	})
	return originals, mover, nil
}

// searched makes what embeds, and with it what searches the archive.
func searched(originals *archivedb.DB, keys *archive.Keys, work *jobsdb.Runner, settings *api.Settings, provider *upstream.Client, recorder *api.Recorder, metrics *api.Metrics, now func() time.Time) (*api.Embeddings, *archivedb.Index, error) {
	embeddings, err := api.NewEmbeddings(settings, provider, recorder, metrics, now)
	if err != nil {
		return nil, nil, err
	}
	index, err := indexOf(originals, keys, embeddings, work)
	return embeddings, index, err
}

// indexOf makes what searches and indexes the archive, and embeds it where a
// workspace wants that, in the background.
func indexOf(originals *archivedb.DB, keys *archive.Keys, embedder archive.Embedder, work *jobsdb.Runner) (*archivedb.Index, error) {
	index, err := archivedb.NewIndex(originals, keys, formats.Parse).WithEmbeddings(embedder)
	if err != nil {
		return nil, err
	}
	work.Share("index", indexPace(), indexTimeout, func(ctx context.Context) error {
		for {
			if done, err := index.IndexPending(ctx, indexLanes); done == 0 || err != nil {
				return err
			}
		}
	})
	work.Every("embeddings", embedEvery, embedTimeout, func(ctx context.Context) error {
		_, err := index.EmbedPending(ctx)
		return err
	})
	return index, nil
}

// identities makes what knows people and API keys.
func (p *program) identities(db *tenantsdb.DB, safe *vault.Vault) (*identity.Service, *identity.Keys, error) {
	keys, err := identity.NewKeys(db.APIKeys, safe.DeriveAll("api keys"), p.now)
	if err != nil {
		return nil, nil, err
	}
	p.every(keyFlush, func(ctx context.Context) {
		if err := keys.Flush(ctx); err != nil {
			p.log.Warn("note the use of API keys", "error", err)
		}
	})
	throttle, err := p.throttle()
	if err != nil {
		return nil, nil, err
	}
	people, err := identity.NewService(identity.Store{Accounts: db.Accounts, LoginStore: db.Logins, WorkspaceStore: db.Workspaces, Factors: db.Factors}, throttle, safe.DeriveAll("logins"), p.now)
	if err != nil {
		return nil, nil, err
	}
	p.signUps(people)
	people.SetSealer(safe)
	return people, keys, nil
}

// openRedis opens what replicas count in together, where there is one.
func (p *program) openRedis() error {
	if p.config.RedisURL == "" {
		return nil
	}
	options, err := redis.ParseURL(p.config.RedisURL)
	if err != nil {
		return errors.New("REDIS_URL: is not a URL such as redis://host:6379/0")
	}
	options.ContextTimeoutEnabled = true // who asks says how long it may take
	p.redis = redis.NewClient(options)
	p.onClose(func() { _ = p.redis.Close() })
	return nil
}

// throttle counts failed logins and mails: in Redis, for all replicas, where there is one.
func (p *program) throttle() (identity.Throttle, error) {
	if err := p.openRedis(); err != nil {
		return nil, err
	}
	if p.redis == nil {
		return identity.NewLocalThrottle(p.now)
	}
	throttle := identity.NewRedisThrottle(p.redis)
	throttle.Log = p.log
	return throttle, nil
}

// startLimits starts what holds API keys to their quotas: in Redis, for all replicas,
// where there is one.
func (p *program) startLimits(db *tenantsdb.DB, metrics *api.Metrics) *limits.Limiter {
	config := limits.Config{Ledger: db.APIKeys, Alone: metrics.LimitedAlone, Log: p.log, Now: p.now}
	if p.redis != nil {
		config.Redis = p.redis
	}
	limiter := limits.New(config)
	limiter.Start()
	p.onClose(limiter.Stop)
	return limiter
}

// parts are what newWriter puts together.
type parts struct {
	sessions  *sessiondb.Store
	originals *archivedb.DB
	index     *archivedb.Index
	counter   *tokens.Counter
	metrics   *api.Metrics
	work      *jobsdb.Runner
	patterns  *patterns.Shelf
	keys      *archive.Keys
	registry  *prometheus.Registry
}

// newWriter makes what writes prompts, and what plans epochs before they are needed.
func (p *program) newWriter(parts parts) (*prompt.Writer, error) {
	built := modules.All(parts.counter, modules.Memory{
		Past: compactionbridge.Past{Lanes: parts.sessions, Originals: parts.originals}, Archive: parts.index, Learned: parts.patterns,
	})
	writer, err := prompt.NewWriter(parts.sessions, parts.counter, pipeline.NewChain(built...))
	if err != nil {
		return nil, err
	}
	writer.Now = p.now
	p.probeIndex(parts.index.WaitsSince)
	p.share(writer.Resolver, parts)
	if writer.Store, err = p.openJournal(writer.Resolver, parts); err != nil {
		return nil, err
	}
	for _, module := range built {
		if planner, is := module.(idle.Planner); is {
			worker := idle.New(idle.Config{
				Lanes: writer.Resolver, Reader: writer.Reader, Modules: modules.Catalog(), Codecs: formats.ByFormat(), Archive: parts.originals, Store: parts.sessions,
				Planner: planner, Log: p.log, Now: p.now, Ended: parts.metrics.PlanEnded,
			})
			parts.work.Handle(sessiondb.JobPlan, jobs.Limits{Timeout: idle.Timeout}, worker.Plan)
			parts.work.Handle(sessiondb.JobExpirePlan, jobs.Limits{}, func(ctx context.Context, workspace tenants.WorkspaceID, lane uuid.UUID) error {
				return parts.sessions.ExpirePlan(ctx, workspace, lane, p.now())
			})
			writer.Ahead = worker
		}
	}
	return writer, nil
}

// Interface guards.
var (
	_ identity.KeyStore  = tenantsdb.APIKeys{}
	_ tenants.Exchanges  = tenantsdb.Exchanges{}
	_ api.Workspaces     = tenantsdb.ProxySettings{}
	_ tenants.Transactor = (*tenantsdb.DB)(nil)
	_ datakeys.Store     = tenantsdb.DataKeys{}
	_ vault.Store        = tenantsdb.ProviderKeys{}
	_ vault.ProofStore   = tenantsdb.DataKeys{}
	_ limits.Ledger      = tenantsdb.APIKeys{}
)
