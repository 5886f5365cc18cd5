package apibench

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"palimpsest/api/programtest"
)

// server is the database server that a program with its data in a folder runs.
type server struct {
	pid int    // of its first process
	url string // of the program's database, as its owner
}

// findServer finds it; see https://www.postgresql.org/docs/current/storage-file-layout.html.
func findServer(data string) (server, error) {
	const portLine = 3
	folder := filepath.Join(data, "postgres")
	text, err := os.ReadFile(filepath.Join(folder, "data", "postmaster.pid")) //nolint:gosec // of this run
	if err != nil {
		return server{}, fmt.Errorf("process of the database: %w", err)
	}
	password, err := os.ReadFile(filepath.Join(folder, "password")) //nolint:gosec // of this run
	if err != nil {
		return server{}, fmt.Errorf("password of the database: %w", err)
	}
	lines := strings.Split(string(text), "\n")
	pid, err := strconv.Atoi(lines[0])
	if err != nil || len(lines) <= portLine {
		return server{}, fmt.Errorf("process of the database: %q", text)
	}
	address := url.URL{
		Scheme: "postgres", User: url.UserPassword("palimpsest", strings.TrimSpace(string(password))),
		Host: "127.0.0.1:" + lines[portLine], Path: "palimpsest", RawQuery: "sslmode=disable",
	}

	return server{pid: pid, url: address.String()}, nil
}

// Replicas starts more processes of a program beside the first one, with its environment and on its database, until
// there are as many as wanted, and returns the ways through all of them: by any of them, and by one for each client.
// ours is the way through the first alone, whose data is in a folder. The caller must call stop.
func Replicas(ctx context.Context, binary, data string, environment []string, ours Route, wanted int) (all []Route, stop func() error, err error) {
	var started []*programtest.Program
	stop = func() error {
		var faults []error
		for _, program := range started {
			faults = append(faults, program.Stop())
		}
		return errors.Join(faults...)
	}
	database, err := findServer(data)
	if err != nil {
		return nil, stop, err
	}
	var others []Replica
	for len(started) < wanted-1 {
		own := append(programtest.Environment(filepath.Join(data, fmt.Sprint("replica-", len(started)+2))), environment...)
		program, err := programtest.Start(ctx, binary, []string{"serve"}, append(own, "DATABASE_URL="+database.url))
		if err != nil {
			return nil, stop, err
		}
		started = append(started, program)
		others = append(others, Replica{URL: program.URL, PID: program.PID()})
	}
	for _, name := range []string{allReplicas, eachItsOwn} {
		route := Route{Name: name, Targets: maps.Clone(ours.Targets)}
		for place, target := range route.Targets {
			target.Others, target.Sticky = others, name == eachItsOwn
			route.Targets[place] = target
		}
		all = append(all, route)
	}

	return all, stop, nil
}
