package migrations_test

import (
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"palimpsest/migrations"
	"palimpsest/migrations/dbtest"
)

// A restore takes roles and the owners of functions from the program: these are the schema's.
func TestRolesAndOwnedFunctionsAreTheSchemas(t *testing.T) {
	t.Parallel()
	owner := dbtest.New(t).Owner(t)
	query := func(query string) pgx.Rows {
		rows, err := owner.Query(t.Context(), query)
		if err != nil {
			t.Fatal(err)
		}
		return rows
	}
	roles, err := pgx.CollectRows(query(`SELECT DISTINCT r.rolname::text FROM pg_shdepend d JOIN pg_roles r ON r.oid = d.refobjid JOIN pg_database b ON b.oid = d.dbid
		WHERE b.datname = current_database() AND d.refclassid = 'pg_authid'::regclass AND r.oid <> b.datdba ORDER BY 1`), pgx.RowTo[string])
	if err != nil || !slices.Equal(roles, migrations.Roles()) {
		t.Errorf("the schema needs the roles %v, and the program knows %v (%v)", roles, migrations.Roles(), err)
	}
	want, err := pgx.CollectRows(query(`SELECT p.oid::regprocedure::text, r.rolname::text, EXISTS (SELECT FROM aclexplode(p.proacl) a WHERE a.grantee = b.datdba)
		FROM pg_proc p JOIN pg_roles r ON r.oid = p.proowner JOIN pg_namespace n ON n.oid = p.pronamespace JOIN pg_database b ON b.datname = current_database()
		WHERE n.nspname NOT IN ('pg_catalog', 'information_schema') AND p.proowner <> b.datdba ORDER BY 1`), pgx.RowToStructByPos[migrations.OwnedFunction])
	if err != nil || len(want) == 0 {
		t.Fatalf("%v (%v)", want, err)
	}
	err = pgx.BeginFunc(t.Context(), owner, func(tx pgx.Tx) error {
		functions, err := migrations.OwnedFunctions(t.Context(), tx)
		if !slices.Equal(functions, want) {
			t.Errorf("the program knows %v, and the schema has %v", functions, want)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
