// Package dbtest gives each test a migrated PostgreSQL database of its own, in the
// cluster of the run (see Variable), or else in one that is started for the test program.
package dbtest

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"runtime/debug"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"

	"palimpsest/tenants/tenantsdb"
)

// SecretKey is a value of PALIMPSEST_SECRET_KEY for tests.
const SecretKey = "cGFsaW1wc2VzdCB0ZXN0IHNlY3JldCAzMiBieXRlcyE=" //nolint:gosec // opens nothing but tests' own databases

// shared is the cluster of this test program.
var shared = new(cluster)

// Database is a migrated database that belongs to one test.
type Database struct {
	Name      string
	OwnerURL  string // for migrations and for looking past row-level security
	AppURL    string // with the login that serves requests, bound by row-level security
	WorkerURL string // with the login for background jobs and operators' pages

	// DB is open with AppURL and WorkerURL; it is closed when the test ends.
	DB *tenantsdb.DB

	test  testing.TB // which it belongs to
	mu    sync.Mutex
	owner *pgxpool.Pool // nil if no one has asked yet
}

// Main runs the tests of a package, stops the cluster and what else they shared, and looks that nothing
// they started runs on: func TestMain(m *testing.M) { dbtest.Main(m) }. It does not return.
func Main(m *testing.M, stops ...func()) {
	debug.SetGCPercent(garbage)
	code := m.Run()
	for _, stop := range stops {
		stop()
	}
	err := shared.stop()
	if code == 0 { // failed tests leave things running
		http.DefaultClient.CloseIdleConnections()
		err = errors.Join(err, leaks())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "dbtest:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// garbage is how far the heap grows between collections, in percent. Many small products live at the
// same time, and at Go's 100 a fifth of the processor time goes into collections.
const garbage = 400

// leakPatience is how long goroutines may take to end on a loaded machine.
const leakPatience = 30 * time.Second

// leaks returns an error if something that tests started runs on.
func leaks() (err error) {
	for began := time.Now(); time.Since(began) < leakPatience; { // each look takes a second
		err = goleak.Find(
			// Caches have one each, which ends with them at some garbage collection.
			goleak.IgnoreAnyFunction("github.com/maypok86/otter/v2.periodicCleanUp[...]"),
			// The clock of lexers, which ends when none has run for a while.
			goleak.IgnoreAnyFunction("github.com/dlclark/regexp2/v2.runClock"),
		)
		if err == nil {
			break
		}
	}
	return err
}

// New returns a database for the test. It fails the test where PostgreSQL is not
// installed.
func New(t testing.TB) *Database {
	t.Helper()
	return create(t, template).open(t)
}

// open opens DB until the test ends.
func (d *Database) open(t testing.TB) *Database {
	t.Helper()
	db, err := tenantsdb.Open(t.Context(), tenantsdb.Config{URL: d.AppURL, WorkerURL: d.WorkerURL})
	if err != nil {
		t.Fatal(err)
	}
	d.DB = db
	t.Cleanup(db.Close)
	return d
}

// Empty returns a database without any table, and without an open DB.
func Empty(t testing.TB) *Database {
	t.Helper()
	return create(t, "template1")
}

// Owner returns connections of the database's owner, whom row-level security does
// not bind: to plant rows and to look at all of them. They are the same each time, and
// closed when the test of New ends.
func (d *Database) Owner(t testing.TB) *pgxpool.Pool {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.owner != nil {
		return d.owner
	}
	pool, err := pgxpool.New(d.test.Context(), d.OwnerURL)
	if err != nil {
		t.Fatal(err)
	}
	d.test.Cleanup(pool.Close)
	d.owner = pool
	return pool
}
