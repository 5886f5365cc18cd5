package migrations_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"palimpsest/migrations/dbtest"
)

// outside are the tables that belong to people, not to a tenant; each is bound to
// the user that a transaction works for, or to the worker that empties it.
func outside() []string {
	return []string{"users", "logins", "user_tokens", "mails", "account_requests", "operators", "operator_entries", "second_factors", "recovery_codes", "passkeys", "passkey_challenges", "device_logins", "subscription_ends", "master_proof"}
}

// table is what the catalog says of a table's isolation.
type table struct {
	Name      string
	Enabled   bool // row-level security
	Forced    bool // for the owner too
	Partition bool
	View      bool // that reads with the rights and policies of who asks
	AppOwns   bool // palimpsest_app or a member of it
	AppGrants bool // palimpsest_app may do something with it
	FirstKey  string
}

// S1: every table is forced under row-level security, and the application neither
// owns one nor reaches a partition past its parent.
func TestEveryTableIsForcedUnderRowLevelSecurity(t *testing.T) {
	t.Parallel()
	database := dbtest.New(t)
	rows, err := connect(t, database.OwnerURL).Query(t.Context(), `
		SELECT c.relname AS name, c.relrowsecurity AS enabled, c.relforcerowsecurity AS forced, c.relispartition AS partition,
			c.relkind = 'v' AND coalesce('security_invoker=true' = ANY(c.reloptions), false) AS view,
			pg_has_role(c.relowner, 'palimpsest_app', 'MEMBER') AND NOT (SELECT rolsuper FROM pg_roles WHERE oid = c.relowner) AS app_owns,
			has_table_privilege('palimpsest_app', c.oid, 'SELECT, INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER') AS app_grants,
			coalesce((SELECT a.attname FROM pg_index i JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = i.indkey[0]
				WHERE i.indrelid = c.oid AND i.indisprimary), '') AS first_key
		FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
			AND c.relname <> 'goose_db_version'`)
	if err != nil {
		t.Fatal(err)
	}
	tables, err := pgx.CollectRows(rows, pgx.RowToStructByName[table])
	if err != nil {
		t.Fatal(err)
	}
	if len(tables) < 10 {
		t.Fatalf("%d tables: the test does not see the schema", len(tables))
	}
	for _, table := range tables {
		if table.Partition {
			if table.AppGrants {
				t.Errorf("partition %s: a grant on it goes past its parent's policy", table.Name)
			}
			continue
		}
		if table.View {
			continue
		}
		if !table.Enabled || !table.Forced {
			t.Errorf("%s: row-level security enabled %v, forced %v", table.Name, table.Enabled, table.Forced)
		}
		if table.AppOwns {
			t.Errorf("%s belongs to the application", table.Name)
		}
		if table.FirstKey != "workspace_id" && !slices.Contains(outside(), table.Name) {
			t.Errorf("%s: its primary key begins with %q, not with workspace_id", table.Name, table.FirstKey)
		}
	}
}

