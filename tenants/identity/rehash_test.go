package identity_test

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"palimpsest/migrations/dbtest"
	"palimpsest/tenants"
	"palimpsest/tenants/identity"
)

// S15: a key that is used while both master keys are set needs the newer one only from
// then on, and no replica refuses it on the way.
func TestUsedKeysAreRehashed(t *testing.T) {
	t.Parallel()
	database := dbtest.New(t)
	user, workspace, err := database.DB.Accounts.SignUp(t.Context(), "ada@example.com", "hash", "northbeam")
	if err != nil {
		t.Fatal(err)
	}
	older, newer := bytes.Repeat([]byte("o"), 32), bytes.Repeat([]byte("n"), 32)
	with := func(peppers ...[]byte) *identity.Keys {
		keys, err := identity.NewKeys(database.DB.APIKeys, peppers, time.Now)
		if err != nil {
			t.Fatal(err)
		}
		return keys
	}
	before := with(older)
	var secrets []string
	for range 2 {
		key, secret, hash := before.Create(workspace.ID, "laptop", []tenants.Scope{tenants.ScopeProxy}, user.ID, nil)
		if err := database.DB.APIKeys.CreateAPIKey(t.Context(), workspace.ID, key, hash); err != nil {
			t.Fatal(err)
		}
		secrets = append(secrets, secret)
	}

	rotating, replica := with(newer, older), with(newer, older)
	for range 2 { // from the database, from memory
		for _, keys := range []*identity.Keys{rotating, replica} {
			if _, err := keys.Authenticate(t.Context(), secrets[0]); err != nil {
				t.Fatalf("while both are set: %v", err)
			}
		}
	}
	replica.Forget()
	for name, keys := range map[string]*identity.Keys{"the same": rotating, "a replica": replica, "a fresh one": with(newer)} {
		if _, err := keys.Authenticate(t.Context(), secrets[0]); err != nil {
			t.Errorf("%s afterwards: %v", name, err)
		}
	}
	if _, err := with(older).Authenticate(t.Context(), secrets[0]); !errors.Is(err, tenants.ErrKeyUnknown) {
		t.Errorf("with the older master key alone: %v", err)
	}
	if _, err := with(newer).Authenticate(t.Context(), secrets[1]); !errors.Is(err, tenants.ErrKeyUnknown) {
		t.Errorf("a key that nobody used: %v", err)
	}
}

// S15: what a replica remembers from before, that the newer hash is unknown, does not
// outlast that another has hashed the key again.
func TestReplicaFindsKeyThatAnotherRehashed(t *testing.T) {
	t.Parallel()
	database := dbtest.New(t)
	user, workspace, err := database.DB.Accounts.SignUp(t.Context(), "ada@example.com", "hash", "northbeam")
	if err != nil {
		t.Fatal(err)
	}
	older, newer := bytes.Repeat([]byte("o"), 32), bytes.Repeat([]byte("n"), 32)
	replica, err := identity.NewKeys(database.DB.APIKeys, [][]byte{newer, older}, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	key, secret, hash := replica.Create(workspace.ID, "laptop", []tenants.Scope{tenants.ScopeProxy}, user.ID, nil)
	if _, err := replica.Authenticate(t.Context(), secret); !errors.Is(err, tenants.ErrKeyUnknown) { // both hashes are known to be unknown now
		t.Fatalf("before it exists: %v", err)
	}
	if err := database.DB.APIKeys.CreateAPIKey(t.Context(), workspace.ID, key, hash); err != nil {
		t.Fatal(err)
	}
	if _, err := replica.Authenticate(t.Context(), secret); err != nil {
		t.Errorf("from memory: %v", err)
	}
}
