// Package dbtest gives each test its own migrated PostgreSQL database, in the cluster of the run (see
// Variable) or else in one that it starts for the test program.
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
	OwnerURL  string // for migrations and for queries without row-level security
	AppURL    string // with the login that serves requests, under row-level security
	WorkerURL string // with the login for background jobs and operators' pages

	// DB uses AppURL and WorkerURL; it is closed when the test ends.
	DB *tenantsdb.DB

	test  testing.TB // the owning test
	mu    sync.Mutex
	owner *pgxpool.Pool // nil before the first use
}

// Main runs the tests of a package, stops the cluster and their other shared resources, and checks that no
// goroutine is left: func TestMain(m *testing.M) { dbtest.Main(m) }. It does not return.
func Main(m *testing.M, stops ...func()) {
	debug.SetGCPercent(garbage)
	code := m.Run()
	for _, stop := range stops {
		stop()
	}
	err := shared.stop()
	if code == 0 { // failed tests leave goroutines
		http.DefaultClient.CloseIdleConnections()
		err = errors.Join(err, leaks())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "dbtest:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// garbage is how far the heap grows between collections, in percent. It is high because many small products
// live at the same time, and at Go's default of 100 collections take a fifth of the processor time.
const garbage = 400

// leakPatience limits how long goroutines may take to end on a loaded machine.
const leakPatience = 30 * time.Second

// leaks returns an error if a goroutine of the tests is still running.
func leaks() (err error) {
	for began := time.Now(); time.Since(began) < leakPatience; { // each check takes a second
		err = goleak.Find(
			// Caches have one each, which ends when the garbage collector frees the cache.
			goleak.IgnoreAnyFunction("github.com/maypok86/otter/v2.periodicCleanUp[...]"),
			// The clock of lexers ends after a while without use.
			goleak.IgnoreAnyFunction("github.com/dlclark/regexp2/v2.runClock"),
		)
		if err == nil {
			break
		}
	}
	return err
}

// New returns a database for the test. It fails the test if PostgreSQL is not installed.
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

// Empty returns a database without tables and without an open DB.
func Empty(t testing.TB) *Database {
	t.Helper()
	return create(t, "template1")
}

// Owner returns connections of the database's owner, who bypasses row-level security, for inserting and
// reading any rows. They are the same each time, and closed when the test of New ends.
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
