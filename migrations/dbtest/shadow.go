package dbtest

import (
	"testing"
)

// Shadow returns an address of the database on which functions of the server are replaced by the test's: a
// definition is such as "pg_is_in_recovery() RETURNS boolean AS 'SELECT true'". They replace those of an
// earlier call with the same name.
func (d *Database) Shadow(t testing.TB, address string, definitions ...string) string {
	t.Helper()
	statements := []string{"CREATE SCHEMA IF NOT EXISTS shadow", "GRANT USAGE ON SCHEMA shadow TO PUBLIC"}
	for _, definition := range definitions {
		statements = append(statements, "CREATE OR REPLACE FUNCTION shadow."+definition+" LANGUAGE sql")
	}
	for _, statement := range statements {
		if _, err := d.Owner(t).Exec(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	with := parsed(t, address)
	parameters := with.Query()
	parameters.Set("search_path", "shadow,pg_catalog,public")
	with.RawQuery = parameters.Encode()
	return with.String()
}

// Standby returns an address of the database with its app login, on which the server reports whether it is a
// standby, how far it is behind, and its system identifier as an expression of the real system_identifier.
func (d *Database) Standby(t testing.TB, follows bool, behind, system string) string {
	t.Helper()
	recovers := "false"
	if follows {
		recovers = "true"
	}
	return d.Shadow(t, d.AppURL,
		"pg_is_in_recovery() RETURNS boolean AS 'SELECT "+recovers+"'",
		"pg_last_xact_replay_timestamp() RETURNS timestamptz AS $$ SELECT pg_catalog.clock_timestamp() - interval '"+behind+"' $$",
		"pg_control_system() RETURNS TABLE (system_identifier bigint) AS 'SELECT "+system+" FROM pg_catalog.pg_control_system()'")
}
