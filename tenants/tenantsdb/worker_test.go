package tenantsdb_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"gorm.io/gorm"

	"palimpsest/tenants"
	"palimpsest/tenants/tenantsdb"
)

// workers are values of app.worker that might be taken for a right: no policy and no function
// may ask for any.
func workers() []string {
	return []string{"", "worker", "palimpsest_worker", "operator", "palimpsest_operator", "index", "retention", "deletion", "mail", "true"}
}

// attempts runs try on the app login as a user of another workspace, for each value of
// app.worker combined with each scope that this user can have, and rolls back.
func attempts(t *testing.T, b bundle, try func(t *testing.T, tx pgx.Tx)) {
	t.Helper()
	stranger, other := b.signUp(t, "eve@example.com")
	for _, worker := range workers() {
		for _, whom := range []struct{ workspace, user string }{{}, {other.String(), ""}, {"", stranger.ID.String()}, {other.String(), stranger.ID.String()}} {
			tx, err := b.Pool().Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			_, err = tx.Exec(t.Context(), "SELECT set_config('app.worker', $1, true), set_config('app.workspace_id', $2, true), set_config('app.user_id', $3, true)",
				worker, whom.workspace, whom.user)
			if err != nil {
				t.Fatal(err)
			}
			try(t, tx)
			if err := tx.Rollback(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// within runs a statement in a savepoint and undoes it.
func within(ctx context.Context, tx pgx.Tx, statement string, values ...any) (changed int64, err error) {
	inner, err := tx.Begin(ctx)
	if err != nil {
		return 0, err
	}
	tag, err := inner.Exec(ctx, statement, values...)
	return tag.RowsAffected(), errors.Join(err, inner.Rollback(ctx))
}

// S2: whatever app.worker is set to, the app login cannot read, change or insert rows of
// another workspace or rows for background jobs, in any table of the catalog.
func TestAppLoginCannotBecomeWorkerBySettings(t *testing.T) {
	t.Parallel()
	b := setup(t)
	fill(t, b)
	plantJobs(t, b)
	tables := columns(t, b.database.Owner(t))
	planted, statements := map[string]string{}, map[string]string{}
	maps.Copy(tables, jobTables(t, b.database.Owner(t)))
	for table := range tables {
		planted[table] = row(t, b.database.Owner(t), table)
		statements[table] = strings.Replace(insert(t, b.database.Owner(t), table), "?", "$1", 1)
	}
	mine := "('" + b.workspace.String() + "', '" + b.user.ID.String() + "')"
	attempts(t, b, func(t *testing.T, tx pgx.Tx) {
		t.Helper()
		for table, column := range tables {
			where := " WHERE " + column + "::text IN " + mine
			if table == "master_proof" || strings.HasPrefix(table, "jobs.river_") && table != "jobs.river_job" {
				where = "" // rows without a workspace
			}
			var seen int
			inner, err := tx.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			err = inner.QueryRow(t.Context(), "SELECT count(*) FROM "+table+where).Scan(&seen)
			if table == "jobs.river_queue" {
				seen = 0 // names of job kinds, which the version before reads
			}
			if err != nil && !isRefused(err) || seen != 0 {
				t.Errorf("%s shows %d rows (%v)", table, seen, err)
			}
			if err := inner.Rollback(t.Context()); err != nil {
				t.Fatal(err)
			}
			for _, statement := range []string{"DELETE FROM " + table + where, "UPDATE " + table + " SET " + changeable(column) + where} {
				if changed, err := within(t.Context(), tx, statement); err != nil && !isRefused(err) || changed != 0 {
					t.Errorf("%s: %d rows (%v)", statement, changed, err)
				}
			}
			if slices.Contains(queues(), table) {
				continue
			}
			if _, err := within(t.Context(), tx, statements[table], planted[table]); !isRefused(err) {
				t.Errorf("%s takes a row: %v, want 42501", table, err)
			}
		}
	})
}

// changeable returns an assignment that keeps the value of a column.
func changeable(column string) string {
	if strings.HasPrefix(column, "args") {
		return "args = args"
	}
	return column + " = " + column
}

// jobTables returns every table of the schema jobs with an expression that identifies a row.
func jobTables(t *testing.T, owner *pgxpool.Pool) map[string]string {
	t.Helper()
	rows, err := owner.Query(t.Context(), `SELECT 'jobs.' || relname FROM pg_class WHERE relnamespace = 'jobs'::regnamespace AND relkind IN ('r', 'p')`)
	if err != nil {
		t.Fatal(err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(names) < 5 {
		t.Fatalf("tables of jobs %v (%v)", names, err)
	}
	tables := map[string]string{}
	for _, name := range names {
		tables[name] = "name"
	}
	tables["jobs.river_job"], tables["jobs.river_notification"], tables["jobs.river_migration"] = "args->>'workspace'", "topic", "line"
	return tables
}

// plantJobs inserts a row into every table of the schema jobs.
func plantJobs(t *testing.T, b bundle) {
	t.Helper()
	for _, statement := range []string{
		fmt.Sprintf(`INSERT INTO jobs.river_job (kind, max_attempts, args) VALUES ('plan', 1, '{"workspace": %q, "lane": %q}')`, b.workspace, uuid.New()),
		"INSERT INTO jobs.river_leader (elected_at, expires_at, leader_id) VALUES (now(), now(), 'l') ON CONFLICT DO NOTHING",
		"INSERT INTO jobs.river_queue (name, updated_at) VALUES ('plan', current_timestamp)",
		"INSERT INTO jobs.river_notification (payload, topic) VALUES ('p', 't')",
	} {
		if _, err := b.database.Owner(t).Exec(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

// S2: whatever is set, the app login cannot call functions of the worker or the owner, or
// switch to their roles.
func TestAppLoginCannotCallWorkerFunctions(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.addOperator(t)
	rows, err := b.database.Owner(t).Query(t.Context(), `
		SELECT p.oid::regprocedure::text, format('SELECT %s(%s)', p.oid::regproc, (SELECT string_agg(format('NULL::%s', format_type(a, NULL)), ', ' ORDER BY n)
			FROM unnest(p.proargtypes) WITH ORDINALITY AS args (a, n)))
		FROM pg_proc p WHERE p.pronamespace IN ('public'::regnamespace, 'jobs'::regnamespace) AND p.prosecdef`)
	if err != nil {
		t.Fatal(err)
	}
	calls := map[string]string{}
	var name, call string
	if _, err := pgx.ForEachRow(rows, []any{&name, &call}, func() error { calls[name] = call; return nil }); err != nil {
		t.Fatal(err)
	}
	forRequests := []string{"claim_operator", "search_documents", "search_within", "workspace_standing"}
	refusals := 0
	attempts(t, b, func(t *testing.T, tx pgx.Tx) {
		t.Helper()
		// Knowing an operator's ID is not enough.
		if _, err := tx.Exec(t.Context(), "SELECT set_config('app.user_id', $1, true)", b.user.ID.String()); err != nil {
			t.Fatal(err)
		}
		for name, call := range calls {
			if slices.ContainsFunc(forRequests, func(known string) bool { return strings.HasPrefix(name, known+"(") }) {
				continue
			}
			if _, err := within(t.Context(), tx, call); !isRefused(err) {
				t.Errorf("%s: %v, want 42501", call, err)
			}
			refusals++
		}
		for _, statement := range []string{"SET ROLE palimpsest_worker", "SET SESSION AUTHORIZATION palimpsest_worker", "GRANT palimpsest_worker TO palimpsest_app"} {
			if _, err := within(t.Context(), tx, statement); !isRefused(err) {
				t.Errorf("%s: %v, want 42501", statement, err)
			}
		}
	})
	if refusals == 0 || len(calls) < 8 {
		t.Errorf("%d functions, %d refusals: the test does not see the schema", len(calls), refusals)
	}
	if operated, err := b.Operators.OperatedWorkspaces(t.Context(), b.user.ID, tenants.OperatedQuery{Limit: 10}); err != nil || len(operated) != 2 {
		t.Errorf("the worker login shows an operator %d workspaces (%v)", len(operated), err)
	}
}

// addOperator makes the person of the bundle an operator, as the command line does.
func (b bundle) addOperator(t *testing.T) {
	t.Helper()
	if _, err := tenantsdb.AppointOperator(t.Context(), b.database.OwnerURL, b.user.ID); err != nil {
		t.Fatal(err)
	}
}

// The worker login sees across workspaces without any setting, but only in the tables that
// background jobs need.
func TestWorkerLoginReadsOnlyTheTablesItsWorkNeeds(t *testing.T) {
	t.Parallel()
	b := setup(t)
	fill(t, b)
	plantJobs(t, b)
	var seen []string
	tables := columns(t, b.database.Owner(t))
	maps.Copy(tables, jobTables(t, b.database.Owner(t)))
	for table := range tables {
		err := b.AsWorker(t.Context(), func(tx *gorm.DB) error {
			var count int
			err := tx.Raw("SELECT count(*) FROM " + table).Scan(&count).Error
			if count > 0 {
				seen = append(seen, table)
			}
			return err
		})
		if err != nil && !isRefused(err) {
			t.Errorf("%s: %v", table, err)
		}
	}
	slices.Sort(seen)
	want := []string{
		"account_requests", "alert_channels", "archive_unindexed", "billing_accounts", "jobs.river_job", "jobs.river_leader", "jobs.river_queue",
		"mails", "master_proof", "rollup_deltas", "second_factors", "subscription_ends", "usage_meter", "usage_meter_deltas", "workspaces",
	}
	if !slices.Equal(seen, want) {
		t.Errorf("the worker login sees rows of %v, want %v", seen, want)
	}
}

func TestBackgroundWorkFailsWithoutWorkerLogin(t *testing.T) {
	t.Parallel()
	b := setup(t)
	db, err := tenantsdb.Open(t.Context(), tenantsdb.Config{URL: b.database.AppURL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	if _, err := db.DataKeys.AllWorkspaces(t.Context()); !errors.Is(err, tenantsdb.ErrNoWorker) {
		t.Errorf("%v, want ErrNoWorker", err)
	}
}
