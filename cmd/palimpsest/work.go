package main

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"palimpsest/migrations/partitions"
	"palimpsest/pipeline/jobs"
	"palimpsest/pipeline/jobs/jobsdb"
	"palimpsest/pipeline/session/sessiondb"
	"palimpsest/tenants/datakeys"
	"palimpsest/tenants/tenantsdb"
	"palimpsest/tenants/vault"
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
	jobsdb.NewBacklog(b.registry, b.db.WorkPool(), b.Log)
	return jobsdb.New(jobsdb.Config{
		Pool: b.db.WorkPool(), Joined: b.db.Joined, Metrics: jobsdb.NewMetrics(b.registry), Log: b.Log, Now: time.Now, Idle: !b.Config.Serving.Role.Works(),
		ListenURL: b.db.ListenURL(),
	})
}

// openWork starts accepting jobs, after every kind is registered. Running jobs end with the program.
func openWork(b base) error {
	b.OnClose(b.work.Stop)
	return b.work.Open()
}

const (
	// upkeepEvery is the pause between two rounds of upkeep, so that expired data is gone well within a
	// day.
	upkeepEvery   = time.Hour
	upkeepTimeout = 50 * time.Minute
	// foldEvery limits how many appended rows readers of sums must add up themselves.
	foldEvery   = time.Minute
	foldTimeout = 10 * time.Minute
	// sweepLimit is the maximum number of sessions that one call of Sweep deletes.
	sweepLimit = 1000
)

// upkeep maintains stored data: it seals provider keys and data keys with the newest master key, and
// deletes sessions after the retention of their workspace.
type upkeep struct {
	db       *tenantsdb.DB
	keys     *datakeys.Manager
	vault    *vault.Vault
	rotation *masterRotation
	sessions *sessiondb.Store
	log      *slog.Logger
	now      func() time.Time
}

// run does one round.
func (u upkeep) run(ctx context.Context) error {
	rewrapErr := u.rotation.run(ctx, u.db, u.keys, u.vault, u.log)
	deleted, sweepErr := u.sweep(ctx)
	if deleted > 0 {
		u.log.InfoContext(ctx, "upkeep of what is stored", "deleted_sessions", deleted)
	}
	return errors.Join(rewrapErr, sweepErr)
}

// sweep deletes all expired data, however much it is. The next round continues a round that was cut off.
func (u upkeep) sweep(ctx context.Context) (deleted int, err error) {
	for {
		some, err := u.sessions.Cleaner().Sweep(ctx, u.now(), sweepLimit)
		deleted += some
		if some < sweepLimit { // also if some workspaces fail, because the others continue
			return deleted, err
		}
	}
}

// partitionsTimeout suffices for scanning all ids of a large partition.
const partitionsTimeout = 50 * time.Minute

// newPartitions returns a function that maintains the partitions of exchanges. Their ids use this machine's
// clock.
func newPartitions(b base) func(ctx context.Context) error {
	keeper := partitions.Manager{OwnerURL: b.opening.Owner, Days: b.Config.Storage.KeepRequestsDays, Now: time.Now, After: time.After}
	return func(ctx context.Context) error {
		done, err := keeper.Keep(ctx)
		if len(done.Made)+len(done.Dropped)+len(done.Built) > 0 {
			b.Log.InfoContext(ctx, "partitions of requests", "made", done.Made, "dropped", done.Dropped, "indexes", done.Built)
		}
		if done.Waits != "" {
			b.Log.WarnContext(ctx, "old requests are not dropped: too many belong to sessions that are kept", "partition", done.Waits)
		}
		return err
	}
}
