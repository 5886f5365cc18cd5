package datakeys_test

import (
	"bytes"
	"context"
	"errors"
	"net/url"
	"sync"
	"testing"

	"gorm.io/gorm"

	"palimpsest/migrations/dbtest"
	"palimpsest/tenants"
	"palimpsest/tenants/datakeys"
	"palimpsest/tenants/tenantsdb"
	"palimpsest/tenants/vault"
	"palimpsest/tenants/vault/vaulttest"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// setup returns a database with a workspace.
func setup(t *testing.T) (*dbtest.Database, tenants.WorkspaceID) {
	t.Helper()
	database := dbtest.New(t)
	return database, addWorkspace(t, database)
}

func addWorkspace(t *testing.T, database *dbtest.Database) tenants.WorkspaceID {
	t.Helper()
	id := tenants.NewWorkspaceID()
	err := database.DB.InTenant(t.Context(), id, func(tx *gorm.DB) error {
		return tx.Exec("INSERT INTO workspaces (workspace_id, name) VALUES (?, 'test')", id).Error
	})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestEverybodyGetsTheSameKeyAndNobodyFindsItStored(t *testing.T) {
	t.Parallel()
	database, workspace := setup(t)
	keys := make([][]byte, 8)
	var askers sync.WaitGroup
	for i := range keys {
		askers.Go(func() {
			var err error
			keys[i], err = datakeys.New(database.DB.DataKeys, vaulttest.Of(t, "a")).DataKey(context.WithoutCancel(t.Context()), workspace)
			if err != nil {
				t.Error(err)
			}
		})
	}
	askers.Wait()
	for _, key := range keys {
		if len(key) != datakeys.Size || !bytes.Equal(key, keys[0]) {
			t.Fatalf("keys of %d bytes differ", len(key))
		}
	}
	wrapped, err := database.DB.DataKeys.DataKey(t.Context(), workspace)
	if err != nil || bytes.Contains(wrapped, keys[0]) {
		t.Errorf("the key is stored as it is (%v)", err)
	}
	other, err := datakeys.New(database.DB.DataKeys, vaulttest.Of(t, "a")).DataKey(t.Context(), addWorkspace(t, database))
	if err != nil || bytes.Equal(other, keys[0]) {
		t.Errorf("another workspace has the same key (%v)", err)
	}
}

// A key that is made inside a transaction must not be lost with it.
func TestAKeyOutlivesTheTransactionInWhichItWasMade(t *testing.T) {
	t.Parallel()
	database, workspace := setup(t)
	keeper := datakeys.New(database.DB.DataKeys, vaulttest.Of(t, "a"))
	errPlanned := errors.New("as planned")
	var made []byte
	err := database.DB.Together(t.Context(), workspace, func(tenants.Tenant) error {
		var err error
		if made, err = keeper.DataKey(t.Context(), workspace); err != nil {
			return err
		}
		return errPlanned
	})
	if !errors.Is(err, errPlanned) {
		t.Fatal(err)
	}
	if got, err := keeper.DataKey(t.Context(), workspace); err != nil || !bytes.Equal(got, made) {
		t.Errorf("the key is another afterwards (%v)", err)
	}
}

// S15: rotation wraps all keys again; then the old master key can go.
func TestAfterARotationTheOldMasterKeyCanGo(t *testing.T) {
	t.Parallel()
	database, first := setup(t)
	workspaces := []tenants.WorkspaceID{first, addWorkspace(t, database), addWorkspace(t, database)}
	were := make([][]byte, len(workspaces))
	for i, workspace := range workspaces {
		var err error
		if were[i], err = datakeys.New(database.DB.DataKeys, vaulttest.Of(t, "a")).DataKey(t.Context(), workspace); err != nil {
			t.Fatal(err)
		}
	}
	addWorkspace(t, database) // one without a key
	both := datakeys.New(database.DB.DataKeys, vaulttest.Of(t, "b", "a"))
	if got, err := both.DataKey(t.Context(), first); err != nil || !bytes.Equal(got, were[0]) {
		t.Fatalf("with both master keys: %v", err)
	}
	for _, want := range []int{2, 0} { // the first was wrapped again when it was opened
		if rewrapped, err := both.RewrapAll(t.Context()); err != nil || rewrapped != want {
			t.Fatalf("rewrapped %d, %v, want %d", rewrapped, err, want)
		}
	}
	for i, workspace := range workspaces {
		if got, err := datakeys.New(database.DB.DataKeys, vaulttest.Of(t, "b")).DataKey(t.Context(), workspace); err != nil || !bytes.Equal(got, were[i]) {
			t.Errorf("with the new master key alone: %v", err)
		}
		if _, err := datakeys.New(database.DB.DataKeys, vaulttest.Of(t, "a")).DataKey(t.Context(), workspace); !errors.Is(err, vault.ErrSealedElsewhere) {
			t.Errorf("with the old master key alone: %v, want ErrSealedElsewhere", err)
		}
	}
	if _, err := datakeys.New(database.DB.DataKeys, vaulttest.Of(t, "c")).RewrapAll(t.Context()); !errors.Is(err, vault.ErrSealedElsewhere) {
		t.Errorf("without any of the master keys: %v, want ErrSealedElsewhere", err)
	}
}

// S15: a wrapped key opens nothing in another workspace.
func TestAKeyCopiedToAnotherWorkspaceDoesNotOpen(t *testing.T) {
	t.Parallel()
	database, workspace := setup(t)
	keeper := datakeys.New(database.DB.DataKeys, vaulttest.Of(t, "a"))
	if _, err := keeper.DataKey(t.Context(), workspace); err != nil {
		t.Fatal(err)
	}
	wrapped, err := database.DB.DataKeys.DataKey(t.Context(), workspace)
	if err != nil {
		t.Fatal(err)
	}
	thief := addWorkspace(t, database)
	if _, err := database.DB.DataKeys.AddDataKey(t.Context(), thief, wrapped); err != nil {
		t.Fatal(err)
	}
	if key, err := keeper.DataKey(t.Context(), thief); !errors.Is(err, vault.ErrSealedElsewhere) || key != nil {
		t.Errorf("got %d bytes, %v, want ErrSealedElsewhere", len(key), err)
	}
}

func TestMasterKeysOfAnotherDatabaseAreFound(t *testing.T) {
	t.Parallel()
	database, workspace := setup(t)
	owner := boundOwner(t, database)
	check := func(letters ...string) error {
		some, err := tenantsdb.SomeDataKeys(t.Context(), owner, datakeys.Sample)
		if err != nil {
			t.Fatal(err)
		}
		return datakeys.Check(vaulttest.Of(t, letters...), some)
	}
	if err := check("a"); err != nil {
		t.Errorf("without a data key: %v", err)
	}
	if _, err := datakeys.New(database.DB.DataKeys, vaulttest.Of(t, "a")).DataKey(t.Context(), workspace); err != nil {
		t.Fatal(err)
	}
	if err := check("b"); !errors.Is(err, vault.ErrSealedElsewhere) {
		t.Errorf("the key of another database: %v, want ErrSealedElsewhere", err)
	}
	// One that opens is enough: the others may be damaged.
	if _, err := datakeys.New(database.DB.DataKeys, vaulttest.Of(t, "b")).DataKey(t.Context(), addWorkspace(t, database)); err != nil {
		t.Fatal(err)
	}
	for _, letters := range [][]string{{"a"}, {"b"}, {"c", "a"}} {
		if err := check(letters...); err != nil {
			t.Errorf("master keys %v: %v", letters, err)
		}
	}
	if some, err := tenantsdb.SomeDataKeys(t.Context(), database.OwnerURL, 1); err != nil || len(some) != 1 {
		t.Errorf("%d data keys where one is asked for, %v", len(some), err)
	}
	for _, other := range []string{database.AppURL, database.WorkerURL} {
		if some, err := tenantsdb.SomeDataKeys(t.Context(), other, 1); err != nil || len(some) != 0 {
			t.Errorf("a login that is not the owner reads %d data keys, %v", len(some), err)
		}
	}
}

// boundOwner makes a login that is not a superuser the owner of data_keys and returns its URL:
// row-level security applies to most owners.
func boundOwner(t *testing.T, database *dbtest.Database) string {
	t.Helper()
	address, err := url.Parse(database.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	address.User = url.UserPassword("bound_"+database.Name, "pass")
	for _, statement := range []string{"CREATE ROLE bound_" + database.Name + " LOGIN PASSWORD 'pass'", "ALTER TABLE data_keys OWNER TO bound_" + database.Name} {
		if _, err := database.Owner(t).Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	return address.String()
}
