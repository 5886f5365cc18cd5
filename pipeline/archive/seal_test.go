package archive_test

import (
	"context"
	"encoding/hex"
	"testing"

	"palimpsest/pipeline/archive"
	"palimpsest/tenants"
)

// What is sealed and proven is bound to the bytes of the workspace's id. Names of objects in
// buckets are such proofs: another one would not be found any more.
func TestAProofIsBoundToTheWorkspacesBytes(t *testing.T) {
	t.Parallel()
	workspace, err := tenants.ParseWorkspaceID("5eed0000-0000-4000-8000-000000000001")
	if err != nil {
		t.Fatal(err)
	}
	key, err := archive.NewKey(workspace, make([]byte, 32))
	if err != nil {
		t.Fatal(err)
	}
	const want = "8e353742e7334b0d535f4029e2b404690c960efa9e050338f97a78e3dc8f6339"
	if got := hex.EncodeToString(key.Proof([]byte("about"))); got != want {
		t.Errorf("proof %s, want %s", got, want)
	}
}

// slowKeys reads the data key of a workspace, and runs deleted before the key is there.
type slowKeys struct {
	reads   int
	deleted func()
}

func (s *slowKeys) DataKey(context.Context, tenants.WorkspaceID) ([]byte, error) {
	s.reads++
	s.deleted()
	return make([]byte, 32), nil
}

// S31: a data key that is being read while its workspace is deleted does not stay in memory.
func TestKeyOfWorkspaceDeletedDuringReadIsForgotten(t *testing.T) {
	t.Parallel()
	workspace, stored := tenants.NewWorkspaceID(), &slowKeys{}
	keys := archive.NewKeys(stored)
	stored.deleted = func() { keys.Forget(workspace) }
	for range 2 {
		if _, err := keys.Key(t.Context(), workspace); err != nil {
			t.Fatal(err)
		}
	}
	if stored.reads != 2 {
		t.Errorf("%d reads, want 2", stored.reads)
	}
}
