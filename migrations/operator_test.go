package migrations_test

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"palimpsest/migrations/dbtest"
)

// The role behind the operator's functions reads the columns that they count and
// nothing that was said, called or typed: whatever a function asks for, the database
// refuses the rest.
func TestOperatorsDoorReadsNothingThatWasSaid(t *testing.T) {
	t.Parallel()
	database := dbtest.New(t)
	owner := connect(t, database.OwnerURL)
	for question, want := range map[string]string{
		`SELECT concat_ws(',', rolcanlogin, rolsuper, rolbypassrls, rolinherit, rolcreaterole, rolcreatedb)
			FROM pg_roles WHERE rolname = 'palimpsest_operator'`: "f,f,f,f,f,f",
		`SELECT count(*)::text FROM pg_auth_members WHERE 'palimpsest_operator'::regrole IN (roleid, member)`: "0",
		`SELECT string_agg(proname::text, ',' ORDER BY proname::text COLLATE "C") FROM pg_proc
			WHERE proowner = 'palimpsest_operator'::regrole AND prosecdef`: "appoint_operator,archive_waits_since,claim_operator,note_subscription_end,operator_log,operator_suspend,operator_workspaces,workspace_standing",
		`SELECT string_agg(proname::text, ',') FROM pg_proc
			WHERE proowner = 'palimpsest_operator'::regrole AND (NOT prosecdef OR NOT 'search_path=pg_catalog, pg_temp' = ANY (proconfig))`: "",
		`SELECT string_agg(concat_ws(' ', table_name, privilege_type), ',' ORDER BY table_name, privilege_type)
			FROM information_schema.role_table_grants WHERE grantee = 'palimpsest_operator'`: "operator_entries INSERT,operator_entries SELECT,operators INSERT,operators SELECT,suspensions DELETE,suspensions INSERT,suspensions SELECT",
		`SELECT string_agg(table_name || '.' || column_name, ' ' ORDER BY table_name, column_name) FROM information_schema.role_column_grants
			WHERE grantee = 'palimpsest_operator' AND privilege_type = 'SELECT' AND table_name NOT IN ('operators', 'operator_entries', 'suspensions')`: "archive_objects.created_at archive_objects.place archive_objects.size archive_objects.workspace_id " +
			"exchanges.at exchanges.workspace_id members.created_at members.role members.user_id members.workspace_id " +
			"rollups.at rollups.cache_read rollups.cache_write rollups.exchanges rollups.failures rollups.input rollups.minutes rollups.output rollups.part rollups.workspace_id " +
			"users.email users.id users.verified_at " +
			"workspaces.created_at workspaces.name workspaces.workspace_id",
	} {
		var found *string
		if err := owner.QueryRow(t.Context(), question).Scan(&found); err != nil {
			t.Fatalf("%s: %v", question, err)
		}
		if got := text(found); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", question, got, want)
		}
	}

	if _, err := owner.Exec(t.Context(), "SET ROLE palimpsest_operator"); err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{
		"SELECT bytes FROM archive_objects", "SELECT hash FROM archive_objects", "SELECT title FROM sessions", "SELECT name FROM sessions",
		"SELECT * FROM archive_entries", "SELECT * FROM archive_documents", "SELECT * FROM summaries", "SELECT * FROM epochs", "SELECT * FROM lane_inserts",
		"SELECT text FROM patterns", "SELECT report FROM exchanges", "SELECT answer FROM exchanges", "SELECT api_key_id FROM exchanges", "SELECT model FROM rollups", "SELECT cost_microusd FROM rollups",
		"SELECT hash FROM api_keys", "SELECT name FROM api_keys", "SELECT sealed FROM provider_keys", "SELECT wrapped FROM data_keys",
		"SELECT password_hash FROM users", "SELECT * FROM logins", "SELECT * FROM user_tokens", "SELECT * FROM mails", "SELECT email FROM invitations",
		"SELECT * FROM audit_entries", "SELECT question FROM cached_answers",
		"UPDATE workspaces SET name = 'x'", "DELETE FROM workspaces", "UPDATE members SET role = 'owner'", "DELETE FROM operator_entries",
		"INSERT INTO members (workspace_id, user_id, role) VALUES (gen_random_uuid(), gen_random_uuid(), 'owner')",
	} {
		if _, err := owner.Exec(t.Context(), statement); !isDenied(err) {
			t.Errorf("the operator's door may %s (%v)", statement, err)
		}
	}
	if _, err := owner.Exec(t.Context(), "SELECT workspace_id, size FROM archive_objects"); err != nil {
		t.Errorf("it may not count: %v", err)
	}
}

// The application does not make anybody an operator, suspends nothing and reads no
// operator's log but through the functions.
func TestApplicationAppointsNobody(t *testing.T) {
	t.Parallel()
	app := connect(t, dbtest.New(t).AppURL)
	for _, statement := range []string{
		"INSERT INTO operators (user_id) VALUES (gen_random_uuid())", "DELETE FROM suspensions", "UPDATE suspensions SET reason = ''",
		"INSERT INTO suspensions (workspace_id, reason) VALUES (gen_random_uuid(), '')", "DELETE FROM operator_entries",
		"SET ROLE palimpsest_operator", "GRANT palimpsest_operator TO palimpsest_app", "DROP FUNCTION operator_suspend",
		"SELECT appoint_operator(gen_random_uuid())", "SELECT note_subscription_end('cus_1', true, '')", "SELECT claim_operator()", "SELECT * FROM operator_log(1)",
		"SELECT * FROM operator_workspaces('', now(), NULL, gen_random_uuid(), 1)", "SELECT operator_suspend(gen_random_uuid(), true, '', '', gen_random_uuid())",
	} {
		if _, err := app.Exec(t.Context(), statement); !isDenied(err) {
			t.Errorf("the application may %s (%v)", statement, err)
		}
	}
}

// isDenied reports whether the database refused a statement for want of a right.
func isDenied(err error) bool {
	failure, is := errors.AsType[*pgconn.PgError](err)
	return is && failure.Code == "42501"
}

func text(value *string) string {
	if value == nil {
		return ""
	}
	return *value
}
