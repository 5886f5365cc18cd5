package migrations_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"palimpsest/migrations"
	"palimpsest/migrations/dbtest"
)

// usedSQL lists what a program may count on: what it reads, writes, calls and is
// granted. Each line that a migration takes away could break the version before.
const usedSQL = `
	WITH tables AS (
		SELECT c.oid, c.relname AS name FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE n.nspname IN ('public', 'jobs') AND c.relkind IN ('r', 'p', 'v') AND c.relname NOT LIKE 'goose%'
	), columns AS (
		SELECT t.oid, t.name, a.attnum, a.attname, format_type(a.atttypid, a.atttypmod) AS type, a.attnotnull,
			a.atthasdef OR a.attidentity <> '' AS filled
		FROM tables t JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum > 0 AND NOT a.attisdropped
	), functions AS (
		SELECT p.oid, p.oid::regprocedure || ' returns ' || pg_get_function_result(p.oid) AS name
		FROM pg_proc p WHERE p.pronamespace = 'public'::regnamespace AND p.prorettype <> 'trigger'::regtype
	)
	SELECT name || '.' || attname || ' ' || type FROM columns
	UNION ALL SELECT name || '.' || attname || ' need not be given' FROM columns WHERE filled OR NOT attnotnull
	UNION ALL SELECT name || '.' || attname || ' may be null' FROM columns WHERE NOT attnotnull
	UNION ALL SELECT name FROM functions
	UNION ALL SELECT name || ' may be called' FROM functions WHERE has_function_privilege('palimpsest_app', oid, 'EXECUTE')
	UNION ALL SELECT name || ' ' || lower(act) || ' of ' || attname FROM columns, unnest(ARRAY['SELECT', 'INSERT', 'UPDATE']) act
		WHERE has_column_privilege('palimpsest_app', oid, attnum, act)
	UNION ALL SELECT name || ' delete' FROM tables WHERE has_table_privilege('palimpsest_app', oid, 'DELETE')
	UNION ALL SELECT name || ' one for each ' || regexp_replace(pg_get_indexdef(i.indexrelid), '^.* USING \w+ ', '')
		FROM tables t JOIN pg_index i ON i.indrelid = t.oid AND i.indisunique
	UNION ALL SELECT name || ' policy ' || p.polname || ' ' || p.polcmd::text || ' ' || coalesce(pg_get_expr(p.polqual, t.oid), '')
			|| ' ' || coalesce(pg_get_expr(p.polwithcheck, t.oid), '')
		FROM tables t JOIN pg_policy p ON p.polrelid = t.oid AND p.polpermissive`

// boundSQL lists what binds a program that writes or reads a table, each line behind its
// table's name: a line that a migration adds to a table that was there could refuse what
// the version before does. Rules of columns that the migration adds bind nobody yet.
const boundSQL = `
	WITH tables AS (
		SELECT c.oid, c.relname AS name, c.relrowsecurity, c.relforcerowsecurity FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE n.nspname IN ('public', 'jobs') AND c.relkind IN ('r', 'p') AND c.relname NOT LIKE 'goose%'
	)
	SELECT name, attname || ' must be given', ARRAY[]::text[] FROM tables t JOIN pg_attribute a ON a.attrelid = t.oid
		AND a.attnum > 0 AND NOT a.attisdropped AND a.attnotnull AND NOT a.atthasdef AND a.attidentity = ''
	UNION ALL SELECT name, pg_get_constraintdef(c.oid),
			ARRAY(SELECT a.attname::text FROM pg_attribute a WHERE a.attrelid = t.oid AND a.attnum = ANY (c.conkey))
		FROM tables t JOIN pg_constraint c ON c.conrelid = t.oid AND c.contype IN ('c', 'f', 'x')
	UNION ALL SELECT name, 'one for each ' || regexp_replace(pg_get_indexdef(i.indexrelid), '^.* USING \w+ ', ''), ARRAY[]::text[]
		FROM tables t JOIN pg_index i ON i.indrelid = t.oid AND i.indisunique
	UNION ALL SELECT name, 'policy ' || p.polname || ' ' || coalesce(pg_get_expr(p.polqual, t.oid), '') || ' '
			|| coalesce(pg_get_expr(p.polwithcheck, t.oid), ''), ARRAY[]::text[]
		FROM tables t JOIN pg_policy p ON p.polrelid = t.oid AND NOT p.polpermissive
	UNION ALL SELECT name, 'row-level security' || CASE WHEN relforcerowsecurity THEN ' forced' ELSE '' END, ARRAY[]::text[]
		FROM tables WHERE relrowsecurity
	UNION ALL SELECT name, regexp_replace(pg_get_triggerdef(g.oid), '^CREATE ', ''), ARRAY[]::text[]
		FROM tables t JOIN pg_trigger g ON g.tgrelid = t.oid AND NOT g.tgisinternal`

