package main

import (
	"slices"
	"strings"
	"testing"

	"palimpsest/cmd/tools/apiclients"
)

// A name that no client has must not print an empty table as if all was well.
func TestWhoIsTriedIsChosenByNameOrPackage(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"Claude Code", "claude-code", "CODEX", "curl", ""} {
		if clients, cases, err := (options{client: name}).chosen(); err != nil || len(clients) == 0 || len(cases) == 0 {
			t.Errorf("%q chooses %d clients, %d cases, %v", name, len(clients), len(cases), err)
		}
	}
	clients, _, err := (options{client: "pi"}).chosen()
	if err != nil || slices.ContainsFunc(clients, func(c apiclients.Client) bool { return !strings.HasPrefix(c.Name, "pi") }) {
		t.Errorf("pi chooses %v, %v", clients, err)
	}
	if _, cases, err := (options{cases: "tool turn"}).chosen(); err != nil || len(cases) != 1 {
		t.Errorf("one case is %d cases, %v", len(cases), err)
	}
	for _, wanted := range []options{{client: "clod"}, {cases: "nothing such"}} {
		if _, _, err := wanted.chosen(); err == nil || !strings.Contains(err.Error(), "there are ") {
			t.Errorf("%+v: %v", wanted, err)
		}
	}
}
