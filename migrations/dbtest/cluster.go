package dbtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"palimpsest/migrations"
	"palimpsest/migrations/localdb"
)

const (
	template = "migrated" // the template database of the others
	prefix   = "palimpsest-dbtest-"
	maxAge   = time.Hour // no test program runs longer
)

// Variable is the environment variable with the owner's URL of a running cluster that all test programs of
// one run share. Serve returns its value. Without it each test program starts its own.
const Variable = "PALIMPSEST_TEST_DATABASE"

// cluster is a PostgreSQL cluster that is found or started at its first use.
type cluster struct {
	mu     sync.Mutex
	failed error
	url    string // of the owner, to the database postgres
	dir    string
	server *localdb.Cluster // nil if the run shares a cluster
	admin  *pgxpool.Pool
	count  int      // databases created
	kept   []string // databases of templates
}

// create returns a copy of a database; it is dropped when the test ends.
func create(t testing.TB, source string) *Database {
	t.Helper()
	database := shared.copy(t, source)
	t.Cleanup(func() {
		if err := shared.drop(database.Name); err != nil {
			t.Errorf("drop test database: %v", err)
		}
	})
	return database
}

// copy returns a permanent copy of a database.
func (c *cluster) copy(t testing.TB, source string) *Database {
	t.Helper()
	name, err := c.reserve()
	if err != nil {
		t.Fatal(err)
	}
	// Copying files takes half as long as PostgreSQL's default, which logs each page.
	if _, err := c.admin.Exec(t.Context(), "CREATE DATABASE "+name+" TEMPLATE "+source+" STRATEGY file_copy"); err != nil {
		t.Fatalf("create test database: %v", err)
	}
	owner := c.dsn(t, name)
	return &Database{
		Name: name, OwnerURL: owner, AppURL: withLogin(t, owner, migrations.AppURL), WorkerURL: withLogin(t, owner, migrations.WorkerURL), test: t,
	}
}

func (c *cluster) drop(name string) error {
	_, err := c.admin.Exec(context.Background(), "DROP DATABASE "+name+" WITH (FORCE)")
	return err
}

// withLogin returns the URL of a database with one of the template's logins, because creating logins for each
// database would take longer than the copy.
func withLogin(t testing.TB, address string, of func(ownerURL string, secret []byte) (string, error)) string {
	t.Helper()
	made, err := of(shared.dsn(t, template), []byte(SecretKey))
	if err != nil {
		t.Fatal(err)
	}
	with := parsed(t, address)
	with.User = parsed(t, made).User
	return with.String()
}

// reserve starts the cluster unless it is running and returns a name for a database.
func (c *cluster) reserve() (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.admin == nil && c.failed == nil {
		c.failed = c.open(context.Background())
	}
	if c.failed != nil {
		return "", fmt.Errorf("test database: %w", c.failed)
	}
	c.count++
	return fmt.Sprintf("test_%d_%d", os.Getpid(), c.count), nil
}

// dsn returns the owner's URL of a database.
func (c *cluster) dsn(t testing.TB, database string) string {
	t.Helper()
	address := parsed(t, c.url)
	address.Path = "/" + database
	return address.String()
}

// open connects to the cluster of the run, or starts one.
func (c *cluster) open(ctx context.Context) (err error) {
	c.url = os.Getenv(Variable)
	if c.url == "" {
		if err := c.start(ctx); err != nil {
			return err
		}
	}
	c.admin, err = pgxpool.New(ctx, c.url)
	return err
}

// start starts a cluster with the template.
func (c *cluster) start(ctx context.Context) error {
	removeLeftovers()
	dir, err := os.MkdirTemp("", prefix)
	if err != nil {
		return err
	}
	c.dir = dir
	server, err := localdb.Start(ctx, localdb.Config{Dir: dir, Path: os.Getenv("PATH"), Volatile: true})
	if err != nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	c.server, c.url = server, server.DSN("postgres")
	if err := server.CreateDatabase(ctx, template); err != nil {
		return err
	}
	if _, err := migrations.Up(ctx, server.DSN(template)); err != nil {
		return err
	}
	owner, secret := server.DSN(template), []byte(SecretKey)
	return errors.Join(migrations.EnsureAppLogin(ctx, owner, secret), migrations.EnsureWorkerLogin(ctx, owner, secret))
}

// stop closes the connections, and stops and removes a cluster that this program started.
func (c *cluster) stop() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var err error
	if c.server == nil { // otherwise the databases would stay in the shared cluster
		for _, name := range c.kept {
			err = errors.Join(err, c.drop(name))
		}
	}
	if c.admin != nil {
		c.admin.Close()
	}
	if c.server == nil {
		return err
	}
	return errors.Join(c.server.Stop(), os.RemoveAll(c.dir))
}

// Serve starts a cluster for all test programs of one run. It returns the value of Variable for them, and a
// function that ends the cluster.
func Serve(ctx context.Context) (url string, stop func() error, err error) {
	c := new(cluster)
	if err := c.start(ctx); err != nil {
		return "", nil, errors.Join(err, c.stop())
	}
	return c.url, c.stop, nil
}

// removeLeftovers removes the clusters of killed test programs. Their servers ended with them.
func removeLeftovers() {
	dirs, _ := filepath.Glob(filepath.Join(os.TempDir(), prefix+"*")) // fails for a malformed pattern only
	for _, dir := range dirs {
		info, err := os.Stat(dir)
		if err == nil && time.Since(info.ModTime()) > maxAge && !inUse(filepath.Join(dir, "lock")) {
			_ = os.RemoveAll(dir) // another test program may remove it at the same time
		}
	}
}

// inUse reports whether a living program holds the lock of a cluster.
func inUse(path string) bool {
	lock, err := os.Open(path) //nolint:gosec // below the system's temporary directory
	if err != nil {
		return false
	}
	defer func() { _ = lock.Close() }()
	return syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil
}
