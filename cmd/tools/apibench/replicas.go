package apibench

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"path/filepath"

	"palimpsest/api/programtest"
	"palimpsest/migrations/localdb"
)

// Secret returns the setting of a secret key for the replicas of one run.
func Secret() string {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // it never fails

	return "PALIMPSEST_SECRET_KEY=" + base64.StdEncoding.EncodeToString(key)
}

// Replicas starts more processes of a program beside the first one, with its environment and on its
// database, until there are as many as wanted. It returns two routes through all of them: one by turns, and
// one with a fixed process for each client. ours is the route through only the first, whose data is in a
// folder. The caller must call stop.
func Replicas(ctx context.Context, binary, data string, environment []string, ours Route, wanted int) (all []Route, stop func() error, err error) {
	var started []*programtest.Program
	stop = func() error {
		var faults []error
		for _, program := range started {
			faults = append(faults, program.Stop())
		}
		return errors.Join(faults...)
	}
	database, err := localdb.Running(filepath.Join(data, "postgres"), "palimpsest")
	if err != nil {
		return nil, stop, fmt.Errorf("database of the first replica: %w", err)
	}
	var others []Replica
	for len(started) < wanted-1 {
		own := append(programtest.Environment(filepath.Join(data, fmt.Sprint("replica-", len(started)+2))), environment...)
		program, err := programtest.Start(ctx, binary, []string{"serve"}, append(own, "DATABASE_URL="+database))
		if err != nil {
			return nil, stop, err
		}
		started = append(started, program)
		others = append(others, Replica{URL: program.URL, Admin: program.Admin, PID: program.PID()})
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
