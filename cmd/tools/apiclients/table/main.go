// Command table installs the real clients, runs each through the real program against a provider double, in
// a network with only a loopback, and prints a table client × case. It ends with an error if a case failed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"palimpsest/api/npmtest"
	"palimpsest/api/programtest"
	"palimpsest/cmd/tools/apiclients"
)

// options are the command's flags.
type options struct {
	binary  string
	guide   string
	install string
	pinned  bool
	client  string
	cases   string
	habits  string
	learn   bool
	keep    string
	open    bool
	inside  bool
}

func main() {
	var wanted options
	flag.StringVar(&wanted.binary, "binary", "bin/palimpsest", "the program to run the clients through")
	flag.StringVar(&wanted.guide, "guide", "docs", "directory of the pages whose snippets set the clients up")
	flag.StringVar(&wanted.install, "install", "", "directory to keep the installed clients in, which are used as they are the next time; empty installs into a temporary one")
	flag.BoolVar(&wanted.pinned, "pinned", false, "install the versions of the list of clients instead of the newest")
	flag.StringVar(&wanted.client, "client", "", "try only clients with a word that begins with this in their name or npm package")
	flag.StringVar(&wanted.cases, "case", "", "try only cases with a word that begins with this in their name")
	flag.StringVar(&wanted.keep, "keep", "", "directory to write what was seen of each trial into")
	flag.StringVar(&wanted.habits, "habits", "cmd/tools/apiclients/testdata/habits", "directory with the lists of what each client is known to send")
	flag.BoolVar(&wanted.learn, "learn", false, "add what is new to the lists")
	flag.BoolVar(&wanted.open, "open", false, "leave the clients the network, where it cannot be closed")
	flag.BoolVar(&wanted.inside, "inside", false, "be the part that runs in the closed network")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	run := prepare
	if wanted.inside {
		run = try
	}
	err := run(ctx, wanted)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "clients:", err)
		os.Exit(1)
	}
}

// prepare installs the clients and starts this program again in a closed network.
func prepare(ctx context.Context, wanted options) (err error) {
	if _, _, err := wanted.chosen(); err != nil {
		return err
	}
	if wanted.install == "" {
		temporary, err := os.MkdirTemp("", "palimpsest-clients-")
		if err != nil {
			return fmt.Errorf("make a directory: %w", err)
		}
		defer func() { _ = os.RemoveAll(temporary) }()
		wanted.install = temporary
	}
	if wanted.install, err = filepath.Abs(wanted.install); err != nil {
		return fmt.Errorf("-install: %w", err)
	}
	if _, err := os.Stat(filepath.Join(wanted.install, "node_modules")); err != nil {
		fmt.Fprintln(os.Stderr, "installing the clients")
		if err := apiclients.Install(ctx, wanted.install, wanted.pinned); err != nil {
			return err
		}
	}

	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	arguments := slices.Concat(os.Args[1:], []string{"-inside", "-install", wanted.install})
	command := exec.CommandContext(ctx, self, arguments...) //nolint:gosec // this program
	command.Stdout, command.Stderr = os.Stdout, os.Stderr
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	command.WaitDelay = 30 * time.Second
	if !wanted.open {
		apiclients.CloseNetwork(command)
	}
	if err := command.Run(); err != nil {
		if _, ended := errors.AsType[*exec.ExitError](err); ended {
			return errors.New("see above")
		}
		return fmt.Errorf("start in a closed network: %w; with -open the clients keep the network, with dummy keys", err)
	}

	return nil
}

