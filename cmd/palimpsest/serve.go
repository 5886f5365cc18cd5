package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"palimpsest/api/connections"
	"palimpsest/pipeline/session/journal"
	"palimpsest/pipeline/spans"
	"palimpsest/web/live"
)

const (
	headerTimeout = 10 * time.Second // to send a request's headers
	idleTimeout   = 2 * time.Minute  // between requests of a connection
	maxHeader     = 64 << 10         // bytes of a request's headers
)

func serveCommand(load func() (Config, error)) *cobra.Command {
	var role string
	serve := &cobra.Command{
		Use:   "serve",
		Short: "Run the product: proxy, dashboard and API",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			config, err := load()
			if err != nil {
				return err
			}
			if config.Role, err = roleOf(role); err != nil {
				return err
			}
			return runProgram(command.Context(), config, func(p *program) { p.welcome(command.OutOrStdout()) })
		},
	}
	serve.Flags().StringVar(&role, "role", string(RoleAll), "part of the product that this process is: all, web, api or worker")
	return serve
}

// runProgram runs the product until the context ends or it fails by itself. greet is
// called once it is up.
func runProgram(ctx context.Context, config Config, greet func(*program)) error {
	log := newLog(os.Stderr, config.LogFormat)
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
		log.Info("draining", "timeout", config.DrainTimeout)
	case err = <-program.failed:
	}
	program.stop(context.WithoutCancel(ctx))
	return err
}

// program is the running product.
type program struct {
	config    Config
	log       *slog.Logger
	health    *health
	listening string // address of proxy, dashboard and API
	server    *http.Server
	admin     *http.Server
	failed    chan error    // a server that ended by itself
	tracer    *spans.Tracer // nil: traces are off
	redis     *redis.Client // what replicas count in together; nil: each counts by itself
	pages     *live.Hub     // tells open pages what happens
	now       func() time.Time
	after     func(time.Duration) <-chan time.Time
	seams     seams
	owner     string           // URL of the database with its owner's login
	mailToken string           // ends the address at which mails are shown; empty: mails are not shown
	journal   *journal.Journal // compactions that wait for the database
	isCommand bool             // does one thing and ends, also beside the running product

	closers []func() // run last to first
	once    sync.Once
}

// newProgram starts the product: database, schema, background work, servers. It
// wires everything, top to bottom. On error nothing is left running.
func newProgram(ctx context.Context, config Config, log *slog.Logger) (*program, error) {
	return newProgramAt(ctx, config, log, time.Now)
}

// newProgramAt is newProgram with a clock: jobs and connections alone keep to the
// machine's.
func newProgramAt(ctx context.Context, config Config, log *slog.Logger, now func() time.Time) (_ *program, err error) {
	p := &program{config: config, log: log, failed: make(chan error, 2), pages: live.NewHub(), now: now, after: time.After}
	defer func() {
		if err != nil {
			p.close()
		}
	}()
	if config.SMTPURL == "" && (config.DatabaseURL == "" || config.Demo != "") {
		p.mailToken = rand.Text()
	}
	product, err := p.listen(ctx, config.Addr)
	if err != nil {
		return nil, fmt.Errorf("PALIMPSEST_ADDR: %w", err)
	}
	p.listening = product.Addr().String()
	registry := prometheus.NewRegistry()
	if err := p.startTraces(ctx, registry); err != nil {
		return nil, err
	}
	handler, err := p.wire(ctx, registry)
	if err != nil {
		return nil, err
	}
	if config.AdminAddr != "" {
		admin, err := p.listen(ctx, config.AdminAddr)
		if err != nil {
			return nil, fmt.Errorf("PALIMPSEST_ADMIN_ADDR: %w", err)
		}
		p.admin = p.serve(admin, adminHandler(p.health, registry, config.Profiles))
		log.Info("admin listening", "addr", admin.Addr().String())
	}
	trusted, err := readNetworks(config.TrustedProxies)
	if err != nil {
		return nil, fmt.Errorf("PALIMPSEST_TRUSTED_PROXIES: %w", err)
	}
	places := connections.NewPlaces(config.Bounds.PlaceConnections, trusted, p.clientAddress())
	p.server = p.serve(places.Listen(product), places.BoundRequests(handler))
	p.server.RegisterOnShutdown(p.pages.Close) // pages' streams have no end of their own
	if address := p.mailsAt(); address != "" {
		log.Info("mails are kept, as SMTP_URL is not set; read them on this machine", "url", address)
	}
	log.Info("listening", "addr", p.listening)
	return p, nil
}

// listen takes an address.
func (p *program) listen(ctx context.Context, address string) (net.Listener, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	p.onClose(func() { _ = listener.Close() }) // once more where a server has done so
	return listener, nil
}

// serve answers the requests that come in on a listener.
func (p *program) serve(listener net.Listener, handler http.Handler) *http.Server {
	server := &http.Server{
		Handler: connections.PaceBodies(handler), ConnContext: connections.Context, ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
		ErrorLog: slog.NewLogLogger(p.log.Handler(), slog.LevelWarn),
	}
	go func() { // ends with the server, which stop and close end
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			p.failed <- fmt.Errorf("serve %s: %w", listener.Addr(), err)
		}
	}()
	return server
}

// stop drains the product: it is no longer ready, takes no new connections after the drain
// delay, lets open streams finish within the drain timeout, writes what waits to be
// recorded, and closes everything. It may be called twice.
func (p *program) stop(ctx context.Context) {
	p.once.Do(func() {
		p.health.draining.Store(true)
		if p.admin != nil && p.config.DrainDelay > 0 { // else nobody can ask whether it is ready
			p.log.Info("not ready", "delay", p.config.DrainDelay)
			<-p.after(p.config.DrainDelay)
		}
		ctx, cancel := context.WithTimeout(ctx, p.config.DrainTimeout)
		defer cancel()
		if err := p.server.Shutdown(ctx); err != nil {
			p.log.Warn("streams were cut at the end of the drain timeout", "error", err)
		}
		p.close()
		p.log.Info("stopped")
	})
}

// close ends what is left, last to first.
func (p *program) close() {
	for _, server := range []*http.Server{p.server, p.admin} {
		if server != nil {
			_ = server.Close()
		}
	}
	for _, v := range slices.Backward(p.closers) {
		v()
	}
}

// onClose adds what close runs.
func (p *program) onClose(end func()) { p.closers = append(p.closers, end) }
