package migrations_test

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"palimpsest/cmd/palimpsest/localdb"
	"palimpsest/migrations"
	"palimpsest/migrations/dbtest"
	"palimpsest/tenants/tenantsdb"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// S27.
func TestSchemaGoesUpDownAndUpAgain(t *testing.T) {
	t.Parallel()
	database := dbtest.Empty(t)
	applied, err := migrations.Up(t.Context(), database.OwnerURL)
	if err != nil || applied == 0 {
		t.Fatalf("%d applied (%v)", applied, err)
	}
	first := catalogue(t, database.OwnerURL)

	for range applied {
		if was, err := migrations.Down(t.Context(), database.OwnerURL); err != nil || !was {
			t.Fatalf("down: %v (%v)", was, err)
		}
	}
	if was, err := migrations.Down(t.Context(), database.OwnerURL); err != nil || was {
		t.Fatalf("one more down: %v (%v)", was, err)
	}
	if left := catalogue(t, database.OwnerURL); left != "" {
		t.Fatalf("left over after down:\n%s", left)
	}

	if again, err := migrations.Up(t.Context(), database.OwnerURL); err != nil || again != applied {
		t.Fatalf("%d applied the second time (%v), %d the first", again, err, applied)
	}
	if second := catalogue(t, database.OwnerURL); second != first {
		t.Errorf("the second time up makes\n%s\nthe first made\n%s", second, first)
	}
}

// S27: each migration by itself goes up, down to what was before it, and up to the same.
func TestEachMigrationGoesDownToWhatWasBeforeIt(t *testing.T) {
	t.Parallel()
	database := dbtest.Empty(t)
	step := func(what string, do func(context.Context, string) (bool, error)) bool {
		t.Helper()
		did, err := do(t.Context(), database.OwnerURL)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		return did
	}
	before, applied := catalogue(t, database.OwnerURL), 0
	for step("up", migrations.UpByOne) {
		applied++
		after := catalogue(t, database.OwnerURL)
		step("down", migrations.Down)
		if left := catalogue(t, database.OwnerURL); left != before {
			t.Errorf("migration %d goes down to\n%s\nbefore it was\n%s", applied, left, before)
		}
		step("up again", migrations.UpByOne)
		if again := catalogue(t, database.OwnerURL); again != after {
			t.Errorf("migration %d makes\n%s\nthe first time\n%s", applied, again, after)
		}
		before = after
	}
	all, err := migrations.Status(t.Context(), database.OwnerURL)
	if err != nil || applied != len(all) {
		t.Errorf("%d migrations went up, there are %d (%v)", applied, len(all), err)
	}
}

