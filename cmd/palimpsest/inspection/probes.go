package inspection

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"palimpsest/api/recorder"
	"palimpsest/api/spool"
	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/jobs/jobsdb"
	"palimpsest/tenants"
	"palimpsest/tenants/tenantsdb"
)

// WatchDatabase adds checks of the database, its standbys and its jobs.
func (i *Installation) WatchDatabase(db *tenantsdb.DB) {
	i.add(func(ctx context.Context) finding {
		began := time.Now()
		err := db.Ping(ctx)
		took := time.Since(began)
		if err != nil {
			return finding{check: check("Database", "", "Requests to models pass without it, uncompressed where their session is not in memory. Pages and the API fail until it answers.", err)}
		}
		return finding{check: databaseAnswered(took), values: []prometheus.Metric{valueOf(databaseAnswer, took.Seconds())}}
	})
	i.add(func(ctx context.Context) finding { return finding{check: checkJobs(ctx, db)} })
	i.add(func(ctx context.Context) finding {
		lags, err := db.ReplicationLags(ctx)
		return replication(lags, err)
	})
}

// databaseAnswered reports a database's answer within a time.
func databaseAnswered(took time.Duration) tenants.Check {
	checked := tenants.Check{Name: "Database", OK: true, Text: "answers"}
	if took > slowDatabase {
		return tenants.Check{
			Name: checked.Name, Late: true, Text: "answers after " + lasts(took),
			Means: "Pages and the recorder wait for it. Look at its load and at its connections in use.",
		}
	}
	return checked
}

// replication reports the standbys' lag from the database. The largest lag counts.
func replication(lags []tenants.ReplicationLag, err error) finding {
	const name = "Replication"
	if err != nil {
		return finding{check: tenants.Check{Name: name, Text: "is not known", Means: "The database does not say."}}
	}
	found := finding{check: tenants.Check{Name: name, OK: true, Text: "no standby"}}
	worst, gone := time.Duration(-1), ""
	for _, lag := range lags {
		found.values = append(found.values, valueOf(replicationBytes, lag.Bytes, lag.Standby))
		if lag.Seconds == nil {
			gone = lag.Standby
			continue
		}
		found.values = append(found.values, valueOf(replicationLag, *lag.Seconds, lag.Standby))
		if behindBy := time.Duration(*lag.Seconds * float64(time.Second)); behindBy > worst {
			worst = behindBy
			found.check = behind(name, "If the database fails now, "+lag.Standby+" takes over without what it lacks. Look at the standby and the network.", worst, lateStandby)
		}
	}
	if gone != "" {
		found.check = tenants.Check{
			Name: name, Text: gone + " is not connected",
			Means: "The database keeps its log for it, which fills the disk, and nothing takes over if the database fails. Start the standby, or drop its slot.",
		}
	}
	return found
}

func checkJobs(ctx context.Context, db *tenantsdb.DB) tenants.Check {
	states, err := jobsdb.States(ctx, db.WorkPool())
	if err != nil {
		return check("Jobs", "", "Nothing is moved, indexed or planned until the database answers.", err)
	}
	if len(states) == 0 {
		return tenants.Check{Name: "Jobs", OK: true, Text: "none wait"}
	}
	texts := make([]string, 0, len(states))
	for _, state := range states {
		texts = append(texts, fmt.Sprintf("%d %s", state.Jobs, state.State))
	}
	return tenants.Check{Name: "Jobs", OK: true, Text: strings.Join(texts, ", ")}
}

// WatchArchive adds checks of the bucket and of the data that waits to be moved into it.
func (i *Installation) WatchArchive(bucket archive.Bucket, waitsSince func(context.Context) (time.Time, error)) {
	const name = "Blob store"
	if bucket == nil {
		i.add(func(context.Context) finding {
			return finding{check: tenants.Check{Name: name, OK: true, Text: "the database"}}
		})
		return
	}
	i.add(func(ctx context.Context) finding {
		_, err := bucket.Get(ctx, probeName)
		if errors.Is(err, archive.ErrNotFound) {
			err = nil // it answers
		}
		return answering("bucket", bucketUp, check(name, "answers", "Requests to models pass, and new originals stay in the database. Reading an original from the bucket is refused with 503 until it answers.", err))
	})
	i.add(func(ctx context.Context) finding {
		since, err := waitsSince(ctx)
		return i.lagging("Archive mover", "Originals stay in the database, which grows. Look at the bucket, and whether a process runs jobs.", moverLag, lateWork, since, err)
	})
}

// WatchRedis adds a check of the shared counters; client is nil without Redis.
func (i *Installation) WatchRedis(client *redis.Client) {
	i.add(func(ctx context.Context) finding {
		if client == nil {
			return finding{check: tenants.Check{Name: "Redis", OK: true, Text: "none; each process counts by itself"}}
		}
		return answering("redis", redisUp, check("Redis", "answers", "Each process applies the limits of API keys on its own until it answers.", client.Ping(ctx).Err()))
	})
}

// WatchIndex adds a check of the data that waits for indexing.
func (i *Installation) WatchIndex(waitsSince func(context.Context) (time.Time, error)) {
	i.add(func(ctx context.Context) finding {
		since, err := waitsSince(ctx)
		return i.lagging("Search index", "Search does not find what was said since. Look whether a process runs jobs, and at its log.", indexerLag, lateWork, since, err)
	})
}

// WatchRecorder adds a check of this process's unrecorded exchanges.
func (i *Installation) WatchRecorder(recorder *recorder.Recorder, kept *spool.Spool) {
	i.add(func(context.Context) finding {
		means := fmt.Sprintf("Exchanges on the local disk of this process: %d. They are recorded once the database takes them.", kept.Stats().Records)
		return i.lagging("Recorder", means, recorderLag, lateRecorder, recorder.WaitsSince(), nil)
	})
}