// S1: each tenant table has one policy for all commands that binds what is read
// and what is written to the transaction's workspace; every other policy reads
// only.
func TestEveryTenantTableIsBoundToTheWorkspace(t *testing.T) {
	t.Parallel()
	database := dbtest.New(t)
	connection := connect(t, database.OwnerURL)
	bound := map[string]string{} // table → the setting its policy for all commands is bound to
	rows, err := connection.Query(t.Context(), `
		SELECT tablename, policyname, cmd, permissive, roles::text, coalesce(qual, ''), coalesce(with_check, '') FROM pg_policies WHERE schemaname = 'public'`)
	if err != nil {
		t.Fatal(err)
	}
	var name, policy, command, permissive, roles, using, check string
	searchers := 0
	worked, claimed, queued, owned := map[string]string{}, map[string]string{}, map[string]string{}, map[string]string{}
	operators := map[string]string{} // table → the command of its policy for operators
	_, err = pgx.ForEachRow(rows, []any{&name, &policy, &command, &permissive, &roles, &using, &check}, func() error {
		if name == "archive_documents" && policy == "searcher" {
			searchers++
			if command != "SELECT" || permissive != "PERMISSIVE" || roles != "{palimpsest_search}" || check != "" {
				t.Errorf("%s: policy %s for %s of %s", name, policy, command, roles)
			}
			return nil // the one that binds nothing: TestOnlyTheSearchReadsPastAPolicy
		}
		if policy == "operator" {
			operators[name] = command
			if permissive != "PERMISSIVE" || roles != "{palimpsest_operator}" {
				t.Errorf("%s: policy %s is %s for %s", name, policy, permissive, roles)
			}
			return nil // whose columns are bounded: TestOperatorsDoorReadsNothingThatWasSaid
		}
		if roles == "{palimpsest_worker}" && policy == "worker_claims" && permissive == "PERMISSIVE" && using == "true" {
			claimed[name] = command
			return nil
		}
		if roles == "{palimpsest_worker}" && policy == "worker" && permissive == "PERMISSIVE" && using == "true" {
			worked[name] = command
			return nil
		}
		if roles == "{palimpsest_app}" && policy == "queue" && permissive == "PERMISSIVE" && command == "INSERT" {
			queued[name] = check
			return nil
		}
		if policy == "owner" {
			owned[name] = command
			return nil // TestMasterKeysOfAnotherDatabaseAreFound shows that only the owner passes
		}
		if permissive != "PERMISSIVE" || roles != "{public}" {
			t.Errorf("%s: policy %s is %s for %s", name, policy, permissive, roles)
		}
		switch {
		case command == "SELECT":
			if check != "" || using == "" || using == "true" {
				t.Errorf("%s: policy %s reads %q", name, policy, using)
			}
		case command == "ALL" && using == check && bound[name] == "":
			bound[name] = using
		default:
			t.Errorf("%s: policy %s for %s, using %q, with check %q", name, policy, command, using, check)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}

	if searchers != 1 {
		t.Errorf("%d policies for the search, want one", searchers)
	}

	wantedOperators := map[string]string{
		"users": "SELECT", "workspaces": "SELECT", "members": "SELECT", "exchanges": "SELECT", "rollups": "SELECT", "archive_objects": "SELECT",
		"operators": "ALL", "suspensions": "ALL", "operator_entries": "ALL", "audit_entries": "INSERT",
	}
	if !maps.Equal(operators, wantedOperators) {
		t.Errorf("policies for operators %v, want %v", operators, wantedOperators)
	}

	wantedWork := map[string]string{
		"mails": "ALL", "account_requests": "ALL", "subscription_ends": "ALL", "master_proof": "ALL",
		"second_factors": "SELECT", "archive_unindexed": "SELECT", "usage_meter": "SELECT", "usage_meter_deltas": "SELECT", "rollup_deltas": "SELECT", "billing_accounts": "SELECT", "workspaces": "SELECT",
		"alert_channels": "SELECT",
	}
	if !maps.Equal(worked, wantedWork) {
		t.Errorf("worker policies %v, want %v", worked, wantedWork)
	}
	if wanted := map[string]string{"archive_unindexed": "UPDATE"}; !maps.Equal(claimed, wanted) {
		t.Errorf("policies of claims %v, want %v", claimed, wanted)
	}
	const ownCustomer = "(EXISTS ( SELECT\n   FROM billing_accounts b\n  WHERE ((b.workspace_id = ( SELECT app_workspace() AS app_workspace)) AND (b.customer = subscription_ends.customer))))"
	if wanted := map[string]string{"mails": "true", "account_requests": "true", "subscription_ends": ownCustomer}; !maps.Equal(queued, wanted) {
		t.Errorf("queue policies %q, want %q", queued, wanted)
	}
	if wanted := map[string]string{"master_proof": "ALL", "data_keys": "SELECT"}; !maps.Equal(owned, wanted) {
		t.Errorf("owner policies %v, want %v", owned, wanted)
	}

	const tenant = "(workspace_id = ( SELECT app_workspace() AS app_workspace))"
	wanted := map[string]string{
		"users":  "(id = ( SELECT app_user() AS app_user))",
		"logins": "(user_id = ( SELECT app_user() AS app_user))",

		"user_tokens":    "(user_id = ( SELECT app_user() AS app_user))",
		"second_factors": "(user_id = ( SELECT app_user() AS app_user))",
		"recovery_codes": "(user_id = ( SELECT app_user() AS app_user))",
		"passkeys":       "(user_id = ( SELECT app_user() AS app_user))",

		"passkey_challenges": "(user_id = ( SELECT app_user() AS app_user))",

		"device_logins": "((device_hash = ( SELECT app_token() AS app_token)) OR (code_hash = ( SELECT app_token() AS app_token)) OR (expires_at < (now() - '01:00:00'::interval)))",

		"operators":        "(user_id = ( SELECT app_user() AS app_user))",
		"operator_entries": "false",
	}
	for _, table := range names(t, connection) {
		want := tenant
		if slices.Contains(outside(), table) {
			want = wanted[table]
		}
		if bound[table] != want {
			t.Errorf("%s is bound by %q, want %q", table, bound[table], want)
		}
	}
}

// S1: the role and the login of the application have no right beyond their grants.
func TestApplicationCannotEscapeRowLevelSecurity(t *testing.T) {
	t.Parallel()
	database := dbtest.New(t)
	var powers int
	err := connect(t, database.OwnerURL).QueryRow(t.Context(), `SELECT count(*) FROM pg_roles
		WHERE (rolname = 'palimpsest_app' OR pg_has_role(oid, 'palimpsest_app', 'MEMBER') AND NOT rolsuper)
		AND (rolsuper OR rolbypassrls OR rolcreaterole OR rolcreatedb OR rolreplication)`).Scan(&powers)
	if err != nil || powers != 0 {
		t.Errorf("%d application roles have rights that row-level security does not bind (%v)", powers, err)
	}

	app := connect(t, database.AppURL)
	for _, statement := range []string{
		"ALTER TABLE exchanges DISABLE ROW LEVEL SECURITY",
		"ALTER TABLE exchanges NO FORCE ROW LEVEL SECURITY",
		"DROP POLICY tenant ON exchanges",
		"CREATE POLICY mine ON exchanges USING (true)",
		"ALTER TABLE exchanges OWNER TO palimpsest_app",
		"TRUNCATE exchanges",
		"SET ROLE palimpsest",
		"SET SESSION AUTHORIZATION palimpsest",
		"SET ROLE palimpsest_worker",
		"CREATE OR REPLACE FUNCTION app_workspace() RETURNS uuid LANGUAGE sql AS 'SELECT NULL::uuid'",
		"CREATE TABLE mine (n int)",
		"SELECT * FROM goose_db_version",
	} {
		if _, err := app.Exec(t.Context(), statement); err == nil {
			t.Errorf("the application may %s", statement)
		}
	}
}

// names returns the tables of the schema.
func names(t *testing.T, connection *pgx.Conn) []string {
	t.Helper()
	rows, err := connection.Query(t.Context(), `SELECT c.relname FROM pg_class c
		WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relname <> 'goose_db_version'`)
	if err != nil {
		t.Fatal(err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// The schema of jobs belongs to no tenant: it holds River's tables and nothing else,
// what names a lane there names nothing of what it holds, and the application may not
// change it.
func TestJobsHoldNothingOfTenants(t *testing.T) {
	t.Parallel()
	database := dbtest.New(t)
	rows, err := connect(t, database.OwnerURL).Query(t.Context(), "SELECT tablename::text FROM pg_tables WHERE schemaname = 'jobs' ORDER BY 1")
	if err != nil {
		t.Fatal(err)
	}
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	want := []string{"river_job", "river_leader", "river_migration", "river_notification", "river_queue"}
	if err != nil || !slices.Equal(tables, want) {
		t.Errorf("tables %v (%v)", tables, err)
	}
	app := connect(t, database.AppURL)
	for _, statement := range []string{
		"TRUNCATE jobs.river_job",
		"DROP TABLE jobs.river_job",
		"CREATE TABLE jobs.mine (n int)",
		"SELECT * FROM jobs.river_migration",
		"INSERT INTO jobs.river_notification (payload, topic) VALUES ('', 't')",
		"CREATE OR REPLACE FUNCTION jobs.river_job_state_in_bitmask(bitmask bit(8), state jobs.river_job_state) RETURNS boolean LANGUAGE sql AS 'SELECT true'",
	} {
		if _, err := app.Exec(t.Context(), statement); err == nil {
			t.Errorf("the application may %s", statement)
		}
	}
	if _, err := app.Exec(t.Context(), "SELECT count(*) FROM jobs.river_job"); err != nil {
		t.Errorf("the application may not use its jobs: %v", err)
	}
}