// S27.
func TestProgramsThatStartAtOnceMigrateOnce(t *testing.T) {
	t.Parallel()
	database := dbtest.Empty(t)
	all, err := migrations.Status(t.Context(), database.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}

	var applied atomic.Int64
	var group sync.WaitGroup
	for range 3 {
		group.Go(func() {
			n, err := migrations.Up(t.Context(), database.OwnerURL)
			if err != nil {
				t.Error(err)
			}
			applied.Add(int64(n))
			if err := migrations.EnsureAppLogin(t.Context(), database.OwnerURL, []byte("secret")); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if applied.Load() != int64(len(all)) {
		t.Errorf("%d migrations applied, there are %d", applied.Load(), len(all))
	}
}

func TestStatusTellsWhatIsApplied(t *testing.T) {
	t.Parallel()
	for database, want := range map[*dbtest.Database]bool{dbtest.Empty(t): false, dbtest.New(t): true} {
		all, err := migrations.Status(t.Context(), database.OwnerURL)
		if err != nil || len(all) == 0 {
			t.Fatalf("%d migrations (%v)", len(all), err)
		}
		for i, migration := range all {
			if i > 0 && migration.Version <= all[i-1].Version || migration.AppliedAt.IsZero() == want {
				t.Errorf("migration %+v, applied should be %v", migration, want)
			}
		}
	}
}

func TestAppLoginIsBoundAndDerivedFromTheSecret(t *testing.T) {
	t.Parallel()
	database := dbtest.Empty(t)
	if _, err := migrations.Up(t.Context(), database.OwnerURL); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time finds it in order
		ensure(t, database.OwnerURL, "first secret")
	}
	first := appURL(t, database.OwnerURL, "first secret")

	var login string
	var unbound bool
	connection := connect(t, first)
	err := connection.QueryRow(t.Context(), `SELECT rolname, rolsuper OR rolbypassrls OR rolcreaterole OR rolcreatedb
		FROM pg_roles WHERE rolname = current_user`).Scan(&login, &unbound)
	if err != nil {
		t.Fatal(err)
	}
	if login != "palimpsest_app_"+database.Name || unbound {
		t.Errorf("login %s, with rights beyond its role: %v", login, unbound)
	}
	if _, err := connection.Exec(t.Context(), "SELECT count(*) FROM exchanges"); err != nil {
		t.Errorf("the login may not read: %v", err)
	}

	// Another secret, another password: the old one ends.
	ensure(t, database.OwnerURL, "second secret")
	if _, err := pgx.Connect(t.Context(), first); err == nil {
		t.Error("the password of the first secret still works")
	}
	connect(t, appURL(t, database.OwnerURL, "second secret"))
}

func TestAppURLKeepsEverythingButTheLogin(t *testing.T) {
	t.Parallel()
	app := appURL(t, "postgres://owner:pass@db.example.com:5433/main?sslmode=verify-full&user=owner&password=pass", "secret")
	parsed, err := url.Parse(app)
	if err != nil {
		t.Fatal(err)
	}
	if parsed.Host != "db.example.com:5433" || parsed.Path != "/main" || parsed.RawQuery != "sslmode=verify-full" ||
		parsed.User.Username() != "palimpsest_app_main" || strings.Contains(app, "pass@") {
		t.Errorf("URL %s", app)
	}

	long := strings.Repeat("d", 63)
	parsed, err = url.Parse(appURL(t, "postgres://owner@localhost/"+long, "secret"))
	if err != nil || len(parsed.User.Username()) > 63 {
		t.Errorf("login %s (%v) is longer than PostgreSQL allows", parsed.User.Username(), err)
	}
	for _, wrong := range []string{"host=localhost dbname=x", "postgres://a:secret@[", ":"} {
		if _, err := migrations.AppURL(wrong, []byte("secret")); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", wrong, err)
		}
	}
}

func TestOwnerWithoutRightsLearnsWhatAnAdministratorRuns(t *testing.T) {
	t.Parallel()
	database := dbtest.Empty(t)
	name := "weak_" + database.Name
	admin := connect(t, database.OwnerURL)
	execute(t, admin, "CREATE ROLE "+name+" LOGIN PASSWORD 'pass'", "ALTER DATABASE "+database.Name+" OWNER TO "+name)
	weak, err := url.Parse(database.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	weak.User = url.UserPassword(name, "pass")

	// The role is there already, as another database of the cluster has made it.
	if _, err := migrations.Up(t.Context(), weak.String()); err != nil {
		t.Fatalf("an owner who may not create roles cannot migrate: %v", err)
	}
	var missing migrations.RoleMissing
	err = migrations.EnsureAppLogin(t.Context(), weak.String(), []byte("secret"))
	if !errors.As(err, &missing) || len(missing.SQL) != 4 || missing.Login != "palimpsest_app_"+database.Name ||
		!strings.Contains(err.Error(), "DATABASE_APP_URL") || !strings.Contains(err.Error(), "DATABASE_WORKER_URL") || !strings.Contains(err.Error(), missing.SQL[3]) {
		t.Fatalf("error %v", err)
	}
	if again := migrations.EnsureWorkerLogin(t.Context(), weak.String(), []byte("secret")); again == nil || again.Error() != err.Error() {
		t.Errorf("worker login: error %v", again)
	}

	// What the administrator is told to run is enough.
	execute(t, admin, strings.ReplaceAll(missing.SQL[2], "…", "chosen"), strings.ReplaceAll(missing.SQL[3], "…", "other"))
	address := func(login, password string) string {
		with := *weak
		with.User = url.UserPassword(login, password)
		return with.String()
	}
	db, err := tenantsdb.Open(t.Context(), tenantsdb.Config{URL: address(missing.Login, "chosen"), WorkerURL: address(missing.Worker, "other")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	if has, err := db.HasWorkspaces(t.Context()); err != nil || has {
		t.Errorf("workspaces %v (%v)", has, err)
	}
	// Startup checks the master key as the owner, who is not a worker.
	if proof, err := tenantsdb.KeepMasterProof(t.Context(), weak.String(), []byte("proof")); err != nil || string(proof) != "proof" {
		t.Errorf("proof %q (%v)", proof, err)
	}
	if _, err := tenantsdb.SomeDataKeys(t.Context(), weak.String(), 1); err != nil {
		t.Error(err)
	}
}

func TestMissingRoleIsNoticedBeforeTheFirstMigration(t *testing.T) {
	t.Parallel()
	// In the shared cluster the role is there.
	cluster, err := localdb.Start(t.Context(), localdb.Config{Dir: t.TempDir(), Volatile: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Stop(); err != nil {
			t.Error(err)
		}
	})
	admin := connect(t, cluster.DSN("postgres"))
	execute(t, admin, "CREATE ROLE weak LOGIN PASSWORD 'pass'", "CREATE DATABASE main OWNER weak")
	weak, err := url.Parse(cluster.DSN("main"))
	if err != nil {
		t.Fatal(err)
	}
	weak.User = url.UserPassword("weak", "pass")

	var missing migrations.RoleMissing
	if _, err := migrations.Up(t.Context(), weak.String()); !errors.As(err, &missing) {
		t.Fatalf("error %v, want a RoleMissing", err)
	}
	if left := catalogue(t, cluster.DSN("main")); left != "" {
		t.Errorf("the refused migration left\n%s", left)
	}
	// The roles that earlier versions needed are not enough.
	execute(t, admin, missing.SQL[0], strings.ReplaceAll(missing.SQL[2], "…", "chosen"))
	if _, err := migrations.Up(t.Context(), weak.String()); !errors.As(err, &missing) || missing.Worker != "palimpsest_worker_main" {
		t.Fatalf("without palimpsest_worker: error %v, want a RoleMissing", err)
	}
	execute(t, admin, missing.SQL[1], strings.ReplaceAll(missing.SQL[3], "…", "chosen"))
	if _, err := migrations.Up(t.Context(), weak.String()); err != nil {
		t.Errorf("after the administrator's work: %v", err)
	}
}

// catalogue lists what a schema is made of; goose's own table is left out.
func catalogue(t *testing.T, ownerURL string) string {
	t.Helper()
	rows, err := connect(t, ownerURL).Query(t.Context(), `
		SELECT 'column ' || table_name || '.' || column_name || ' ' || data_type || ' ' || is_nullable || ' ' || coalesce(column_default, '')
			FROM information_schema.columns WHERE table_schema = 'public' AND table_name NOT LIKE 'goose%'
		UNION ALL SELECT 'index ' || indexdef FROM pg_indexes WHERE schemaname = 'public' AND tablename NOT LIKE 'goose%'
		UNION ALL SELECT 'constraint ' || conrelid::regclass || ' ' || pg_get_constraintdef(oid)
			FROM pg_constraint WHERE connamespace = 'public'::regnamespace AND conrelid::regclass::text NOT LIKE 'goose%'
		UNION ALL SELECT 'function ' || oid::regprocedure FROM pg_proc WHERE pronamespace = 'public'::regnamespace
		UNION ALL SELECT 'policy ' || tablename || ' ' || policyname || ' ' || cmd || ' ' || coalesce(qual, '') || ' ' || coalesce(with_check, '')
			FROM pg_policies WHERE schemaname = 'public'
		UNION ALL SELECT 'grant ' || table_name || ' ' || grantee || ' ' || privilege_type
			FROM information_schema.role_table_grants WHERE table_schema = 'public' AND table_name NOT LIKE 'goose%'
		ORDER BY 1`)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(lines, "\n")
}

func connect(t *testing.T, address string) *pgx.Conn {
	t.Helper()
	connection, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close(t.Context()) })
	return connection
}

func execute(t *testing.T, connection *pgx.Conn, statements ...string) {
	t.Helper()
	for _, statement := range statements {
		if _, err := connection.Exec(t.Context(), statement); err != nil {
			t.Errorf("%s: %v", statement, err)
		}
	}
}

func ensure(t *testing.T, ownerURL, secret string) {
	t.Helper()
	if err := migrations.EnsureAppLogin(t.Context(), ownerURL, []byte(secret)); err != nil {
		t.Fatal(err)
	}
}

func appURL(t *testing.T, ownerURL, secret string) string {
	t.Helper()
	app, err := migrations.AppURL(ownerURL, []byte(secret))
	if err != nil {
		t.Fatal(err)
	}
	return app
}
