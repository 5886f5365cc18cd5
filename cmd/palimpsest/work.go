package main

import (
	"context"
	"fmt"
	"time"

	"palimpsest/tenants"

	"github.com/prometheus/client_golang/prometheus"

	"palimpsest/pipeline"
	"palimpsest/pipeline/archive/archivedb"
	"palimpsest/pipeline/jobs"
	"palimpsest/pipeline/jobs/jobsdb"
	"palimpsest/pipeline/modules"
	"palimpsest/pipeline/modules/patterns"
	"palimpsest/pipeline/modules/patterns/miner"
	"palimpsest/pipeline/modules/patterns/patternsdb"
	"palimpsest/pipeline/preview"
	"palimpsest/pipeline/preview/previewdb"
	"palimpsest/pipeline/session/sessiondb"
	"palimpsest/pipeline/tokens"
	"palimpsest/pipeline/wire/formats"
	"palimpsest/tenants/tenantsdb"
)

const (
	moveTimeout = 10 * time.Minute // what is not moved by then is moved the next time

	indexLanes   = 256 // lanes that a process claims at a time
	indexTimeout = 10 * time.Minute

	embedEvery   = time.Minute
	embedTimeout = 10 * time.Minute
)

// movePace returns how often originals are moved: soon after exchanges were
// recorded, and seldom where none are.
func movePace(toBucket bool) jobs.Pace {
	if !toBucket {
		return jobs.Pace{Least: 10 * time.Minute, Most: 10 * time.Minute}
	}
	return jobs.Pace{Least: 10 * time.Second, Most: time.Minute}
}

// indexPace returns how often lanes are indexed.
func indexPace() jobs.Pace { return jobs.Pace{Least: 2 * time.Second, Most: 30 * time.Second} }

// newWork makes what does the work off the request path. What there is to do is
// registered with it where the parts are made, before startWork: work.Handle for jobs
// of lanes, work.Every for what comes again and again, work.Share where all processes do it.
func (p *program) newWork(db *tenantsdb.DB, registry *prometheus.Registry) *jobsdb.Runner {
	jobsdb.NewBacklog(registry, db.WorkPool(), p.log)
	return jobsdb.New(jobsdb.Config{
		Pool: db.WorkPool(), Door: db, Metrics: jobsdb.NewMetrics(registry), Log: p.log, Now: time.Now, Idle: !p.config.Role.works(),
		ListenURL: db.ListenURL(),
	})
}

// patterns makes what keeps patterns and what serves them from memory, and has quiet
// sessions read for more of them again and again.
func (p *program) patterns(work *jobsdb.Runner, db *tenantsdb.DB, originals *archivedb.DB, sessions *sessiondb.Store) (*patternsdb.Store, *patterns.Shelf) {
	store := patternsdb.New(db)
	reader := miner.New(miner.Config{
		Store: store, Archive: originals, Inserts: sessions.Browser(), Codecs: formats.ByFormat(), Log: p.log, Now: p.now,
		Settings: p.settingsIn(db),
	})
	work.Every("patterns", miner.Every, miner.Timeout, reader.Pass)
	return store, patterns.NewShelf(store, p.now)
}

// settingsIn returns what reads a workspace's pipeline from a database.
func (p *program) settingsIn(db *tenantsdb.DB) func(ctx context.Context, workspace tenants.WorkspaceID) (pipeline.Config, error) {
	return func(ctx context.Context, workspace tenants.WorkspaceID) (pipeline.Config, error) {
		saved, err := db.Pipelines.Pipeline(ctx, workspace)
		if err != nil {
			return pipeline.Config{}, err
		}
		config, _, err := modules.Catalog().Resolve(p.defaults(), pipeline.WorkspaceLayer(saved.Modules, saved.YAML))
		return config, err
	}
}

// advise has recent sessions replayed with the other trigger again and again, and returns
// what compares settings and keeps what came of it.
func (p *program) advise(work *jobsdb.Runner, db *tenantsdb.DB, sessions *sessiondb.Store, models *tokens.Models) (*preview.Preview, *previewdb.Store) {
	compares, store := preview.New(sessions.Browser(), models), previewdb.New(db)
	advisor := preview.Advisor{Preview: compares, Store: store, Workspaces: db.Workspaces.AllWorkspaces, Settings: p.settingsIn(db), Now: p.now}
	work.Every("trigger_advice", preview.AdviceEvery, preview.AdviceTimeout, advisor.Pass)
	return compares, store
}

// startWork lets jobs come, every kind being registered, and begins to do them until
// the program closes.
func (p *program) startWork(ctx context.Context, work *jobsdb.Runner) error {
	if err := work.Open(); err != nil {
		return err
	}
	if err := work.Start(ctx); err != nil {
		return err
	}
	p.onClose(work.Stop)
	return nil
}

// Role says which part of the product a process is.
type Role string

// The roles. Every process answers on its address; what is another role's is not
// found there.
const (
	RoleAll    Role = "all"
	RoleWeb    Role = "web"    // dashboard and JSON API
	RoleAPI    Role = "api"    // the proxy and the JSON API
	RoleWorker Role = "worker" // work off the request path alone
)

// roleOf returns the role with a name.
func roleOf(name string) (Role, error) {
	switch role := Role(name); role {
	case RoleAll, RoleWeb, RoleAPI, RoleWorker:
		return role, nil
	}
	return "", fmt.Errorf("--role: %q must be all, web, api or worker", name)
}

// works reports whether the process runs jobs.
func (r Role) works() bool { return r == RoleAll || r == RoleWorker }

// proxies reports whether the process serves the proxy.
func (r Role) proxies() bool { return r == RoleAll || r == RoleAPI }

// shows reports whether it serves the dashboard.
func (r Role) shows() bool { return r == RoleAll || r == RoleWeb }
