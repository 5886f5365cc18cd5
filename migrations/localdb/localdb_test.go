package localdb_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"palimpsest/migrations/localdb"
)

// childDir makes the test program the child of a test: it starts a cluster in
// the directory that the variable names, writes a row and waits to be killed.
const childDir = "LOCALDB_TEST_CHILD"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		child(dir)
	}
	goleak.VerifyTestMain(m) // S33
}

func child(dir string) {
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	cluster, err := localdb.Start(context.Background(), localdb.Config{Dir: dir, Path: os.Getenv("PATH"), Log: log})
	if err != nil {
		fmt.Fprintln(os.Stdout, "failed", err)
		os.Exit(1)
	}
	connection, err := pgx.Connect(context.Background(), cluster.DSN("postgres"))
	if err == nil {
		_, err = connection.Exec(context.Background(), "CREATE TABLE IF NOT EXISTS kept (n serial); INSERT INTO kept DEFAULT VALUES")
	}
	fmt.Fprintln(os.Stdout, "ready", err)
	select {} // until it is killed
}

func TestStartedClusterKeepsItsRowsOverRestarts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()

	began := time.Now()
	cluster := start(t, localdb.Config{Dir: dir, Path: os.Getenv("PATH")})
	t.Logf("first start took %s", time.Since(began))
	if err := cluster.CreateDatabase(t.Context(), "app"); err != nil {
		t.Fatal(err)
	}
	if err := cluster.CreateDatabase(t.Context(), "app"); err != nil {
		t.Fatalf("create a database that is there: %v", err)
	}
	execute(t, cluster.DSN("app"), "CREATE TABLE kept (n int); INSERT INTO kept VALUES (7)")
	if err := cluster.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := cluster.Stop(); err != nil {
		t.Fatalf("second stop: %v", err)
	}

	began = time.Now()
	again := start(t, localdb.Config{Dir: dir, Path: os.Getenv("PATH")})
	t.Logf("second start took %s", time.Since(began))
	if got := query(t, again.DSN("app"), "SELECT n::text FROM kept"); got != "7" {
		t.Fatalf("row is %q, want 7", got)
	}
}

func TestClusterSurvivesAKillOfTheProgram(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()

	const kills = 3
	for range kills {
		spawn(t, dir)
	}

	cluster := start(t, localdb.Config{Dir: dir, Path: os.Getenv("PATH")})
	if got := query(t, cluster.DSN("postgres"), "SELECT count(*)::text FROM kept"); got != strconv.Itoa(kills) {
		t.Fatalf("%s rows after %d kills", got, kills)
	}
}

func TestServerWithoutItsProgramIsStopped(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	spawn(t, dir)
	// A server that did not hear of its program's end: as on systems that send no
	// signal then.
	orphan, err := localdb.Abandon(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}

	cluster := start(t, localdb.Config{Dir: dir, Path: os.Getenv("PATH")})
	if got := query(t, cluster.DSN("postgres"), "SELECT count(*)::text FROM kept"); got != "1" {
		t.Fatalf("%s rows, want 1", got)
	}
	<-orphan
}

func TestProcessIDOfAnotherProgramDoesNotStopTheStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cluster := start(t, localdb.Config{Dir: dir, Path: os.Getenv("PATH"), Volatile: true})
	if err := cluster.Stop(); err != nil {
		t.Fatal(err)
	}
	// The number is another server's by now, as after a restart of the machine.
	other := t.TempDir()
	running := start(t, localdb.Config{Dir: other, Path: os.Getenv("PATH"), Volatile: true})
	stale, err := os.ReadFile(filepath.Join(other, "data", "postmaster.pid"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "data", "postmaster.pid"), stale, 0o644); err != nil {
		t.Fatal(err)
	}

	start(t, localdb.Config{Dir: dir, Path: os.Getenv("PATH"), Volatile: true})
	query(t, running.DSN("postgres"), "SELECT 'it still runs'")
}

func TestUnfinishedInstallationIsRepeated(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "data.new", "base"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "data.new", "PG_VERSION"), []byte("15\n"), 0o600); err != nil {
		t.Fatal(err)
	}

	start(t, localdb.Config{Dir: dir, Path: os.Getenv("PATH"), Volatile: true})
}

func TestDirectoryServesOneProgramAtATime(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	start(t, localdb.Config{Dir: dir, Path: os.Getenv("PATH"), Volatile: true})

	_, err := localdb.Start(t.Context(), localdb.Config{Dir: dir, Path: os.Getenv("PATH")})
	if !errors.Is(err, localdb.ErrInUse) {
		t.Fatalf("second start: %v, want ErrInUse", err)
	}
}

