package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/spf13/cobra"

	"palimpsest/api"
	"palimpsest/api/connections"
	"palimpsest/cmd/palimpsest/logs"
	"palimpsest/cmd/palimpsest/settings"
	"palimpsest/cmd/palimpsest/setup"
	"palimpsest/cmd/palimpsest/traces"
	"palimpsest/migrations/localdb"
	"palimpsest/pipeline/spans"
	"palimpsest/web/live"
)

func serveCommand(load func() (settings.Config, error)) *cobra.Command {
	var (
		role    string
		install bool
	)
	serve := &cobra.Command{
		Use:   "serve",
		Short: "Run the product: proxy, dashboard and API",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			config, err := load()
			if err != nil {
				return err
			}
			if config.Serving.Role, err = settings.RoleOf(role); err != nil {
				return err
			}
			if install && config.Storage.DatabaseURL == "" && len(config.Storage.Databases) == 0 {
				if err := localdb.Install(command.Context(), os.Getenv("PATH"), command.ErrOrStderr()); err != nil {
					return err
				}
			}
			return runProgram(command.Context(), config, func(p *program) {
				for _, site := range p.sites {
					site.Welcome(command.OutOrStdout())
				}
			})
		},
	}
	serve.Flags().StringVar(&role, "role", string(settings.RoleAll), "part of the product that this process is: all, web, api or worker")
	serve.Flags().BoolVar(&install, "install", false, "install PostgreSQL with the system's package manager if it is missing")
	return serve
}

// runProgram runs the product until the context ends or the product fails. It calls greet once the product
// is up.
func runProgram(ctx context.Context, config settings.Config, greet func(*program)) error {
	log := logs.New(os.Stderr, config.Serving.LogFormat)
	program, err := newProgram(ctx, config, log)
	if ctx.Err() != nil && err != nil {
		log.Info("stopped before it was up")
		return nil //nolint:nilerr // the caller asked for the end: not an error
	}
	if err != nil {
		return err
	}
	greet(program)
	select {
	case <-ctx.Done():
		log.Info("draining", "timeout", config.Serving.DrainTimeout)
	case err = <-program.servers.failed:
	}
	program.stop(context.WithoutCancel(ctx))
	return err
}

// program is the running product.
type program struct {
	setup.Inputs
	process
	servers  servers
	sites    sites
	draining atomic.Bool
	product  *http.Server
	admin    *http.Server // nil without an address for it
	once     sync.Once
}

// process holds the parts shared by all databases of a process.
type process struct {
	registry *prometheus.Registry
	tracer   *spans.Tracer // nil: traces are off
	pages    *live.Hub     // notifies open pages
	bytes    *api.Bytes    // of request bodies in flight
	after    func(time.Duration) <-chan time.Time
}

// newProcess returns the shared parts, without a tracer.
func newProcess(bounds settings.Bounds) process {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return process{
		registry: registry, pages: live.NewHub(), bytes: api.NewBytes(bounds.WorkspaceMegabytes<<20, bounds.Megabytes<<20), after: time.After,
	}
}

// newProgram starts the product: database, schema, background work, servers. It wires everything, top to
// bottom. On error it stops everything it started.
func newProgram(ctx context.Context, config settings.Config, log *slog.Logger) (*program, error) {
	return newProgramAt(ctx, config, log, time.Now)
}

// newProgramAt is newProgram with a clock. Jobs and connections still use the machine's.
func newProgramAt(ctx context.Context, config settings.Config, log *slog.Logger, now func() time.Time) (_ *program, err error) {
	p := &program{Inputs: setup.New(config, log, now), process: newProcess(config.Bounds)}
	p.servers = newServers(log, p.Ending, p.Guard)
	defer func() {
		if err != nil {
			p.close()
		}
	}()
	if config.Accounts.SMTPURL == "" && (config.Storage.DatabaseURL == "" && len(config.Storage.Databases) == 0 || config.Demos.Demo != "") {
		p.MailToken = rand.Text()
	}
	listener, err := p.servers.listen(ctx, "PALIMPSEST_ADDR", config.Serving.Addr)
	if err != nil {
		return nil, err
	}
	p.Listening = listener.Addr().String()
	tracer, endTraces, err := traces.Start(ctx, config.Traces, version(), traces.Report{Log: log, Now: now, Metrics: p.registry})
	if err != nil {
		return nil, err
	}
	p.tracer = tracer
	p.OnClose(func() { endTraces(p.Longest) })
	if err := p.openSites(ctx); err != nil {
		return nil, err
	}
	if config.Serving.AdminAddr != "" {
		admin, err := p.servers.listen(ctx, "PALIMPSEST_ADMIN_ADDR", config.Serving.AdminAddr)
		if err != nil {
			return nil, err
		}
		p.admin = p.servers.serve(admin, adminHandler(p.ready, p.registry, config.Serving.Profiles))
		log.Info("admin listening", "addr", admin.Addr().String())
	}
	trusted, err := settings.ReadNetworks(config.Serving.TrustedProxies)
	if err != nil {
		return nil, fmt.Errorf("PALIMPSEST_TRUSTED_PROXIES: %w", err)
	}
	limiter := connections.NewLimiter(config.Bounds.Connections(), trusted, clientAddress(config.Serving))
	p.registry.MustRegister(limiter.Metrics())
	p.product = p.servers.serve(limiter.Listen(listener), limiter.Handler(p.sites.handler()))
	p.product.RegisterOnShutdown(p.pages.Close) // pages' streams don't end on their own
	if address := p.MailsAt(); address != "" {
		log.Info("mails are kept, as SMTP_URL is not set; read them on this machine", "url", address)
	}
	log.Info("listening", "addr", p.Listening)
	return p, nil
}

// stop drains the product: it stops being ready, takes no new connections after the drain delay, lets open
// streams finish within the drain timeout, records the waiting exchanges, and closes everything. It may be
// called twice.
func (p *program) stop(ctx context.Context) {
	p.once.Do(func() {
		p.draining.Store(true)
		if p.admin != nil && p.Config.Serving.DrainDelay > 0 { // without an admin server no one can ask whether it is ready
			p.Log.Info("not ready", "delay", p.Config.Serving.DrainDelay)
			<-p.after(p.Config.Serving.DrainDelay)
		}
		ctx, cancel := context.WithTimeout(ctx, p.Longest)
		defer cancel()
		if err := p.product.Shutdown(ctx); err != nil {
			p.Log.Warn("streams were cut at the end of the drain timeout", "error", err)
		}
		p.close()
		p.Log.Info("stopped")
	})
}

// close closes all parts, the servers first.
func (p *program) close() {
	for _, server := range []*http.Server{p.product, p.admin} {
		if server != nil {
			_ = server.Close()
		}
	}
	p.Ending.Close()
}
