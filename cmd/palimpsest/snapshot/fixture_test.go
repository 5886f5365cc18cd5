package snapshot_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"palimpsest/cmd/palimpsest/snapshot"
	"palimpsest/migrations/dbtest"
	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/archive/blob"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

var errPlanned = errors.New("planned failure")

// objects are the contents of the bucket by name. Two have the same size.
func objects() map[string]string {
	return map[string]string{"originals/aa/one": "the first object", "originals/bb/two": "another object!!", "evictions/three": "short"}
}

// bucket is a directory that fails when it is told to.
type bucket struct {
	archive.Bucket

	mu      sync.Mutex
	calls   map[string]int
	failing string // Put, Get or Names; "" if none
	at      int    // number of the call that fails, or of the name after which Names fails
	err     error
}

// newBucket returns a bucket that holds objects.
func newBucket(t *testing.T, held map[string]string) *bucket {
	t.Helper()
	directory, err := blob.NewDirectory(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range held {
		if err := directory.Put(t.Context(), name, []byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	return &bucket{Bucket: directory}
}

// fail has the nth call of a method from now on fail; "" ends that.
func (b *bucket) fail(method string, nth int, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls, b.failing, b.at, b.err = map[string]int{}, method, nth, err
}

func (b *bucket) called(method string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failing != method {
		return nil
	}
	if b.calls[method]++; b.calls[method] == b.at {
		return b.err
	}
	return nil
}

// Put implements archive.Bucket.
func (b *bucket) Put(ctx context.Context, name string, content []byte) error {
	if err := b.called("Put"); err != nil {
		return err
	}
	return b.Bucket.Put(ctx, name, content)
}

// Get implements archive.Bucket.
func (b *bucket) Get(ctx context.Context, name string) ([]byte, error) {
	if err := b.called("Get"); err != nil {
		return nil, err
	}
	return b.Bucket.Get(ctx, name)
}

// Names implements archive.Bucket.
func (b *bucket) Names(ctx context.Context, each func(name string) error) error {
	return b.Bucket.Names(ctx, func(name string) error {
		if err := each(name); err != nil {
			return err
		}
		return b.called("Names")
	})
}

// holds returns the contents of the bucket by name.
func (b *bucket) holds(t *testing.T) map[string]string {
	t.Helper()
	b.fail("", 0, nil)
	held := map[string]string{}
	err := b.Names(t.Context(), func(name string) error {
		content, err := b.Get(t.Context(), name)
		held[name] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return held
}

// keys are what authenticates manifests: the first made them.
func keys() [][]byte { return [][]byte{[]byte("a key"), []byte("an older key")} }

func silent(string, int64, int64) {}

// bundle is a database with a workspace, and a bucket.
type bundle struct {
	*dbtest.Database

	bucket *bucket
	above  string // where backups are made
}

func setup(t *testing.T) *bundle {
	t.Helper()
	b := &bundle{Database: dbtest.New(t), bucket: newBucket(t, objects()), above: t.TempDir()}
	if _, _, err := b.DB.Accounts.SignUp(t.Context(), "ada@example.com", "", "Northbeam"); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bundle) source() snapshot.Source {
	return snapshot.Source{OwnerURL: b.OwnerURL, Bucket: b.bucket, ManifestKey: keys()[0], SecretKey: dbtest.SecretKey}
}

// backup makes a backup and returns it with its directory.
func (b *bundle) backup(t *testing.T, name string) (string, snapshot.Manifest) {
	t.Helper()
	dir := filepath.Join(b.above, name)
	if _, err := snapshot.Make(t.Context(), b.source(), dir, silent); err != nil {
		t.Fatal(err)
	}
	manifest, err := snapshot.Read(dir, keys())
	if err != nil {
		t.Fatal(err)
	}
	return dir, manifest
}

// checked reads a backup as a restore does first.
func checked(t *testing.T, dir string) error {
	t.Helper()
	manifest, err := snapshot.Read(dir, keys())
	if err != nil {
		return err
	}
	return manifest.Check(t.Context(), dir, silent)
}

// isEmpty reports whether a database has no table.
func isEmpty(t *testing.T, address string) bool {
	t.Helper()
	connection, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = connection.Close(context.WithoutCancel(t.Context())) }()
	var tables int
	if err := connection.QueryRow(t.Context(), "SELECT count(*) FROM pg_tables WHERE schemaname NOT IN ('pg_catalog', 'information_schema')").Scan(&tables); err != nil {
		t.Fatal(err)
	}
	return tables == 0
}

func read(t *testing.T, dir, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func write(t *testing.T, dir, name, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, filepath.FromSlash(name)), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, dir, name string) {
	t.Helper()
	if err := os.Remove(filepath.Join(dir, filepath.FromSlash(name))); err != nil {
		t.Fatal(err)
	}
}