func TestRunningClusterIsReachedFromAnotherProgram(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if url, err := localdb.Running(dir, "postgres"); !errors.Is(err, localdb.ErrInUse) {
		t.Errorf("where nothing runs: %q, %v", url, err)
	}
	cluster := start(t, localdb.Config{Dir: dir, Path: os.Getenv("PATH"), Volatile: true})
	if url, err := localdb.Running(dir, "postgres"); err != nil || url != cluster.DSN("postgres") {
		t.Errorf("reached at %q (%v), the program has %q", url, err, cluster.DSN("postgres"))
	}
	if err := cluster.Stop(); err != nil {
		t.Fatal(err)
	}
	if url, err := localdb.Running(dir, "postgres"); !errors.Is(err, localdb.ErrInUse) {
		t.Errorf("after its end: %q, %v", url, err)
	}
}

func TestOnlyThePasswordOpensTheCluster(t *testing.T) {
	t.Parallel()
	cluster := start(t, localdb.Config{Dir: t.TempDir(), Path: os.Getenv("PATH"), Volatile: true})
	config, err := pgx.ParseConfig(cluster.DSN("postgres"))
	if err != nil {
		t.Fatal(err)
	}

	config.Password = "guessed"
	if _, err := pgx.ConnectConfig(t.Context(), config); err == nil || !strings.Contains(err.Error(), "28P01") {
		t.Fatalf("a wrong password: %v, want 28P01", err)
	}
	if got := query(t, cluster.DSN("postgres"), "SHOW listen_addresses"); got != "127.0.0.1" {
		t.Errorf("listens on %q", got)
	}
	if got := query(t, cluster.DSN("postgres"), "SHOW unix_socket_directories"); got != "" {
		t.Errorf("listens in %q", got)
	}
	if got := query(t, cluster.DSN("postgres"), "SELECT string_agg(DISTINCT auth_method, ',') FROM pg_hba_file_rules"); got != "scram-sha-256" {
		t.Errorf("lets in by %s", got)
	}
}

func TestDurabilityIsGivenUpOnlyWhereAsked(t *testing.T) {
	t.Parallel()
	for _, volatile := range []bool{true, false} {
		cluster := start(t, localdb.Config{Dir: t.TempDir(), Path: os.Getenv("PATH"), Volatile: volatile})
		want := "on"
		if volatile {
			want = "off"
		}
		for _, setting := range []string{"fsync", "synchronous_commit", "full_page_writes"} {
			if got := query(t, cluster.DSN("postgres"), "SHOW "+setting); got != want {
				t.Errorf("volatile %v: %s is %s", volatile, setting, got)
			}
		}
	}
}

func TestLostPasswordNamesItsFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := start(t, localdb.Config{Dir: dir, Path: os.Getenv("PATH"), Volatile: true}).Stop(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "password")); err != nil {
		t.Fatal(err)
	}

	_, err := localdb.Start(t.Context(), localdb.Config{Dir: dir, Path: os.Getenv("PATH")})
	if err == nil || !strings.Contains(err.Error(), filepath.Join(dir, "password")) {
		t.Fatalf("error %v does not name the file", err)
	}
}

func TestClusterOfAnotherVersionIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "data"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "data", "PG_VERSION"), []byte("9\n"), 0o600); err != nil {
		t.Fatal(err)
	}

	_, err := localdb.Start(t.Context(), localdb.Config{Dir: dir, Path: os.Getenv("PATH")})
	if err == nil || !strings.Contains(err.Error(), "made by PostgreSQL 9") {
		t.Fatalf("error %v does not name the version", err)
	}
}

// start starts a cluster and stops it after the test.
func start(t *testing.T, config localdb.Config) *localdb.Cluster {
	t.Helper()
	cluster, err := localdb.Start(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Stop(); err != nil {
			t.Error(err)
		}
	})
	return cluster
}

// spawn runs a child on the directory and kills it once its row is written.
func spawn(t *testing.T, dir string) {
	t.Helper()
	command := exec.Command(os.Args[0])
	command.Env = append(os.Environ(), childDir+"="+dir)
	command.Stderr = os.Stderr
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	said, err := bufio.NewReader(output).ReadString('\n')
	if err != nil || strings.TrimSpace(said) != "ready <nil>" {
		t.Errorf("the child said %q (%v)", said, err)
	}
	if err := command.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = command.Wait()
}

func execute(t *testing.T, dsn, statement string) {
	t.Helper()
	connection, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close(t.Context())
	if _, err := connection.Exec(t.Context(), statement); err != nil {
		t.Fatal(err)
	}
}

func query(t *testing.T, dsn, statement string) string {
	t.Helper()
	connection, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close(t.Context())
	var value string
	if err := connection.QueryRow(t.Context(), statement).Scan(&value); err != nil {
		t.Fatal(err)
	}
	return value
}
