// Command chaos runs three replicas of the real program on a real PostgreSQL, pgbouncer, Redis and S3
// server, sends them recorded sessions through a balancer without stickiness, and kills, stops, fills and
// delays its parts at random. It ends with 1 if a request failed because of the program, an answer or a
// byte was lost, or more caches broke than with a single replica. It needs root to create small disks that
// it can fill.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

// options are the command's flags.
type options struct {
	seed      uint64
	programs  string // folder
	data      string
	sessions  int
	steps     int
	window    int
	rounds    int
	ready     time.Duration
	keep      bool
	onlyFault string
	pairs     int
}

func main() {
	var wanted options
	flag.Uint64Var(&wanted.seed, "seed", rand.Uint64(), "what happens follows from it, but for the time that everything takes") //nolint:gosec // to be repeated, not to be secret
	flag.StringVar(&wanted.programs, "programs", "bin/chaos", "folder with palimpsest, palimpsest-skewed, palimpsest-older and versitygw; a variant that is missing is left out")
	flag.StringVar(&wanted.data, "data", "../shared/data", "directory with transcripts/*.anthropic.json; without it, sessions are made up")
	flag.IntVar(&wanted.sessions, "sessions", 6, "sessions at once")
	flag.IntVar(&wanted.steps, "steps", 80, "requests of each session at most")
	flag.IntVar(&wanted.window, "window", 40_000, "context window in tokens, which the sessions outgrow")
	flag.IntVar(&wanted.rounds, "rounds", 1, "how often every kind of fault happens")
	flag.DurationVar(&wanted.ready, "ready", 3*time.Second, "a replica that is started again must be ready within this")
	flag.BoolVar(&wanted.keep, "keep", false, "leave the folder with logs and data")
	flag.StringVar(&wanted.onlyFault, "only", "", "only faults whose names hold this")
	flag.IntVar(&wanted.pairs, "pairs", 6, "how often two parts fail at once, after that")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, wanted)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, wanted options) (err error) {
	if os.Geteuid() != 0 {
		return errors.New("needs root, for small disks that can be full")
	}
	dir, err := os.MkdirTemp("", "palimpsest-chaos-")
	if err != nil {
		return err
	}
	if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // PostgreSQL's user passes through
		return err
	}
	defer func() {
		if !wanted.keep {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}()
	fmt.Fprintf(os.Stdout, "seed %d, folder %s\n", wanted.seed, dir)
	sessions, err := readSessions(wanted)
	if err != nil {
		return err
	}
	alone, err := once(ctx, wanted, filepath.Join(dir, "alone"), sessions, 1)
	if err != nil {
		return fmt.Errorf("one replica: %w", err)
	}
	fmt.Fprintln(os.Stdout, "one replica:   ", alone)
	three, err := once(ctx, wanted, filepath.Join(dir, "three"), sessions, 3)
	if err != nil {
		return fmt.Errorf("three replicas: %w", err)
	}
	fmt.Fprintln(os.Stdout, "three replicas:", three)
	for _, line := range three.besides(alone) {
		fmt.Fprintln(os.Stdout, "  bust of three replicas only:", line)
	}
	for _, line := range alone.besides(three) {
		fmt.Fprintln(os.Stdout, "  bust of one replica only:", line)
	}
	return three.judge(alone, wanted.ready)
}

// once runs all sessions with a number of replicas. With several, it also runs the faults.
func once(ctx context.Context, wanted options, dir string, sessions []session, replicas int) (outcome, error) {
	stack, err := newStack(ctx, wanted, dir, replicas)
	defer stack.close()
	if err != nil {
		return outcome{}, err
	}
	for _, one := range sessions {
		stack.double.Trust(one.body)
	}
	talks := newTalks(stack, sessions, wanted.seed)
	for _, r := range stack.replicas {
		if err := talks.warm(ctx, r); err != nil {
			return outcome{}, err
		}
	}
	over := make(chan struct{})
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		defer close(over)
		if replicas > 1 {
			if err := stack.fail(ctx, wanted, talks); err != nil {
				cancel(err)
			}
		}
		close(talks.hurry)
	}()
	talks.run(ctx)
	<-over
	if err := context.Cause(ctx); err != nil {
		return outcome{}, err
	}
	return stack.look(ctx, talks)
}
