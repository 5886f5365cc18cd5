package migrations_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"palimpsest/migrations/dbtest"
)

// plantDocuments puts a document with the term 4 into two workspaces.
func plantDocuments(t *testing.T, owner *pgx.Conn) (a, b uuid.UUID) {
	t.Helper()
	for _, workspace := range []*uuid.UUID{&a, &b} {
		*workspace = uuid.New()
		for _, statement := range []string{
			"INSERT INTO workspaces (workspace_id, name) VALUES ($1, 'w')",
			"INSERT INTO sessions (workspace_id, id, api_key_id, format, source, started_at, last_at, end_user, project) VALUES ($1, $1, $1, 'anthropic', 'header', now(), now(), 'u', 'p')",
			"INSERT INTO lanes (workspace_id, id, session_id, created_at, last_at) VALUES ($1, $1, $1, now(), now())",
			`INSERT INTO archive_documents (workspace_id, lane_id, first, part, after, session_id, api_key_id, at, sampled, terms)
				VALUES ($1, $1, 0, 0, 1, $1, $1, now(), 2, '{7}')`,
		} {
			if _, err := owner.Exec(t.Context(), statement, *workspace); err != nil {
				t.Fatalf("%s: %v", statement, err)
			}
		}
	}
	return a, b
}

// anywhere are the arguments of a search without a filter: keys, end user, project, session, lane, below.
func anywhere() string { return strings.Repeat("NULL, ", 5) + "0" }

// found runs a search for a workspace, whose lanes it returns; uuid.Nil sets none.
func found(t *testing.T, app *pgx.Conn, workspace uuid.UUID, before, arguments string) ([]uuid.UUID, error) {
	t.Helper()
	tx, err := app.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(t.Context()) }()
	if workspace != uuid.Nil {
		if _, err := tx.Exec(t.Context(), "SELECT set_config('app.workspace_id', $1, true)", workspace.String()); err != nil {
			t.Fatal(err)
		}
	}
	if before != "" {
		if _, err := tx.Exec(t.Context(), before); err != nil {
			t.Fatalf("%s: %v", before, err)
		}
	}
	rows, err := tx.Query(t.Context(), "SELECT lane FROM search_within('{4}', '{1}', '{f}', NULL, "+arguments+", NULL::timestamptz, NULL, 10)")
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
}

// S6: the search refuses to run for nobody.
func TestSearchWithoutAWorkspaceIsRefused(t *testing.T) {
	t.Parallel()
	database := dbtest.New(t)
	plantDocuments(t, connect(t, database.OwnerURL))
	app := connect(t, database.AppURL)

	for name, before := range map[string]string{"never set": "", "empty": "SET LOCAL app.workspace_id = ''"} {
		_, err := found(t, app, uuid.Nil, before, anywhere())
		var failure *pgconn.PgError
		if !errors.As(err, &failure) || failure.Code != "42501" {
			t.Errorf("%s: %v, want 42501", name, err)
		}
	}
	if _, err := found(t, app, uuid.Nil, "SET LOCAL app.workspace_id = 'no id'", anywhere()); err == nil {
		t.Error("a search for an unknown workspace ran")
	}
}

// S6: whatever it is asked, the search returns rows of the transaction's workspace only.
func TestSearchFindsOneWorkspaceOnly(t *testing.T) {
	t.Parallel()
	database := dbtest.New(t)
	a, b := plantDocuments(t, connect(t, database.OwnerURL))
	app := connect(t, database.AppURL)

	quoted := func(id uuid.UUID) string { return "'" + id.String() + "'" }
	arguments := func(key, session, lane string) string {
		if key != "NULL" {
			key = "ARRAY[" + key + "]::uuid[]"
		}
		return strings.Join([]string{key, "NULL, NULL", session, lane, "0"}, ", ")
	}
	const none = "NULL"
	for arguments, want := range map[string]int{
		anywhere():                                 1,
		"NULL, 'u', 'p', NULL, NULL, 0":            1,
		"NULL, 'u', NULL, NULL, NULL, 0":           1,
		"NULL, '', NULL, NULL, NULL, 0":            0,
		"NULL, NULL, 'other', NULL, NULL, 0":       0,
		arguments(quoted(a), none, none):           1,
		arguments(none, quoted(a), none):           1,
		arguments(none, none, quoted(a)):           1,
		arguments(quoted(b), none, none):           0,
		arguments(none, quoted(b), none):           0,
		arguments(none, none, quoted(b)):           0,
		arguments(quoted(b), quoted(b), quoted(b)): 0,
	} {
		lanes, err := found(t, app, a, "", arguments)
		if err != nil || len(lanes) != want || want == 1 && lanes[0] != a {
			t.Errorf("(%s) finds %v, want %d of %s (%v)", arguments, lanes, want, a, err)
		}
	}
}

