package inspection

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"palimpsest/api/redistest"
	"palimpsest/cmd/palimpsest/settings"
	"palimpsest/cmd/palimpsest/setup"
	"palimpsest/migrations/dbtest"
	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/archive/blob"
	"palimpsest/pipeline/jobs"
	"palimpsest/pipeline/jobs/jobsdb"
	"palimpsest/tenants"
)

// watched are the parts of an installation that has a database and perhaps Redis.
func watched(database *dbtest.Database, client *redis.Client) *Installation {
	i := New(time.Now, "test")
	i.WatchDatabase(database.DB)
	i.WatchPartitions(database.DB.WorkPool().Query)
	i.WatchRedis(client)
	return i
}

// found returns what a new look at a part finds. No part shows an address or a password.
func (i *Installation) found(t *testing.T) map[string]tenants.Check {
	t.Helper()
	found := map[string]tenants.Check{}
	for _, check := range i.NewChecks(t.Context()) {
		found[check.Name] = check
		if said := check.Text + check.Means; strings.Contains(said, "hunter2") || strings.Contains(said, "127.0.0.1") {
			t.Errorf("%s shows too much: %s", check.Name, said)
		}
		if check.OK == (check.Means != "") {
			t.Errorf("%s: what it means is for what fails: %+v", check.Name, check)
		}
	}
	return found
}

