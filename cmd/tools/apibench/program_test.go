package apibench

import (
	"context"
	"net/http/httptest"
	"net/url"
	"testing"

	"palimpsest/api/programtest"
	"palimpsest/cmd/palimpsest/buildtest"
	"palimpsest/pipeline/fulltest"
)

// The benchmark is run by hand; this keeps it working.
func TestRealProgramIsComparedOnEveryPlace(t *testing.T) {
	fulltest.Only(t, "three programs and their database are measured, which takes 60 s of CPU")
	t.Parallel()

	binary := buildtest.Palimpsest(t)
	// It outlives the test's context: Cleanup stops it.
	data := t.TempDir()
	secret := []string{Secret()}
	program, err := programtest.Start(context.WithoutCancel(t.Context()), binary, []string{"serve"}, append(programtest.Environment(data), secret...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := program.Stop(); err != nil {
			t.Error(err)
		}
	})

	provider := httptest.NewServer(NewProvider())
	t.Cleanup(provider.Close)
	address, err := url.Parse(provider.URL)
	if err != nil {
		t.Fatal(err)
	}
	floor := httptest.NewServer(NewFloor(address))
	t.Cleanup(floor.Close)
	routes, err := Routes(t.Context(), provider.URL, &programtest.Program{URL: floor.URL}, program, data)
	if err != nil {
		t.Fatal(err)
	}

	ours := routes[len(routes)-1]
	if ours.Targets[Roomy].Admin == "" {
		t.Error("nobody counts what the program drops")
	}
	all, stop, err := Replicas(context.WithoutCancel(t.Context()), binary, data, secret, ours, 2)
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	routes = append(routes, all...)

	var bench Bench
	type kind struct {
		place   Place
		novelty Novelty
	}
	measured := map[kind]bool{}
	for _, wanted := range Cases() {
		if measured[kind{wanted.Place, wanted.Novelty}] {
			continue
		}
		measured[kind{wanted.Place, wanted.Novelty}] = true
		wanted.Requests, wanted.Clients, wanted.WarmUp = 4, min(2, wanted.Clients), min(1, wanted.WarmUp)
		rows, err := bench.Compare(t.Context(), wanted, routes, 1)
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range rows {
			if fault := row.Fault(); fault != "" {
				t.Errorf("%s, %s: %s", wanted.Name, row.Route, fault)
			}
			if row.Route == ourRoute && wanted.Novelty == EveryMessage && row.DatabaseCPU == 0 {
				t.Errorf("%s: the database used no CPU", wanted.Name)
			}
			if row.Route == allReplicas && wanted.Novelty == EveryMessage && row.Scales == 0 {
				t.Errorf("%s: the replicas used no CPU", wanted.Name)
			}
			want := 4
			if row.Route == allReplicas || row.Route == eachItsOwn {
				want *= 2 // as many for each of the two
			}
			if row.Answered != want || row.Route == ourRoute && row.Own99 == 0 {
				t.Errorf("%s, %s: %d answers, want %d, own work %v", wanted.Name, row.Route, row.Answered, want, row.Own99)
			}
		}
	}
}