// try runs the clients, one at a time, and prints the table.
func try(ctx context.Context, wanted options) (err error) {
	if !wanted.open {
		if err := apiclients.OpenLoopback(); err != nil {
			return err
		}
	}
	var pages []string
	for _, page := range apiclients.GuidePages() {
		text, err := os.ReadFile(filepath.Join(wanted.guide, page))
		if err != nil {
			return fmt.Errorf("-guide: %w", err)
		}
		pages = append(pages, string(text))
	}
	root, err := os.MkdirTemp("", "palimpsest-trials-")
	if err != nil {
		return fmt.Errorf("make a directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(root)) }()
	data, err := os.MkdirTemp("", "palimpsest-clients-data-")
	if err != nil {
		return fmt.Errorf("make a data directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(data)) }()
	program, err := programtest.Start(ctx, wanted.binary, []string{"serve"}, append(programtest.Environment(data), "PALIMPSEST_WORKSPACES_PER_PERSON=1000")) // a trial has one
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, program.Stop()) }()
	binary, err := filepath.Abs(wanted.binary)
	if err != nil {
		return fmt.Errorf("-binary: %w", err)
	}
	bench, err := apiclients.NewBench(program.URL, binary, wanted.install, root, apiclients.ReadGuide(pages...))
	if err != nil {
		return err
	}

	return tryAll(ctx, bench, wanted)
}

// chosen returns the selected clients and cases. It fails if the selection is empty.
func (o options) chosen() (clients []apiclients.Client, cases []apiclients.Case, err error) {
	// Match only at the start of a word, otherwise "pi" would match anthropic.
	holds := func(name, wanted string) bool {
		return regexp.MustCompile(`(?i)\b` + regexp.QuoteMeta(wanted)).MatchString(name)
	}
	var names, titles []string
	for _, client := range apiclients.Clients() {
		names = append(names, client.Name)
		if holds(client.Name, o.client) || holds(client.Package, o.client) {
			clients = append(clients, client)
		}
	}
	for _, one := range apiclients.Cases() {
		titles = append(titles, one.Name)
		if holds(one.Name, o.cases) {
			cases = append(cases, one)
		}
	}
	if len(clients) == 0 {
		return nil, nil, fmt.Errorf("-client: no word of a name or package begins with %q; there are %s", o.client, strings.Join(names, "; "))
	}
	if len(cases) == 0 {
		return nil, nil, fmt.Errorf("-case: no word of a name begins with %q; there are %s", o.cases, strings.Join(titles, "; "))
	}
	return clients, cases, nil
}

// tryAll runs each selected client in each selected case.
func tryAll(ctx context.Context, bench *apiclients.Bench, wanted options) error {
	clients, cases, err := wanted.chosen()
	if err != nil {
		return err
	}
	pinned, err := apiclients.Pinned()
	if err != nil {
		return err
	}
	report := apiclients.NewReport(cases)
	sent := map[string]apiclients.Habits{}
	for _, client := range clients {
		version, err := versionOf(client, wanted, pinned)
		if err != nil {
			return err
		}
		for _, one := range cases {
			trial, err := tryOne(ctx, bench, client, one, wanted)
			if err != nil {
				return err
			}
			report.Add(trial, version)
			if client.Package == "" || trial.Skipped != "" {
				continue
			}
			if sent[client.List()] == nil {
				sent[client.List()] = apiclients.Habits{}
			}
			sent[client.List()].Add(trial)
		}
	}

	fmt.Println(report.Table()) //nolint:forbidigo // the command's result
	added, err := compare(sent, wanted)
	if err != nil {
		return err
	}
	if failed := report.Failed(); failed > 0 || added > 0 {
		return fmt.Errorf("%d failed, %d new habits", failed, added)
	}

	return nil
}

// tryOne tries a client in a case, prints the result, and keeps it if asked to.
func tryOne(ctx context.Context, bench *apiclients.Bench, client apiclients.Client, one apiclients.Case, wanted options) (*apiclients.Trial, error) {
	trial, err := bench.Try(ctx, client, one)
	if err != nil {
		return nil, fmt.Errorf("%s, %s: %w", client.Name, one.Name, err)
	}
	fmt.Fprintln(os.Stderr, trial)
	if wanted.keep == "" || trial.Skipped != "" {
		return trial, nil
	}

	return trial, trial.Keep(wanted.keep)
}

// versionOf returns the installed version of a client, and reports a difference from the pinned one; "" if
// the client is not from npm.
func versionOf(client apiclients.Client, wanted options, pinned map[string]string) (string, error) {
	if client.Package == "" {
		return "", nil
	}
	version, err := npmtest.Version(wanted.install, client.Package)
	if err != nil {
		return "", err
	}
	if version != pinned[client.Package] {
		fmt.Fprintf(os.Stderr, "%s is installed as %s and pinned as %s: raise it in cmd/tools/apiclients/npm\n", client.Name, version, pinned[client.Package])
	}

	return version, nil
}

// compare prints habits that are missing on the clients' lists, or adds them there. It returns how many it
// printed.
func compare(sent map[string]apiclients.Habits, wanted options) (added int, err error) {
	for _, name := range slices.Sorted(maps.Keys(sent)) {
		if wanted.learn {
			err = sent[name].Learn(wanted.habits, name)
		}
		if err != nil {
			return added, err
		}
		habits, err := sent[name].Compare(wanted.habits, name)
		if err != nil {
			return added, err
		}
		for _, habit := range habits {
			fmt.Printf("new in what %s sends: %s\n", name, habit) //nolint:forbidigo // the command's result
		}
		added += len(habits)
	}

	return added, nil
}
