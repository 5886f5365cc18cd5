package migrations_test

import (
	"testing"

	"github.com/jackc/pgx/v5"

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
			WHERE p.prosecdef AND has_function_privilege('palimpsest_app', p.oid, 'EXECUTE')`: "claim_operator,note_subscription_end,operator_log,operator_suspend,operator_workspaces,search_documents,workspace_standing",
	} {
		var found *string
		if err := owner.QueryRow(t.Context(), question).Scan(&found); err != nil {
			t.Fatalf("%s: %v", question, err)
		}
		if got := text(found); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", question, got, want)
		}
	}

	app := connect(t, database.AppURL)
	for _, worker := range []string{"operator", "billing", "rotation"} {
		err := pgx.BeginFunc(t.Context(), app, func(tx pgx.Tx) error {
			if _, err := tx.Exec(t.Context(), "SELECT set_config('app.worker', $1, true)", worker); err != nil {
				t.Fatal(err)
			}
			_, err := tx.Exec(t.Context(), "SELECT appoint_operator(gen_random_uuid())")
			return err
		})
		if !isDenied(err) {
			t.Errorf("as the worker %s the application appoints operators (%v)", worker, err)
		}
	}
}
