package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"
)

const (
	stopped  = 20 * time.Second // how long a part is stopped
	filled   = 10 * time.Second // how long a disk is full
	slowed   = 10 * time.Second // and a network slow
	maxAway  = 5 * time.Second  // until a killed part is started again
	maxPause = 3 * time.Second  // between two faults
	maxDelay = 300              // of data sent on a slow network, in milliseconds
)

// fault is a failure that lasts until do returns.
type fault struct {
	name   string
	isPair bool
	do     func(ctx context.Context, random *rand.Rand) error
}

// faults are all kinds of faults.
func (s *stack) faults(talks *talks) []fault {
	var all []fault
	for name, part := range s.parts {
		all = append(all, fault{name: "kill " + name, do: func(ctx context.Context, random *rand.Rand) error {
			part.signal(syscall.SIGKILL)
			part.wait()
			if err := pause(ctx, random, maxAway); err != nil {
				return err
			}
			return part.start(ctx)
		}}, fault{name: "stop " + name, do: func(ctx context.Context, _ *rand.Rand) error { return stand(ctx, part) }})
	}
	all = append(all, fault{name: "kill replica", do: func(ctx context.Context, random *rand.Rand) error {
		r := s.replicas[random.IntN(len(s.replicas))]
		r.kill()
		if err := pause(ctx, random, maxAway); err != nil {
			return err
		}
		return s.restart(ctx, r, talks)
	}}, fault{name: "stop replica", do: func(ctx context.Context, random *rand.Rand) error {
		return stand(ctx, s.replicas[random.IntN(len(s.replicas))])
	}}, fault{name: "roll", do: func(ctx context.Context, _ *rand.Rand) error { return s.roll(ctx, talks) }})
	for name, disk := range s.disks {
		all = append(all, fault{name: "full disk of " + name, do: func(ctx context.Context, _ *rand.Rand) error {
			if err := disk.fill(); err != nil {
				return err
			}
			err := sleep(ctx, filled)
			if clearErr := disk.clear(); err == nil {
				err = clearErr
			}
			if err == nil && name == "database" {
				return s.revive(ctx)
			}
			return err
		}})
	}
	for name, link := range s.links {
		all = append(all, fault{name: "slow network to " + name, do: func(ctx context.Context, random *rand.Rand) error {
			link.delay.Store(int64(time.Duration(1+random.IntN(maxDelay)) * time.Millisecond))
			defer link.delay.Store(0)
			return sleep(ctx, slowed)
		}})
	}
	return all
}

// reviveTime limits how long PostgreSQL may take to answer again after its disk was full.
const reviveTime = 30 * time.Second

// revive waits until PostgreSQL answers again, and restarts it if it ended because of its full disk.
func (s *stack) revive(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, reviveTime)
	defer cancel()
	for {
		select {
		case <-s.database.cluster.Done():
			if err := s.database.start(ctx); err != nil {
				return err
			}
		default:
		}
		connection, err := pgx.Connect(ctx, s.database.cluster.DSN("chaos"))
		if err == nil {
			return connection.Close(ctx)
		}
		if err := sleep(ctx, healthEvery); err != nil {
			return err
		}
	}
}

// stand stops a part for a while, with its connections open.
func stand(ctx context.Context, part part) error {
	part.signal(syscall.SIGSTOP)
	defer part.signal(syscall.SIGCONT)
	return sleep(ctx, stopped)
}

// restart starts a replica and notes the time until it is ready.
func (s *stack) restart(ctx context.Context, r *replica, talks *talks) error {
	began := time.Now()
	if err := r.start(ctx); err != nil {
		return err
	}
	if err := r.isReady(ctx); err != nil {
		return err
	}
	talks.restarted(time.Since(began))
	if r.older.Load() { // an older version does not read ahead
		return talks.warm(ctx, r)
	}
	return nil
}

