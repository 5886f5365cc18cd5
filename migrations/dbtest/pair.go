package dbtest

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"palimpsest/migrations/localdb"
)

// Pair is a PostgreSQL server and its synchronous replica. Both end with the test.
type Pair struct {
	OwnerURL   string // names both, so that a connection goes to the one that accepts writes
	ReplicaURL string // names only the replica

	dir     string // the primary's
	primary *localdb.Cluster
	replica *localdb.Cluster
}

// NewPair starts a pair with an empty database.
func NewPair(t testing.TB) *Pair {
	t.Helper()
	const database = "palimpsest"
	dir := t.TempDir()
	p := &Pair{dir: filepath.Join(dir, "primary")}
	first, err := localdb.Start(t.Context(), localdb.Config{Dir: p.dir, Path: os.Getenv("PATH")})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(first.CreateDatabase(t.Context(), database), first.Stop()); err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(dir, "replica")
	//nolint:gosec // below the test's own directory
	if out, err := exec.CommandContext(t.Context(), "cp", "-a", p.dir, copied).CombinedOutput(); err != nil {
		t.Fatalf("copy the cluster: %v: %s", err, out)
	}
	p.primary = started(t, p.dir)
	if err := follow(filepath.Join(copied, "data"), p.primary.DSN("")); err != nil {
		t.Fatal(err)
	}
	p.replica = started(t, copied)
	onServer(t, p.primary, "ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()")

	both, err := url.Parse(p.primary.DSN(database))
	if err != nil {
		t.Fatal(err)
	}
	other, err := url.Parse(p.replica.DSN(database))
	if err != nil {
		t.Fatal(err)
	}
	both.Host += "," + other.Host
	parameters := both.Query()
	parameters.Set("target_session_attrs", "read-write")
	both.RawQuery = parameters.Encode()
	p.OwnerURL, p.ReplicaURL = both.String(), other.String()
	return p
}

// Replay makes the replica replay the primary's commits from now on, or pause.
func (p *Pair) Replay(t testing.TB, on bool) {
	t.Helper()
	statement := "SELECT pg_wal_replay_pause()"
	if on {
		statement = "SELECT pg_wal_replay_resume()"
	}
	onServer(t, p.replica, statement)
}

// StopReplica stops the replica; the primary continues alone.
func (p *Pair) StopReplica(t testing.TB) {
	t.Helper()
	onServer(t, p.primary, "ALTER SYSTEM SET synchronous_standby_names = ''", "SELECT pg_reload_conf()")
	if err := p.replica.Stop(); err != nil {
		t.Fatal(err)
	}
}

// KillPrimary ends the primary as a power failure would.
func (p *Pair) KillPrimary(t testing.TB) {
	t.Helper()
	if err := syscall.Kill(postmaster(t, filepath.Join(p.dir, "data")), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-p.primary.Done()
}

// Promote makes the replica the primary.
func (p *Pair) Promote(t testing.TB) {
	t.Helper()
	onServer(t, p.replica, "ALTER SYSTEM SET synchronous_standby_names = ''", "SELECT pg_reload_conf()", "SELECT pg_promote()")
}

func started(t testing.TB, dir string) *localdb.Cluster {
	t.Helper()
	cluster, err := localdb.Start(t.Context(), localdb.Config{Dir: dir, Path: os.Getenv("PATH")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cluster.Stop() }) // one of them may have been killed
	return cluster
}

// follow makes a data directory's cluster a replica of a server.
func follow(data, server string) error {
	settings, err := os.OpenFile(filepath.Join(data, "postgresql.auto.conf"), os.O_APPEND|os.O_WRONLY, 0) //nolint:gosec // below the test's own directory
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(settings, "primary_conninfo = '%s'\n", server)
	return errors.Join(err, settings.Close(), os.WriteFile(filepath.Join(data, "standby.signal"), nil, 0o600))
}

func onServer(t testing.TB, cluster *localdb.Cluster, statements ...string) {
	t.Helper()
	connection, err := pgx.Connect(t.Context(), cluster.DSN("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = connection.Close(context.WithoutCancel(t.Context())) }()
	for _, statement := range statements {
		if _, err := connection.Exec(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}