// promise is the schema between two migrations, as a program sees it that was written for it.
type promise struct {
	used  map[string]bool
	bound map[string]map[string][]string // by table: rules, and the columns they are of
}

// S27: while a new version comes up, the one before serves on, on the new schema. So no
// migration after the baseline takes away what that one uses, nor binds it more than it was bound, but for
// what is listed with a reason.
func TestMigrationsLeaveTheVersionBeforeWhatItUses(t *testing.T) {
	t.Parallel()
	database := dbtest.Empty(t)
	all, err := migrations.Status(t.Context(), database.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	for _, migration := range all {
		if migration.Version >= migrations.FirstStep {
			break
		}
		if did, err := migrations.UpByOne(t.Context(), database.OwnerURL); err != nil || !did {
			t.Fatalf("%s: %v (%v)", migration.File, did, err)
		}
	}
	reviewed, before := reviews(), promised(t, database.OwnerURL)
	if len(before.used) < 1000 || len(before.bound) < 50 {
		t.Fatalf("%d things to use and %d tables: the test does not see the baseline", len(before.used), len(before.bound))
	}
	for {
		did, err := migrations.UpByOne(t.Context(), database.OwnerURL)
		if err != nil {
			t.Fatal(err)
		}
		if !did {
			break
		}
		var version int64
		if err := database.Owner(t).QueryRow(t.Context(), "SELECT max(version_id) FROM goose_db_version").Scan(&version); err != nil {
			t.Fatal(err)
		}
		after := promised(t, database.OwnerURL)
		found := before.brokenBy(after)
		for _, known := range reviewed[version] {
			if known.because == "" {
				t.Errorf("migration %d: no reason is given for what is listed: %s", version, known.what)
			}
			was := len(found)
			found = slices.DeleteFunc(found, func(what string) bool { return strings.HasPrefix(what, known.what) })
			if len(found) == was {
				t.Errorf("migration %d does not do what is listed: %s", version, known.what)
			}
		}
		for _, what := range found {
			t.Errorf("migration %d may break the version before: %s", version, what)
		}
		delete(reviewed, version)
		before = after
	}
	for version := range reviewed {
		t.Errorf("there is no migration %d", version)
	}
}

// Whatever would break the version before is seen, each for what it is, and nothing else.
func TestWhatBreaksTheVersionBeforeIsSeen(t *testing.T) {
	t.Parallel()
	for statement, want := range map[string]string{
		"ALTER TABLE views DROP COLUMN saved_at":                                     "gone: views.saved_at timestamp with time zone",
		"ALTER TABLE views RENAME COLUMN saved_at TO kept_at":                        "gone: views update of saved_at",
		"ALTER TABLE views RENAME TO filters":                                        "gone: views.query text",
		"ALTER TABLE views ALTER query TYPE bytea USING query::bytea":                "gone: views.query text",
		"ALTER TABLE views ALTER saved_at DROP DEFAULT":                              "gone: views.saved_at need not be given",
		"ALTER TABLE views ADD COLUMN sort text NOT NULL":                            "new: views sort must be given",
		"ALTER TABLE logins ALTER workspace_id SET NOT NULL":                         "gone: logins.workspace_id may be null",
		"ALTER TABLE views ADD CHECK (name <> 'all')":                                "new: views CHECK ((name <> 'all'::text))",
		"ALTER TABLE views ADD UNIQUE (workspace_id, query)":                         "new: views one for each (workspace_id, query)",
		"ALTER TABLE views DROP CONSTRAINT views_workspace_id_user_id_list_name_key": "gone: views one for each (workspace_id, user_id, list, name)",
		"REVOKE DELETE ON views FROM palimpsest_app":                                 "gone: views delete",
		"DROP POLICY tenant ON views":                                                "gone: views policy tenant",
		"CREATE POLICY narrow ON views AS RESTRICTIVE USING (name <> '')":            "new: views policy narrow",
		"DROP FUNCTION words_of":                                                     "gone: words_of(text) returns SETOF text may be called",
		"ALTER TABLE views ADD COLUMN sort text CHECK (sort <> '')":                  "",
		"ALTER TABLE views ADD COLUMN sort text NOT NULL DEFAULT ''":                 "",
		"CREATE TABLE notes (id uuid PRIMARY KEY, said text NOT NULL)":               "",
		"CREATE INDEX ON views (name)":                                               "",
		"ALTER TABLE views DROP CONSTRAINT views_query_check":                        "",
	} {
		t.Run(statement, func(t *testing.T) {
			t.Parallel()
			database := dbtest.New(t)
			before := promised(t, database.OwnerURL)
			execute(t, connect(t, database.OwnerURL), statement)
			found := before.brokenBy(promised(t, database.OwnerURL))
			if want == "" && len(found) > 0 || want != "" && !slices.ContainsFunc(found, func(what string) bool { return strings.HasPrefix(what, want) }) {
				t.Errorf("found %q, want %q", found, want)
			}
		})
	}
}

// brokenBy returns what a program written for the schema would miss, or could trip over, in
// the next one.
func (p promise) brokenBy(next promise) []string {
	var broken []string
	for line := range p.used {
		if !next.used[line] {
			broken = append(broken, "gone: "+line)
		}
	}
	for table, rules := range next.bound {
		was, there := p.bound[table]
		for rule, columns := range rules {
			isNew := func(column string) bool { return !p.has(table, column) }
			if _, known := was[rule]; !there || known || len(columns) > 0 && slices.ContainsFunc(columns, isNew) {
				continue
			}
			broken = append(broken, "new: "+table+" "+rule)
		}
	}
	slices.Sort(broken)
	return broken
}

// has reports whether a table has a column.
func (p promise) has(table, column string) bool {
	for line := range p.used {
		if strings.HasPrefix(line, table+"."+column+" ") {
			return true
		}
	}
	return false
}

// promised reads the schema of a database.
func promised(t *testing.T, ownerURL string) promise {
	t.Helper()
	connection := connect(t, ownerURL)
	defer func() { _ = connection.Close(t.Context()) }()
	p := promise{used: map[string]bool{}, bound: map[string]map[string][]string{}}
	rows, err := connection.Query(t.Context(), usedSQL)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range lines {
		p.used[line] = true
	}

	if rows, err = connection.Query(t.Context(), boundSQL); err != nil {
		t.Fatal(err)
	}
	var table, rule string
	var columns []string
	_, err = pgx.ForEachRow(rows, []any{&table, &rule, &columns}, func() error {
		if p.bound[table] == nil {
			p.bound[table] = map[string][]string{}
		}
		p.bound[table][rule] = slices.Clone(columns)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// review is one kind of thing that a migration takes away or demands, by how it begins, and
// why the version before does not mind.
type review struct{ what, because string }

// reviews lists them by the number of the migration.
func reviews() map[int64][]review {
	return map[int64][]review{
		440: {{what: "new: lanes CHECK", because: "a lane that is its own parent only breaks its workspace: nothing of it is stored from then on"}},
		390: {{what: "new: exchanges TRIGGER tag_sums", because: "it appends to a table of its own, and refuses nothing"}},
	}
}
