package apiclients

import (
	"context"
	"os"
	"testing"

	"palimpsest/api/npmtest"
	"palimpsest/api/programtest"
	"palimpsest/cmd/palimpsest/buildtest"
	"palimpsest/pipeline/fulltest"
)

// newBench returns a bench before the real program with the clients that a list in a folder
// pins.
func newBench(t *testing.T, list string) *Bench {
	t.Helper()
	installed, err := npmtest.Cached(t.Context(), os.DirFS(list))
	if err != nil {
		t.Fatal(err)
	}
	binary := buildtest.Palimpsest(t)
	// It outlives the test's context: Cleanup stops it.
	program, err := programtest.Start(context.WithoutCancel(t.Context()), binary, []string{"serve"}, programtest.Environment(t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := program.Stop(); err != nil {
			t.Error(err)
		}
	})
	bench, err := NewBench(program.URL, binary, installed, t.TempDir(), guideOfTheDocs(t))
	if err != nil {
		t.Fatal(err)
	}

	return bench
}

// The table is made by hand; this keeps it working, with the two clients that are
// small enough to be installed for a test.
func TestClientsAreTriedThroughTheRealProgram(t *testing.T) {
	t.Parallel()
	bench := newBench(t, "../../palimpsest/testdata/jssdk")

	cases := []string{"tool turn", "past the window", "429, then ok", "cut stream", "subagent"}
	clients := []Client{javaScript("messages"), javaScript("responses")}
	report := NewReport(Cases())
	for number := range fulltest.Part(len(cases) * len(clients)) {
		client, name := clients[number%len(clients)], cases[number/len(clients)]
		for _, wanted := range Cases() {
			if wanted.Name != name {
				continue
			}
			trial, err := bench.Try(t.Context(), client, wanted)
			if err != nil {
				t.Fatal(err)
			}
			report.Add(trial, "")
			if trial.Skipped == "" && (len(trial.Outputs) == 0 || len(trial.Received) == 0 || len(trial.Exchanges) < len(trial.Received)) {
				t.Errorf("%s: %d commands, %d exchanges, %d received", trial, len(trial.Outputs), len(trial.Exchanges), len(trial.Received))
			}
		}
	}
	if report.Failed() > 0 {
		t.Error(report.Table())
	}
}
