// Command overhead starts the program, a floor and a provider double on loopback addresses, compares them
// case by case, prints a Markdown table and writes it into the performance page. It ends with an error if
// an answer was wrong or the program dropped records, because figures of incomplete work are worthless.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"palimpsest/api/programtest"
	"palimpsest/cmd/tools/apibench"
	"palimpsest/pipeline/reporttest"
)

// target is the target of the Makefile whose part of a page holds the table.
const target = "bench"

// options are the command's flags.
type options struct {
	binary   string
	report   string
	only     string
	parts    string // file with the output of go test -bench
	rounds   int
	replicas int
	floor    string // if set, this process is a floor with this upstream
}

func main() {
	var wanted options
	flag.StringVar(&wanted.binary, "binary", "bin/palimpsest", "the program to measure")
	flag.StringVar(&wanted.report, "write", "", "page to write the table into")
	flag.StringVar(&wanted.only, "only", "", "measure only cases whose name holds this")
	flag.StringVar(&wanted.parts, "parts", "", "output of go test -bench to write below the table")
	flag.IntVar(&wanted.rounds, "rounds", 3, "rounds of each case")
	flag.IntVar(&wanted.replicas, "replicas", 1, "processes of the program; with more than one, requests go to all of them in turns, too")
	flag.StringVar(&wanted.floor, "floor", "", "be the floor in front of this URL")
	flag.Parse()

	run := measure
	if wanted.floor != "" {
		run = serveFloor
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, wanted)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "overhead:", err)
		os.Exit(1)
	}
}

// unbounded raises the limits on a workspace's open requests and on connections per place and key, because
// all requests come from this machine with one key.
func unbounded() []string {
	return []string{
		"PALIMPSEST_WORKSPACE_CONCURRENCY=2000", "PALIMPSEST_CONNECTIONS_PER_PLACE=0", "PALIMPSEST_CONNECTIONS_PER_KEY=0", "PALIMPSEST_CONNECTIONS_PER_ACCOUNT=0",
	}
}

// measure runs all cases and reports them.
func measure(ctx context.Context, wanted options) (err error) {
	if wanted.report != "" { // report an unwritable file before half an hour of measuring
		if err := reporttest.CanWrite(wanted.report, target); err != nil {
			return err
		}
	}
	provider, stopProvider, err := serve(ctx, apibench.NewProvider())
	if err != nil {
		return err
	}
	defer stopProvider()

	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	floor, err := programtest.Start(ctx, self, []string{"-floor", provider}, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, floor.Stop()) }()

	data, err := os.MkdirTemp("", "palimpsest-bench")
	if err != nil {
		return fmt.Errorf("make a data directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(data)) }()
	environment := append(unbounded(), apibench.Secret())
	program, err := programtest.Start(ctx, wanted.binary, []string{"serve"}, append(programtest.Environment(data), environment...))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, program.Stop()) }()

	routes, err := apibench.Routes(ctx, provider, floor, program, data)
	if err != nil {
		return err
	}

	if wanted.replicas > 1 {
		all, stop, failed := apibench.Replicas(ctx, wanted.binary, data, environment, routes[len(routes)-1], wanted.replicas)
		defer func() { err = errors.Join(err, stop()) }()
		if failed != nil {
			return failed
		}
		routes = append(routes, all...)
	}

	return report(ctx, wanted, routes)
}

func report(ctx context.Context, wanted options, routes []apibench.Route) error {
	var printed []byte
	if wanted.parts != "" {
		var err error
		if printed, err = os.ReadFile(wanted.parts); err != nil {
			return fmt.Errorf("-parts: %w", err)
		}
	}
	var bench apibench.Bench
	var rows []apibench.Row
	var faults []error
	for _, one := range apibench.Cases() {
		if !strings.Contains(one.Name, wanted.only) {
			continue
		}
		fmt.Fprintln(os.Stderr, "measuring:", one.Name)
		measured, err := bench.Compare(ctx, one, routes, wanted.rounds)
		if err != nil {
			return err
		}
		for _, row := range measured {
			if fault := row.Fault(); fault != "" {
				faults = append(faults, fmt.Errorf("%s, %s: %s", one.Name, row.Route, fault))
			}
		}
		rows = append(rows, measured...)
	}

	text := fmt.Sprintf("%s, %s; the client, the provider double and the proxy share the cores. Medians of %d rounds.\n\n%s",
		time.Now().UTC().Format(time.DateOnly), reporttest.Machine(), wanted.rounds, apibench.Table(rows))
	if wanted.parts != "" {
		text += "\n" + apibench.Parts(string(printed))
	}
	fmt.Print(text) //nolint:forbidigo // the command's output
	if wanted.report != "" {
		faults = append(faults, reporttest.Write(wanted.report, target, text))
	}

	return errors.Join(faults...)
}

// serveFloor runs the floor until it is told to stop.
func serveFloor(ctx context.Context, wanted options) error {
	upstream, err := url.Parse(wanted.floor)
	if err != nil {
		return fmt.Errorf("-floor: %w", err)
	}
	address, stop, err := serve(ctx, apibench.NewFloor(upstream))
	if err != nil {
		return err
	}
	defer stop()
	fmt.Println("msg=listening addr=" + strings.TrimPrefix(address, "http://")) //nolint:forbidigo // the parent reads it
	<-ctx.Done()

	return nil
}

// serve listens on a free port of this machine until stop is called.
func serve(ctx context.Context, handler http.Handler) (address string, stop func(), err error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, fmt.Errorf("listen: %w", err)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener) // ends when the server is closed
	}()
	stop = func() {
		_ = server.Close()
		<-done
	}

	return "http://" + listener.Addr().String(), stop, nil
}
