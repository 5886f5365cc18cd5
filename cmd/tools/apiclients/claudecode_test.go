package apiclients

import (
	"bytes"
	"net/http"
	"os"
	"slices"
	"testing"

	"palimpsest/api/npmtest"
	"palimpsest/pipeline/fulltest"
)

// The pinned Claude Code on a model that gets a system message behind every turn works far
// past a small window, in steps of one call, of several, and of large ones, and with message threads: nothing is
// refused, compression pays, and the client sends nothing that is not on its list.
func TestClaudeCodeWorksPastItsWindow(t *testing.T) {
	fulltest.Only(t, "the pinned Claude Code works through four sessions, which takes 40 s of CPU")
	t.Parallel()
	bench := newBench(t, "testdata/claudecode")
	client := claudeCodeOn("Claude Code", "claude-sonnet-5")
	sent, tried, listed := Habits{}, 0, 0
	for _, wanted := range Cases() {
		if !slices.Contains([]string{windowCase, threadsCase, writesCase, smallCallsCase}, wanted.Name) {
			continue
		}
		trial, err := bench.Try(t.Context(), client, wanted)
		if err != nil {
			t.Fatal(err)
		}
		tried++
		t.Log(trial)
		if trial.Err != nil {
			t.Errorf("%s: %v", wanted.Name, trial.Err)
		}
		if trial.NetMicroUSD <= 0 || len(trial.Received) < wanted.read() {
			t.Errorf("%s: %d requests, net %d µ$", wanted.Name, len(trial.Received), trial.NetMicroUSD)
		}
		last := trial.Exchanges[len(trial.Exchanges)-1].Body
		if behind := bytes.Count(last, []byte(`"role":"system"`)); behind < wanted.read() {
			t.Errorf("%s: %d system messages behind %d turns: this client does not send what the test is about", wanted.Name, behind, wanted.read())
		}
		// What has arguments of tools streamed as they are written reaches the provider.
		eager, arrived := []byte(`"eager_input_streaming":true`), trial.Received[len(trial.Received)-1].Body
		if got, want := bytes.Count(arrived, eager), bytes.Count(last, eager); got != want || want == 0 {
			t.Errorf("%s: %d tools of %d are eager at the provider", wanted.Name, got, want)
		}
		for _, exchange := range trial.Exchanges {
			if exchange.Method == http.MethodGet && exchange.Path == "/v1/models?limit=1000" && exchange.Status == http.StatusOK {
				listed++
			}
		}
		sent.Add(trial)
	}
	if listed == 0 {
		t.Error("no list of models was asked for and given")
	}

	added, err := sent.Compare("testdata/habits", client.List())
	if err != nil || tried != 4 {
		t.Errorf("%d cases, %v", tried, err)
	}
	for _, habit := range added {
		t.Errorf("new in what Claude Code sends: %s", habit)
	}
}

// The pinned Claude Code works past its window in the protocol of each cloud: every request reaches the cloud's
// double with its sign-in, and none is refused.
func TestClaudeCodeWorksInEveryCloud(t *testing.T) {
	fulltest.Only(t, "the pinned Claude Code works through three sessions, which takes 30 s of CPU")
	t.Parallel()
	bench := newBench(t, "testdata/claudecode")
	for _, client := range claudeCodeInClouds() {
		for _, wanted := range Cases() {
			if wanted.Name != windowCase {
				continue
			}
			trial, err := bench.Try(t.Context(), client, wanted)
			if err != nil {
				t.Fatal(err)
			}
			t.Log(trial)
			if trial.Err != nil || len(trial.Received) < wanted.read() {
				t.Errorf("%s: %d requests, %v", client.Name, len(trial.Received), trial.Err)
			}
			last := trial.Received[len(trial.Received)-1]
			if path := trial.Exchanges[len(trial.Exchanges)-1].Path; path == "/v1/messages" || last.Header.Get("Authorization") == "" && last.Header.Get("X-Api-Key") == "" {
				t.Errorf("%s: the client asked at %s, and the cloud got %v", client.Name, path, last.Header)
			}
		}
	}
}

// The pinned Claude Code compacts with /compact past its window, gets its summary from the
// proxy, and goes on from it.
func TestClaudeCodeGoesOnFromAnAnsweredCompaction(t *testing.T) {
	fulltest.Only(t, "the pinned Claude Code works through a session, which takes 15 s of CPU")
	t.Parallel()
	bench := newBench(t, "testdata/claudecode")
	for _, wanted := range Cases() {
		if wanted.Name != answeredCase {
			continue
		}
		trial, err := bench.Try(t.Context(), claudeCode(), wanted)
		if err != nil {
			t.Fatal(err)
		}
		t.Log(trial)
		if trial.Err != nil {
			for i, output := range trial.Outputs {
				t.Logf("%d: %.2000s", i, output.Text)
			}
			t.Error(trial.Err)
		}
	}
}

func TestTestsRunThePinnedClaudeCode(t *testing.T) {
	t.Parallel()
	all, err := Pinned()
	if err != nil {
		t.Fatal(err)
	}
	tested, err := npmtest.Pinned(os.DirFS("testdata/claudecode"))
	if err != nil {
		t.Fatal(err)
	}
	if tested[claudeCodePackage] == "" || tested[claudeCodePackage] != all[claudeCodePackage] {
		t.Errorf("testdata/claudecode has Claude Code %q, npm/package.json %q: set both, with npm install --package-lock-only in each", tested[claudeCodePackage], all[claudeCodePackage])
	}
}
