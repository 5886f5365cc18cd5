package tenantsdb_test

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"gorm.io/gorm"

	"palimpsest/pipeline/batchdb"
	"palimpsest/tenants"
)

// workspaceOf returns whom a transaction works for.
func workspaceOf(ctx context.Context, t *testing.T, tx pgx.Tx) string {
	t.Helper()
	var workspace string
	if err := tx.QueryRow(ctx, "SELECT app_workspace()::text").Scan(&workspace); err != nil {
		t.Fatal(err)
	}
	return workspace
}

func TestJoinedTakesPartInTheTransaction(t *testing.T) {
	t.Parallel()
	b := setup(t)
	undone := errors.New("undone")
	const insert = "INSERT INTO model_windows (workspace_id, model, window_tokens, source) VALUES ($1, $2, 1000, 'learnt')"
	count := func() (count int) {
		row := b.database.Owner(t).QueryRow(t.Context(), "SELECT count(*) FROM model_windows")
		if err := row.Scan(&count); err != nil {
			t.Fatal(err)
		}
		return count
	}
	join := func(tenant tenants.Tenant, model string) error {
		ctx := t.Context()
		return b.Joined(ctx, tenant, func(tx pgx.Tx) error {
			if got := workspaceOf(ctx, t, tx); got != b.workspace.String() {
				t.Errorf("works for %s", got)
			}
			_, err := tx.Exec(ctx, insert, b.workspace, model)
			return err
		})
	}

	err := b.Together(t.Context(), b.workspace, func(tenant tenants.Tenant) error {
		return errors.Join(join(tenant, "a"), undone)
	})
	if !errors.Is(err, undone) || count() != 0 {
		t.Errorf("%d rows of a transaction that was rolled back (%v)", count(), err)
	}
	err = b.InTenant(t.Context(), b.workspace, func(tx *gorm.DB) error {
		tenant, err := batchdb.Tenant(tx)
		if err != nil {
			return err
		}
		return errors.Join(join(tenant, "b"), undone)
	})
	if !errors.Is(err, undone) || count() != 0 {
		t.Errorf("%d rows by the tenant of a transaction (%v)", count(), err)
	}
	if err := b.Together(t.Context(), b.workspace, func(tenant tenants.Tenant) error { return join(tenant, "c") }); err != nil || count() != 1 {
		t.Errorf("%d rows after the commit (%v)", count(), err)
	}
	if err := join(b.workspace, "d"); err != nil || count() != 2 {
		t.Errorf("%d rows of a transaction of its own (%v)", count(), err)
	}
}

// S2: a joined transaction is its own workspace's, also beside another's.
func TestJoinedNeverWorksForAnotherWorkspace(t *testing.T) {
	t.Parallel()
	b := setup(t)
	other := tenants.NewWorkspaceID()
	err := b.InTenant(t.Context(), b.workspace, func(*gorm.DB) error {
		return b.Joined(t.Context(), other, func(joined pgx.Tx) error {
			if got := workspaceOf(t.Context(), t, joined); got != other.String() {
				t.Errorf("works for %s, not for %s", got, other)
			}
			return nil
		})
	})
	if err != nil {
		t.Error(err)
	}
}

func TestJoinedTransactionIsEndedByItsOwner(t *testing.T) {
	t.Parallel()
	b := setup(t)
	err := b.Joined(t.Context(), b.workspace, func(tx pgx.Tx) error {
		if _, err := tx.Begin(t.Context()); err == nil {
			t.Error("it begins another")
		}
		if tx.Commit(t.Context()) == nil || tx.Rollback(t.Context()) == nil {
			t.Error("it was ended")
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
