package tenantsdb_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"palimpsest/tenants"
	"palimpsest/tenants/tenantsdb"
)

// S4: through a pgbouncer in transaction mode, which gives the connections of few to
// many, a thousand transactions of two replicas for five workspaces at once, of which a
// third fails and a third panics, see and write no foreign row; and changes that are made
// through it are heard past it.
func TestTenantsBehindAPoolerNeverSeeEachOther(t *testing.T) {
	t.Parallel()
	b := setup(t)
	app, worker := b.database.PooledURLs(t, 4)
	replicas := make([]*tenantsdb.DB, 2)
	for i := range replicas {
		db, err := tenantsdb.Open(t.Context(), tenantsdb.Config{URL: app, WorkerURL: worker, ListenURL: b.database.AppURL})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(db.Close)
		replicas[i] = db
	}
	workspaces := make([]tenants.WorkspaceID, 5)
	for i := range workspaces {
		_, workspaces[i] = b.signUp(t, fmt.Sprintf("user%d@example.com", i))
		for range i + 1 {
			b.record(t, workspaces[i], b.exchange(now()))
		}
	}
	_, h := listen(t, bundle{DB: replicas[0], database: b.database})

	var group sync.WaitGroup
	for i := range 1000 {
		db, of := replicas[i%2], i%len(workspaces)
		group.Go(func() { visit(t, db, workspaces[of], of+1, i/len(workspaces)) })
		if i%50 == 0 { // meanwhile the worker login lists all of them
			group.Go(func() {
				if all, err := db.DataKeys.AllWorkspaces(t.Context()); err != nil || len(all) != len(workspaces)+1 {
					t.Errorf("the worker login lists %d workspaces (%v)", len(all), err)
				}
			})
		}
	}
	group.Wait()

	for range 20 { // on whichever connection comes
		var setting string
		err := replicas[0].Pool().QueryRow(t.Context(), "SELECT coalesce(current_setting('app.workspace_id', true), '')").Scan(&setting)
		if err != nil || setting != "" {
			t.Errorf("a connection came back working for %q (%v)", setting, err)
		}
	}
	if err := replicas[1].APIKeys.RevokeAPIKey(t.Context(), workspaces[0], uuid.New()); err == nil {
		t.Error("an unknown key was revoked")
	}
	key, _ := bundle{DB: replicas[1], database: b.database}.addKey(t, workspaces[0])
	began := time.Now()
	if err := replicas[1].APIKeys.RevokeAPIKey(t.Context(), workspaces[0], key.ID); err != nil {
		t.Fatal(err)
	}
	if got := h.next(t); got != tenantsdb.KeysChannel+" "+workspaces[0].String() {
		t.Errorf("heard %s", got)
	}
	t.Logf("S8: heard after %s", time.Since(began))
}

// Statements are prepared on a server itself, and never through a pooler, unless the URL says how.
func TestStatementsArePreparedOnTheServerItself(t *testing.T) {
	t.Parallel()
	b := setup(t)
	pooled, _ := b.database.PooledURLs(t, 1)
	for name, test := range map[string]struct {
		url      string
		prepares bool
	}{
		"the server itself": {b.database.AppURL, true},
		"a pooler":          {pooled, false},
		"the server itself, where the URL says so":    {b.database.AppURL + "&default_query_exec_mode=cache_describe", false},
		"the server itself, where the URL keeps none": {b.database.AppURL + "&statement_cache_capacity=0", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, err := tenantsdb.Open(t.Context(), tenantsdb.Config{URL: test.url, MaxConns: 1})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(db.Close)
			if kept := db.Pool().Stat().IdleConns(); test.prepares && kept != 1 {
				t.Errorf("%d connections are kept of the one on which the login was checked", kept)
			}
			for range 2 { // once it has been prepared itself, if it is
				var prepared int
				if err := db.Pool().QueryRow(t.Context(), "SELECT count(*) FROM pg_prepared_statements").Scan(&prepared); err != nil {
					t.Fatal(err)
				}
				if prepares := prepared > 0; prepares != test.prepares {
					t.Errorf("%d statements are prepared", prepared)
				}
			}
		})
	}
}

// S4: what a transaction writes through a pooler is its workspace's or nobody's.
func TestWritesBehindAPoolerStayInTheirWorkspace(t *testing.T) {
	t.Parallel()
	b := setup(t)
	app, _ := b.database.PooledURLs(t, 2)
	db, err := tenantsdb.Open(t.Context(), tenantsdb.Config{URL: app, ListenURL: b.database.AppURL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	_, other := b.signUp(t, "eve@example.com")
	names := map[tenants.WorkspaceID]string{b.workspace: "ours", other: "theirs"}

	var group sync.WaitGroup
	for i := range 200 {
		of := b.workspace
		if i%2 == 1 {
			of = other
		}
		group.Go(func() {
			err := db.InTenant(context.Background(), of, func(tx *gorm.DB) error {
				return tx.Exec("UPDATE workspaces SET name = ?", names[of]).Error // without a condition
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	for workspace, want := range names {
		var name string
		if err := b.database.Owner(t).QueryRow(t.Context(), "SELECT name FROM workspaces WHERE workspace_id = $1", workspace).Scan(&name); err != nil || name != want {
			t.Errorf("%s is called %q, want %q (%v)", workspace, name, want, err)
		}
	}
}
