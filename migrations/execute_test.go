package migrations_test

import (
	"testing"

	"palimpsest/migrations/dbtest"
)

// Functions that do more than their caller may are for the roles that need them, and find
// what they name in no schema of their caller's.
// S1
func TestNobodyElseCallsFunctionsThatDoMoreThanTheirCallerMay(t *testing.T) {
	t.Parallel()
	database := dbtest.New(t)
	owner := connect(t, database.OwnerURL)
	for question, want := range map[string]string{
		`SELECT string_agg(p.oid::regprocedure::text, ',') FROM pg_proc p
			WHERE p.prosecdef AND has_function_privilege('public', p.oid, 'EXECUTE')`: "",
		`SELECT string_agg(p.oid::regprocedure::text, ',') FROM pg_proc p
			WHERE p.prosecdef AND NOT coalesce(array_to_string(p.proconfig, ' ') ~ 'search_path=pg_catalog', false)`: "",
		`SELECT string_agg(p.proname::text, ',' ORDER BY p.proname::text COLLATE "C") FROM pg_proc p
			WHERE p.prosecdef AND has_function_privilege('palimpsest_app', p.oid, 'EXECUTE')`: "claim_operator,search_documents,search_within,workspace_standing",
		`SELECT string_agg(p.proname::text, ',' ORDER BY p.proname::text COLLATE "C") FROM pg_proc p
			WHERE p.prosecdef AND has_function_privilege('palimpsest_worker', p.oid, 'EXECUTE')`: "archive_waits_since,note_subscription_end,operator_log,operator_suspend,operator_workspaces,replication_lags",
		// No policy or function checks app.worker.
		`SELECT string_agg(name, ',') FROM (
			SELECT tablename || '.' || policyname AS name FROM pg_policies WHERE concat(qual, with_check) LIKE '%app.worker%'
			UNION ALL SELECT p.proname FROM pg_proc p WHERE p.prosrc LIKE '%app.worker%') asking`: "",
		`SELECT concat_ws(',', rolcanlogin, rolsuper, rolbypassrls, rolcreaterole, rolcreatedb) FROM pg_roles WHERE rolname = 'palimpsest_worker'`: "f,f,f,f,f",
		`SELECT string_agg(m.rolname::text, ',') FROM pg_roles m WHERE NOT m.rolsuper AND pg_has_role(m.oid, 'palimpsest_worker', 'MEMBER')
			AND m.rolname <> 'palimpsest_worker' AND m.rolname NOT LIKE 'palimpsest_worker_%'`: "",
	} {
		var found *string
		if err := owner.QueryRow(t.Context(), question).Scan(&found); err != nil {
			t.Fatalf("%s: %v", question, err)
		}
		if got := text(found); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", question, got, want)
		}
	}

	for _, address := range []string{database.AppURL, database.WorkerURL} {
		if _, err := connect(t, address).Exec(t.Context(), "SELECT appoint_operator(gen_random_uuid())"); !isDenied(err) {
			t.Errorf("a login that is not the owner's appoints operators (%v)", err)
		}
	}
}
