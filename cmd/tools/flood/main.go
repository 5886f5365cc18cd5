// Command flood attacks a running installation as one tenant and strangers could, and measures the effect
// on another tenant: thousands of connections of one API key, large bodies for a provider that does not
// answer, and sign-ups. It ends with 1 if the other tenant's 99th percentile is more than twice its value
// without the flood, one of its requests fails, or /readyz takes more than a second. deploy/attack.sh runs
// it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// options are the command's flags.
type options struct {
	url, admin  string
	quiet       string // API key of the measured tenant
	hostile     string // API key that floods
	connections int
	bodies      int
	signUps     int
	requests    int
	slow        string // base URL of a provider that does not answer; "" for one in this process
	forwarded   bool
}

func main() {
	var o options
	flag.StringVar(&o.url, "url", "http://127.0.0.1:8080", "the installation")
	flag.StringVar(&o.admin, "admin", "", "its admin address, such as http://127.0.0.1:9090, to ask /readyz; empty leaves that out")
	flag.StringVar(&o.quiet, "quiet", "", "API key of the tenant that is measured, in a workspace with a provider key for Anthropic")
	flag.StringVar(&o.hostile, "hostile", "", "API key of another account, which floods; to hold bodies it must be allowed to name base URLs")
	flag.IntVar(&o.connections, "connections", 10_000, "connections that the hostile key keeps open; each that is closed is opened again after 30 s")
	flag.IntVar(&o.bodies, "bodies", 60, "requests of 8 MB at once that the hostile key sends to a provider that does not answer")
	flag.IntVar(&o.signUps, "signups", 8, "clients that sign up again and again")
	flag.IntVar(&o.requests, "requests", 2000, "requests that are measured, each on a connection of its own")
	flag.StringVar(&o.slow, "slow", "", "base URL of a provider that does not answer; empty starts one in this process, which the installation must be allowed to reach")
	flag.BoolVar(&o.forwarded, "forwarded", false, "have each sign-up name another address in X-Forwarded-For, for an installation that trusts this machine as a proxy")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "flood:", err)
		os.Exit(1)
	}
}

// run measures without, with and again without the flood.
func run(ctx context.Context, o options) error {
	before := o.measure(ctx, "before the flood")
	flooding, end := context.WithCancel(ctx)
	defer end()
	var hostile sync.WaitGroup
	counts, err := o.flood(flooding, &hostile)
	if err != nil {
		return err
	}
	select {
	case <-counts.up:
	case <-time.After(time.Minute):
	case <-ctx.Done():
	}
	during := o.measure(ctx, "during the flood")
	counts.print()
	end()
	hostile.Wait()
	after := o.measure(ctx, "after the flood")
	return errors.Join(ctx.Err(), judge(before, during, after))
}

// judge returns the violations as an error.
func judge(before, during, after measured) error {
	var faults []error
	if before.failed+after.failed > 0 || before.p99 == 0 {
		faults = append(faults, errors.New("requests fail without the flood, so nothing was shown"))
	}
	if during.failed > 0 {
		faults = append(faults, fmt.Errorf("%d requests of the other tenant failed", during.failed))
	}
	if most := 2 * max(before.p99, after.p99); during.p99 > most {
		faults = append(faults, fmt.Errorf("the 99th percentile is %s, more than twice that without the flood", during.p99))
	}
	if during.ready > time.Second {
		faults = append(faults, fmt.Errorf("/readyz took %s", during.ready))
	}
	return errors.Join(faults...)
}
