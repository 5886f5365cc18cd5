package tenantsdb_test

import (
	"errors"
	"testing"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"palimpsest/tenants"
	"palimpsest/tenants/tenantsdb"
)

// What is done together is done as a whole or not at all.
func TestTogetherIsOneTransaction(t *testing.T) {
	t.Parallel()
	b := setup(t)
	down := errors.New("down")
	record := func(tenant tenants.Tenant) error {
		return b.Exchanges.RecordExchanges(t.Context(), tenant, []tenants.Exchange{{ID: uuid.Must(uuid.NewV7()), Workspace: b.workspace, At: now()}})
	}
	err := b.Together(t.Context(), b.workspace, func(tenant tenants.Tenant) error {
		if err := record(tenant); err != nil {
			return err
		}
		return down
	})
	if !errors.Is(err, down) {
		t.Fatalf("error %v, want the second step's", err)
	}
	if got := exchanges(t, b); got != 0 {
		t.Fatalf("%d exchanges are left of what failed", got)
	}
	err = b.Together(t.Context(), b.workspace, func(tenant tenants.Tenant) error { return errors.Join(record(tenant), record(tenant)) })
	if err != nil {
		t.Fatal(err)
	}
	if got := exchanges(t, b); got != 2 {
		t.Fatalf("%d exchanges, want 2", got)
	}
}

// S1: another workspace's rows are not seen from inside either.
func TestTogetherIsForOneWorkspace(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, other := b.signUp(t, "grace@example.com")
	err := b.Together(t.Context(), b.workspace, func(tenants.Tenant) error {
		return b.InTenant(t.Context(), other, func(tx *gorm.DB) error {
			var seen []tenants.WorkspaceID
			if err := tx.Table("workspaces").Pluck("workspace_id", &seen).Error; err != nil {
				return err
			}
			if len(seen) != 1 || seen[0] != other {
				t.Errorf("inside, the other workspace's transaction sees %v", seen)
			}
			return nil
		})
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A database that ends a connection is away. What it says of a statement is another matter.
func TestLostConnectionIsDatabaseAway(t *testing.T) {
	t.Parallel()
	b := setup(t)
	do := func(statement string) error {
		return b.InTenant(t.Context(), b.workspace, func(tx *gorm.DB) error { return tx.Exec(statement).Error })
	}
	if err := do("SELECT pg_terminate_backend(pg_backend_pid())"); !errors.Is(err, tenants.ErrAway) {
		t.Errorf("with its connection cut: %v", err)
	}
	if err := do("SELECT 1 / 0"); err == nil || errors.Is(err, tenants.ErrAway) {
		t.Errorf("with a wrong statement: %v", err)
	}
	if err := do("SELECT 1"); err != nil {
		t.Errorf("on the next connection: %v", err)
	}
}

func exchanges(t *testing.T, b bundle) int {
	t.Helper()
	listed, _, err := b.Exchanges.Exchanges(tenants.OwnWork(t.Context()), b.workspace, tenants.ExchangeFilter{})
	if err != nil {
		t.Fatal(err)
	}
	return len(listed)
}

// A server that compiles what it takes for long queries, as PostgreSQL does unless it is told
// otherwise, compiles none of our queries.
func TestStatementsAreNotCompiled(t *testing.T) {
	t.Parallel()
	b := setup(t)
	if _, err := b.database.Owner(t).Exec(t.Context(), "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET jit = on', current_database()); END $$"); err != nil {
		t.Fatal(err)
	}
	db, err := tenantsdb.Open(t.Context(), tenantsdb.Config{URL: b.database.AppURL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	var jit string
	if err := db.InTenant(t.Context(), b.workspace, func(tx *gorm.DB) error { return tx.Raw("SHOW jit").Scan(&jit).Error }); err != nil {
		t.Fatal(err)
	}
	if jit != "off" {
		t.Errorf("jit is %q inside a transaction", jit)
	}
}