// S6: what a caller puts before the search's tables, functions and operators in the
// search path is not used.
func TestSearchPathOfTheCallerDoesNotReachTheSearch(t *testing.T) {
	t.Parallel()
	database := dbtest.New(t)
	owner := connect(t, database.OwnerURL)
	a, b := plantDocuments(t, owner)
	if _, err := owner.Exec(t.Context(), "GRANT TEMPORARY ON DATABASE "+pgx.Identifier{owner.Config().Database}.Sanitize()+" TO palimpsest_app"); err != nil {
		t.Fatal(err)
	}
	app := connect(t, database.AppURL)

	for name, before := range map[string]string{
		"table": `CREATE TEMP TABLE archive_documents AS SELECT '` + b.String() + `'::uuid AS workspace_id, '` + b.String() + `'::uuid AS lane_id,
			0 AS first, 0 AS part, 1 AS after, '` + b.String() + `'::uuid AS session_id, '` + b.String() + `'::uuid AS api_key_id, now() AS at, 2::smallint AS sampled, '{7}'::bigint[] AS terms;
			CREATE TEMP TABLE sessions AS SELECT '` + a.String() + `'::uuid AS workspace_id, '` + a.String() + `'::uuid AS id, ''::text AS end_user, ''::text AS project;
			CREATE TEMP TABLE lanes AS SELECT '` + a.String() + `'::uuid AS workspace_id, '` + b.String() + `'::uuid AS id, NULL::uuid AS parent_id, 0 AS fork_at;
			SET LOCAL search_path = pg_temp, public`,
		"function": `CREATE FUNCTION pg_temp.app_workspace() RETURNS uuid LANGUAGE sql AS $$ SELECT '` + b.String() + `'::uuid $$;
			CREATE FUNCTION pg_temp.current_setting(text, boolean) RETURNS text LANGUAGE sql AS $$ SELECT '` + b.String() + `'::text $$;
			SET LOCAL search_path = pg_temp, public, pg_catalog`,
		"operator": `CREATE FUNCTION pg_temp.always(uuid, uuid) RETURNS boolean LANGUAGE sql AS $$ SELECT true $$;
			CREATE OPERATOR pg_temp.= (LEFTARG = uuid, RIGHTARG = uuid, FUNCTION = pg_temp.always);
			SET LOCAL search_path = pg_temp, public, pg_catalog`,
	} {
		for _, arguments := range []string{anywhere(), "NULL, NULL, NULL, '" + a.String() + "', NULL, 0", "NULL, 'u', 'p', NULL, NULL, 0"} {
			lanes, err := found(t, app, a, before, arguments)
			if err != nil || len(lanes) != 1 || lanes[0] != a {
				t.Errorf("%s: (%s) finds %v, want %s (%v)", name, arguments, lanes, a, err)
			}
		}
		lanes, err := found(t, app, a, before, strings.Repeat("NULL, ", 4)+"'"+b.String()+"', 0")
		if err != nil || len(lanes) != 0 {
			t.Errorf("%s: another workspace's lane gives %v (%v)", name, lanes, err)
		}
	}
}

// S6: the role that reads past a policy logs in nowhere, reads two tables, is nobody's
// group, owns one function, and only the application may call it.
func TestOnlyTheSearchReadsPastAPolicy(t *testing.T) {
	t.Parallel()
	database := dbtest.New(t)
	owner := connect(t, database.OwnerURL)
	for question, want := range map[string]string{
		`SELECT concat_ws(',', rolcanlogin, rolsuper, rolbypassrls, rolcreaterole, rolcreatedb, rolreplication, rolinherit)
			FROM pg_roles WHERE rolname = 'palimpsest_search'`: "f,f,f,f,f,f,f",
		`SELECT count(*)::text FROM pg_auth_members WHERE 'palimpsest_search'::regrole IN (roleid, member)`: "0",
		// replication_lags is the owner's, who may read the state of standbys, and reads no table.
		`SELECT string_agg(proname, ',' ORDER BY proname) FROM pg_proc WHERE prosecdef AND pronamespace = 'public'::regnamespace AND proowner <> 'palimpsest_operator'::regrole
			AND proname <> 'replication_lags'`: "search_documents,search_within",
		`SELECT string_agg(proname, ',' ORDER BY proname) FROM pg_proc WHERE proowner = 'palimpsest_search'::regrole`: "search_documents,search_within",
		`SELECT count(*)::text FROM pg_class WHERE relowner = 'palimpsest_search'::regrole`:                           "0",
		`SELECT string_agg(relname || ' ' || privilege_type, ',' ORDER BY relname) FROM pg_class, aclexplode(relacl)
			WHERE grantee = 'palimpsest_search'::regrole`: "archive_documents SELECT,lanes SELECT,sessions SELECT",
		`SELECT string_agg(DISTINCT grantee::regrole::text, ',') FROM pg_proc, aclexplode(proacl)
			WHERE proname IN ('search_documents', 'search_within') AND grantee <> proowner`: "palimpsest_app",
		`SELECT string_agg(DISTINCT array_to_string(proconfig, ';'), ',') FROM pg_proc WHERE proname IN ('search_documents', 'search_within')`: "search_path=pg_catalog, pg_temp;enable_seqscan=off;jit=off",
		`SELECT has_schema_privilege('palimpsest_search', 'public', 'CREATE')::text`:                                                           "false",
	} {
		var got *string
		if err := owner.QueryRow(t.Context(), question).Scan(&got); err != nil || got == nil || *got != want {
			t.Errorf("%s: %v (%v), want %s", question, got, err, want)
		}
	}
	app := connect(t, database.AppURL)
	for _, statement := range []string{
		"SET ROLE palimpsest_search", "ALTER FUNCTION search_documents OWNER TO palimpsest_app", "DROP FUNCTION search_documents",
		"ALTER FUNCTION search_documents RESET ALL", "GRANT palimpsest_search TO palimpsest_app",
	} {
		if _, err := app.Exec(t.Context(), statement); err == nil {
			t.Errorf("the application may %s", statement)
		}
	}
}