// roll replaces all replicas one after the other with the older version, and then with this one again, as a
// deployment does.
func (s *stack) roll(ctx context.Context, talks *talks) error {
	if _, err := os.Stat(filepath.Join(s.wanted.programs, "palimpsest-older")); err != nil {
		fmt.Fprintln(os.Stdout, "  there is no palimpsest-older: the same version is rolled out")
	}
	for _, isOlder := range []bool{true, false} {
		for _, r := range s.replicas {
			r.signal(syscall.SIGTERM)
			r.wait()
			r.isIn.Store(false)
			r.older.Store(isOlder)
			if err := s.restart(ctx, r, talks); err != nil {
				return err
			}
		}
	}
	return nil
}

// fail runs every kind of fault, in an order and at times determined by the seed, and then some of them in
// pairs.
func (s *stack) fail(ctx context.Context, wanted options, talks *talks) error {
	random := rand.New(rand.NewPCG(wanted.seed, 1)) //nolint:gosec // to be repeated, not to be secret
	began := time.Now()
	for range wanted.rounds {
		for _, one := range s.shuffled(wanted, talks, random) {
			if err := s.suffer(ctx, talks, random, began, one); err != nil {
				return err
			}
		}
	}
	for range wanted.pairs {
		all := s.shuffled(wanted, talks, random)
		other := slices.IndexFunc(all, func(one fault) bool { return one.part() != all[0].part() })
		if other < 0 {
			break
		}
		if err := s.suffer(ctx, talks, random, began, all[0].and(all[other])); err != nil {
			return err
		}
	}
	talks.during.Store("the end")
	return sleep(ctx, maxPause)
}

// shuffled returns the selected faults in an order determined by the seed.
func (s *stack) shuffled(wanted options, talks *talks, random *rand.Rand) []fault {
	all := slices.DeleteFunc(s.faults(talks), func(one fault) bool { return !strings.Contains(one.name, wanted.onlyFault) })
	sortByName(all) // maps have no order
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

// part returns the part to fail. All replicas count as one part.
func (f fault) part() string {
	if f.name == "roll" {
		return "replica"
	}
	return f.name[strings.LastIndexByte(f.name, ' ')+1:]
}

// and combines two faults. It ignores when replicas become ready, because that depends on the other fault.
func (f fault) and(other fault) fault {
	return fault{name: f.name + ", " + other.name, isPair: true, do: func(ctx context.Context, random *rand.Rand) error {
		both, ctx := errgroup.WithContext(ctx)
		for _, one := range []fault{f, other} {
			own := rand.New(rand.NewPCG(random.Uint64(), 1)) //nolint:gosec // to be repeated, not to be secret
			both.Go(func() error { return one.do(ctx, own) })
		}
		return both.Wait()
	}}
}

// suffer runs a fault after a while.
func (s *stack) suffer(ctx context.Context, talks *talks, random *rand.Rand, began time.Time, one fault) error {
	if err := pause(ctx, random, maxPause); err != nil {
		return err
	}
	started := len(talks.starts())
	fmt.Fprintf(os.Stdout, "%6.1f s  %s\n", time.Since(began).Seconds(), one.name)
	talks.during.Store(one.name)
	if err := one.do(ctx, random); err != nil {
		return fmt.Errorf("%s: %w", one.name, err)
	}
	if err := s.supervise(ctx); err != nil {
		return err
	}
	if starts := talks.starts()[started:]; len(starts) > 0 {
		fmt.Fprintf(os.Stdout, "          ready after %.1f s\n", slices.Max(starts).Seconds())
		if one.isPair {
			talks.forget(started)
		}
	}
	return nil
}

// supervise restarts parts that have ended unasked, as systemd does: pgbouncer 1.18 ends when requests are
// canceled while the database is stopped.
func (s *stack) supervise(ctx context.Context) error {
	for name, part := range s.parts {
		process, is := part.(*process)
		if !is || !process.hasEnded() {
			continue
		}
		fmt.Fprintf(os.Stdout, "          %s ended by itself and is started again\n", name)
		if err := process.start(ctx); err != nil {
			return err
		}
	}
	return nil
}

// pause waits for a random time.
func pause(ctx context.Context, random *rand.Rand, most time.Duration) error {
	return sleep(ctx, time.Duration(random.Int64N(int64(most))))
}

// sleep lets a fault last. It uses real time because the faults need it.
func sleep(ctx context.Context, long time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(long):
		return nil
	}
}
