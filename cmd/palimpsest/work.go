package main

import (
	"fmt"
	"time"

	"palimpsest/pipeline/jobs"
	"palimpsest/pipeline/jobs/jobsdb"
)

const (
	moveTimeout = 10 * time.Minute // the next run moves the rest

	indexLanes   = 256 // lanes that a process claims at a time
	indexTimeout = 10 * time.Minute

	embedEvery   = time.Minute
	embedTimeout = 10 * time.Minute
)

// movePace returns how often originals are moved to the bucket.
func movePace() jobs.Interval { return jobs.Interval{Least: 10 * time.Second, Most: time.Minute} }

// indexPace returns how often lanes are indexed.
func indexPace() jobs.Interval { return jobs.Interval{Least: 2 * time.Second, Most: 30 * time.Second} }

// newWork creates the runner of background jobs. Parts register their jobs before openWork: work.Handle for
// jobs of lanes, work.Every for periodic jobs, work.Share for jobs that all processes do.
func newWork(b base) *jobsdb.Runner {
	jobsdb.NewBacklog(b.registry, b.db.WorkPool(), b.log)
	return jobsdb.New(jobsdb.Config{
		Pool: b.db.WorkPool(), Joined: b.db.Joined, Metrics: jobsdb.NewMetrics(b.registry), Log: b.log, Now: time.Now, Idle: !b.config.Role.works(),
		ListenURL: b.db.ListenURL(),
	})
}

// openWork starts accepting jobs, after every kind is registered. Running jobs end with the program.
func openWork(b base) error {
	b.onClose(b.work.Stop)
	return b.work.Open()
}

// Role is the part of the product that a process runs.
type Role string

// The roles. Every process answers on its address; it does not serve the paths of another role.
const (
	RoleAll    Role = "all"
	RoleWeb    Role = "web"    // dashboard and JSON API
	RoleAPI    Role = "api"    // the proxy and the JSON API
	RoleWorker Role = "worker" // only work off the request path
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