// The health that operators see looks at each part, and says of one that is down that it
// does not answer, without its address or password.
func TestHealthLooksAtEachPart(t *testing.T) {
	t.Parallel()
	database := dbtest.New(t)
	address, stop := redistest.Start(t)
	inputs := setup.New(settings.Config{Storage: settings.Storage{RedisURL: "redis://" + address}}, slog.New(slog.DiscardHandler), time.Now)
	defer inputs.Close()
	client, err := setup.OpenRedis(inputs)
	if err != nil {
		t.Fatal(err)
	}
	p := watched(database, client)
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var bucket archive.Bucket
	if bucket, err = blob.Open("file://" + t.TempDir()); err != nil {
		t.Fatal(err)
	}
	var waits time.Time
	p.WatchArchive(&swapped{&bucket}, func(context.Context) (time.Time, error) { return waits, nil })
	found := p.found(t)
	for _, name := range []string{"Database", "Partitions", "Jobs", "Replication", "Blob store", "Archive mover", "Redis", "Version"} {
		if check, is := found[name]; !is || !check.OK || check.Text == "" {
			t.Errorf("%s: %+v", name, check)
		}
	}

	work := jobsdb.New(jobsdb.Config{
		Pool: database.DB.WorkPool(), Joined: database.DB.Joined, Metrics: jobsdb.NewMetrics(prometheus.NewRegistry()), Log: slog.New(slog.DiscardHandler),
		Now: time.Now, Idle: true, ListenURL: database.DB.ListenURL(),
	})
	work.Handle("later", jobs.Limits{}, func(context.Context, tenants.WorkspaceID, uuid.UUID) error { return nil })
	if err := work.Open(); err != nil {
		t.Fatal(err)
	}
	workspace := tenants.NewWorkspaceID()
	if err := work.Enqueue(t.Context(), workspace, jobs.Job{Kind: "later", Workspace: workspace}); err != nil {
		t.Fatal(err)
	}
	if jobs := p.found(t)["Jobs"]; !jobs.OK || !strings.Contains(jobs.Text, "1 waiting") {
		t.Errorf("with a job: %+v", jobs)
	}

	waits = p.now().Add(-2 * lateWork)
	if check := p.found(t)["Archive mover"]; check.OK || !check.Late || check.Text != "10 min behind" {
		t.Errorf("late: %+v", check)
	}
	stop()
	if bucket, err = blob.Open("s3://key:hunter2@bucket?region=r&endpoint=http://" + listener.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	database.DB.Close()
	found = p.found(t)
	for _, name := range []string{"Database", "Jobs", "Blob store", "Redis"} {
		if check := found[name]; check.OK || check.Text != "does not answer" {
			t.Errorf("%s is down: %+v", name, check)
		}
	}

	p = watched(database, nil)
	p.WatchArchive(nil, nil)
	found = p.found(t)
	for _, name := range []string{"Blob store", "Redis"} {
		if check := found[name]; !check.OK {
			t.Errorf("%s, which is not configured: %+v", name, check)
		}
	}
}

// swapped is a bucket that the test exchanges.
type swapped struct{ bucket *archive.Bucket }

func (s *swapped) Put(ctx context.Context, name string, content []byte) error {
	return (*s.bucket).Put(ctx, name, content)
}

func (s *swapped) Get(ctx context.Context, name string) ([]byte, error) {
	return (*s.bucket).Get(ctx, name)
}

func (s *swapped) Range(ctx context.Context, name string, offset, length int) ([]byte, error) {
	return (*s.bucket).Range(ctx, name, offset, length)
}

func (s *swapped) Delete(ctx context.Context, name string) error {
	return (*s.bucket).Delete(ctx, name)
}

func (s *swapped) Names(ctx context.Context, each func(name string) error) error {
	return (*s.bucket).Names(ctx, each)
}

func TestSlowDatabaseNeedsAttention(t *testing.T) {
	t.Parallel()
	for took, want := range map[time.Duration]tenants.Check{
		slowDatabase:                    {Name: "Database", OK: true, Text: "answers"},
		slowDatabase + time.Millisecond: {Name: "Database", Late: true, Text: "answers after 501 ms"},
	} {
		got := databaseAnswered(took)
		if got.Means = ""; got != want {
			t.Errorf("after %s: %+v, want %+v", took, got, want)
		}
	}
}

// A standby that replays nothing is behind by what it lacks, and one that is gone is named:
// the database keeps its log for it.
func TestStandbyThatIsBehindNeedsAttention(t *testing.T) {
	t.Parallel()
	seconds := func(value float64) *float64 { return &value }
	for name, test := range map[string]struct {
		lags []tenants.ReplicationLag
		want tenants.Check
	}{
		"none":                {nil, tenants.Check{OK: true, Text: "no standby"}},
		"close":               {[]tenants.ReplicationLag{{Standby: "a", Seconds: seconds(0)}, {Standby: "b", Seconds: seconds(2)}}, tenants.Check{OK: true, Text: "2 s behind"}},
		"late":                {[]tenants.ReplicationLag{{Standby: "a", Seconds: seconds(600)}, {Standby: "b", Seconds: seconds(2)}}, tenants.Check{Late: true, Text: "10 min behind"}},
		"one of them is gone": {[]tenants.ReplicationLag{{Standby: "a", Bytes: 9}, {Standby: "b", Seconds: seconds(600)}}, tenants.Check{Text: "a is not connected"}},
		"gone":                {[]tenants.ReplicationLag{{Standby: "a", Bytes: 9}}, tenants.Check{Text: "a is not connected"}},
	} {
		found := replication(test.lags, nil)
		measured := 0
		for _, value := range found.values {
			if value.Desc() == replicationBytes {
				measured++
			}
		}
		if measured != len(test.lags) {
			t.Errorf("%s: %d standbys are measured", name, measured)
		}
		got := found.check
		if got.Name, got.Means = "", ""; got != test.want {
			t.Errorf("%s: %+v, want %+v", name, got, test.want)
		}
	}
}

func TestLookThatEndsLateDoesNotHideNewerFindings(t *testing.T) {
	t.Parallel()
	var parts Installation
	begun, goOn := make(chan struct{}), make(chan struct{})
	found := make(chan string, 2)
	found <- "older"
	found <- "newer"
	parts.add(func(context.Context) finding {
		name := <-found
		if name == "older" {
			close(begun)
			<-goOn
		}
		return finding{check: tenants.Check{Name: name}}
	})
	var older sync.WaitGroup
	older.Go(func() { parts.Look(t.Context()) })
	<-begun
	parts.Look(t.Context())
	close(goOn)
	older.Wait()
	if checks := parts.checks(); checks[0].Name != "newer" {
		t.Errorf("after both looks: %+v", checks)
	}
}

func TestLengthsOfTimeAreShort(t *testing.T) {
	t.Parallel()
	for length, want := range map[time.Duration]string{
		20 * time.Millisecond: "20 ms", 119 * time.Second: "119 s", 119 * time.Minute: "119 min", 50 * time.Hour: "50 h",
	} {
		if got := lasts(length); got != want {
			t.Errorf("%s: %q, want %q", fmt.Sprint(length), got, want)
		}
	}
}
