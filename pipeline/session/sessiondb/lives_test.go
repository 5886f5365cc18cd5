package sessiondb_test

import (
	"slices"
	"testing"
)

// How long subagents live is told by those of the client and the workspace that have ended.
func TestLivesAreThoseOfSubagentsThatHaveEnded(t *testing.T) {
	t.Parallel()
	f := setup(t)
	for _, one := range []struct {
		messages     int
		kind, client string
		forkAt       int
		minutes      int // since its last request
	}{
		{9, "subagent", "claude-code", 0, 60},
		{7, "subagent", "claude-code", 0, 30},
		{5, "subagent", "claude-code", 0, 1}, // it may go on
		{4, "subagent", "codex", 0, 60},
		{6, "subagent", "claude-code", 3, 60}, // it began as a copy
		{1, "subagent", "claude-code", 0, 60}, // it never came to an answer
		{8, "main", "claude-code", 0, 60},
	} {
		c := f.conversationOf(one.messages)
		c.record(t)
		owner := f.db.Owner(t)
		if _, err := owner.Exec(t.Context(), "UPDATE lanes SET kind = $3, fork_at = $4, last_at = now() - $5 * interval '1 minute' WHERE workspace_id = $1 AND id = $2",
			f.scope.Workspace, c.lane, one.kind, one.forkAt, one.minutes); err != nil {
			t.Fatal(err)
		}
		if _, err := owner.Exec(t.Context(), "UPDATE sessions SET client = $3 WHERE workspace_id = $1 AND id = (SELECT session_id FROM lanes WHERE workspace_id = $1 AND id = $2)", f.scope.Workspace, c.lane, one.client); err != nil {
			t.Fatal(err)
		}
	}
	lives, err := f.store.Lives(t.Context(), f.scope.Workspace, "claude-code")
	if want := []int{7, 9}; err != nil || !slices.Equal(lives, want) {
		t.Errorf("lives %v, %v; want %v", lives, err, want)
	}
	if other, err := f.store.Lives(t.Context(), addWorkspace(t, f.runner), "claude-code"); err != nil || len(other) > 0 {
		t.Errorf("another workspace has %v, %v", other, err)
	}
}
