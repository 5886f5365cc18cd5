package main

import (
	"context"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// healthEvery and healthTimeout belong to the balancer's health checks of a replica.
const (
	healthEvery   = 250 * time.Millisecond
	healthTimeout = time.Second
)

// skews are the replicas' clock offsets, in seconds.
func skews() []int { return []int{0, -30, 30} }

// replica is one process of the program. Its addresses stay the same.
type replica struct {
	process

	number  int
	address string
	admin   string
	older   atomic.Bool // runs the older version
	isIn    atomic.Bool // the balancer sends it requests
	broken  atomic.Int64
	watched sync.WaitGroup
}

func (r *replica) url() string { return "http://" + r.address }

// addReplica starts a replica with a small disk and its own clock.
func (s *stack) addReplica(ctx context.Context, number int) error {
	name := "replica-" + strconv.Itoa(number)
	data := filepath.Join(s.dir, name)
	disk, err := newDisk(data, replicaDisk)
	if err != nil {
		return err
	}
	s.disks[name] = disk
	owner, err := s.owner("database")
	if err != nil {
		return err
	}
	r := &replica{number: number}
	if r.address, err = free(); err != nil {
		return err
	}
	if r.admin, err = free(); err != nil {
		return err
	}
	link, err := newLink()
	if err != nil {
		return err
	}
	s.closers = append(s.closers, link.close)
	environment := append(os.Environ(),
		"PALIMPSEST_ADDR="+r.address, "PALIMPSEST_ADMIN_ADDR="+r.admin, "PALIMPSEST_DATA_DIR="+data, "PALIMPSEST_SECRET_KEY="+s.secret,
		"PALIMPSEST_ALLOW_PRIVATE_UPSTREAMS=true", "PALIMPSEST_DRAIN_DELAY=1s", "PALIMPSEST_LOG_FORMAT=json",
		"PALIMPSEST_CONNECTIONS_PER_PLACE=0", "PALIMPSEST_CONNECTIONS_PER_KEY=0", "PALIMPSEST_CONNECTIONS_PER_ACCOUNT=0",
		"DATABASE_URL="+owner, "DATABASE_APP_URL="+s.logins["DATABASE_APP_URL"], "DATABASE_WORKER_URL="+s.logins["DATABASE_WORKER_URL"],
		"REDIS_URL=redis://"+s.links["redis"].address(),
		"PALIMPSEST_BLOB_URL=s3://key:secret@originals?endpoint=http://"+s.links["s3"].address(),
		"PALIMPSEST_TEST_SHIFT="+strconv.Itoa(skews()[number%len(skews())]))
	r.process = process{name: name, log: filepath.Join(s.dir, name+".log"), link: link, command: func() (*exec.Cmd, string, error) {
		command := exec.Command(s.variant(r), "serve") //nolint:gosec,noctx // the caller's own program
		command.Env = environment
		return command, r.address, nil
	}}
	s.replicas = append(s.replicas, r)
	if err := r.start(ctx); err != nil {
		return err
	}
	watching, stop := context.WithCancel(context.Background())
	r.watched.Go(func() { r.watch(watching) })
	s.closers = append(s.closers, func() { stop(); r.watched.Wait() })
	return r.isReady(ctx)
}

// variant returns the replica's program: the older one, or the one with an adjustable clock, if available.
func (s *stack) variant(r *replica) string {
	names := []string{"palimpsest"}
	if len(s.replicas) > 0 && r.number > 0 {
		names = []string{"palimpsest-skewed", "palimpsest"}
	}
	if r.older.Load() {
		names = []string{"palimpsest-older", "palimpsest"}
	}
	for _, name := range names {
		path := filepath.Join(s.wanted.programs, name)
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	return filepath.Join(s.wanted.programs, names[len(names)-1])
}

// watch checks the replica's health as a balancer does.
func (r *replica) watch(ctx context.Context) {
	client := &http.Client{Timeout: healthTimeout, Transport: &http.Transport{DisableKeepAlives: true}}
	tick := time.NewTicker(healthEvery)
	defer tick.Stop()
	for {
		r.isIn.Store(health(ctx, client, r.admin))
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// isReady waits until the balancer uses the replica. It restarts a replica that ends at its start, as a
// process manager does.
func (r *replica) isReady(ctx context.Context) error {
	for !r.isIn.Load() {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-r.ended:
			if err := r.start(ctx); err != nil {
				return err
			}
		case <-time.After(10 * time.Millisecond):
		}
	}
	return nil
}

// kill ends the replica at once. Its clients may retry their requests.
func (r *replica) kill() {
	r.broken.Add(1)
	r.signal(syscall.SIGKILL)
	r.wait()
	r.isIn.Store(false)
}
