// Package archivetest provides archive sealing keys for tests.
package archivetest

import (
	"context"
	"crypto/sha256"

	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/faulttest"
	"palimpsest/tenants"
)

// Keys returns the keys of all workspaces, each derived from the workspace's ID, as in a newly started
// process.
func Keys() *archive.Keys { return KeysOf("") }

// KeysOf is Keys of another installation for each secret.
func KeysOf(secret string) *archive.Keys { return archive.NewKeys(DataKeys(secret)) }

// DataKeys makes the data key of a workspace from its id and a secret.
type DataKeys string

// DataKey implements archive.DataKeys.
func (k DataKeys) DataKey(_ context.Context, workspace tenants.WorkspaceID) ([]byte, error) {
	key := sha256.Sum256(append([]byte(k), workspace[:]...))
	return key[:], nil
}

// FailingDataKeys are the data keys of DataKeys("") with calls that may fail.
type FailingDataKeys struct{ Calls *faulttest.Calls }

// DataKey implements archive.DataKeys.
func (k FailingDataKeys) DataKey(ctx context.Context, workspace tenants.WorkspaceID) (key []byte, err error) {
	err = k.Calls.Do(func() (err error) {
		key, err = DataKeys("").DataKey(ctx, workspace)
		return err
	})
	return key, err
}
