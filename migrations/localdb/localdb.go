//go:build unix

package localdb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

const (
	owner          = "palimpsest"     // the cluster's superuser
	startTimeout   = 60 * time.Second // recovery after a crash takes longer than a usual start
	stopTimeout    = 30 * time.Second
	startTries     = 3 // another program may take the free port
	maxLog         = 16 << 20
	maxConnections = 200
)

// Cluster is a running PostgreSQL cluster.
type Cluster struct {
	port     int
	password string
	server   *server
	lock     *os.File
	stop     sync.Once
	stopErr  error
}

// Start starts the cluster in the config's directory, which it creates if it does not exist, and returns when
// it accepts connections. It first stops a server that a killed program left behind. It returns
// ErrNotInstalled without PostgreSQL programs and ErrInUse if a running program uses the directory.
func Start(ctx context.Context, config Config) (*Cluster, error) {
	log := cmp.Or(config.Log, slog.New(slog.DiscardHandler))
	dir, err := filepath.Abs(config.Dir)
	if err != nil {
		return nil, fmt.Errorf("database directory: %w", err)
	}
	//nolint:gosec // the server's own user passes through; what it holds is closed to others
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("create database directory: %w", err)
	}
	lock, err := takeLock(filepath.Join(dir, "lock"))
	if err != nil {
		return nil, err
	}
	cluster, err := start(ctx, installation{dir: dir, path: config.Path, volatile: config.Volatile, log: log})
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	cluster.lock = lock
	return cluster, nil
}

// Remove removes the cluster in a directory with all its data; a missing directory is not an error. It first
// stops a server that a killed program left behind. It returns ErrInUse if a running program uses the
// directory.
func Remove(ctx context.Context, dir string) error {
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	lock, err := takeLock(filepath.Join(dir, "lock"))
	if err != nil {
		return err
	}
	err = stopOrphan(ctx, installation{dir: dir, log: slog.New(slog.DiscardHandler)})
	if err == nil {
		err = os.RemoveAll(dir)
	}
	if err = errors.Join(err, releaseLock(lock)); err != nil {
		return fmt.Errorf("remove database directory: %w", err)
	}
	return nil
}

// Running returns the owner's URL of a database in the cluster that another program runs in a directory. It
// is only valid while that program runs. The error is an ErrInUse while the cluster does not accept
// connections.
func Running(dir, database string) (string, error) {
	place := installation{dir: dir}
	content, err := os.ReadFile(filepath.Join(place.data(), "postmaster.pid"))
	lines := strings.Split(string(content), "\n")
	if err != nil || len(lines) < 8 || strings.TrimSpace(lines[7]) != "ready" {
		return "", fmt.Errorf("%w, which starts or ends it: try again", ErrInUse)
	}
	port, err := strconv.Atoi(strings.TrimSpace(lines[3]))
	if err != nil {
		return "", fmt.Errorf("port of the running database: %w", err)
	}
	if place.password, err = place.readPassword(); err != nil {
		return "", err
	}
	return dsn(port, place.password, database), nil
}

// DSN returns the owner's URL of a database.
func (c *Cluster) DSN(database string) string { return dsn(c.port, c.password, database) }

// CreateDatabase creates a database unless it exists.
func (c *Cluster) CreateDatabase(ctx context.Context, name string) error {
	connection, err := pgx.Connect(ctx, c.DSN("postgres"))
	if err != nil {
		return fmt.Errorf("create database %s: %w", name, err)
	}
	defer func() { _ = connection.Close(context.WithoutCancel(ctx)) }()
	var exists bool
	if err := connection.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)", name).Scan(&exists); err != nil {
		return fmt.Errorf("look up database %s: %w", name, err)
	}
	if exists {
		return nil
	}
	const duplicateDatabase = "42P04"
	_, err = connection.Exec(ctx, "CREATE DATABASE "+pgx.Identifier{name}.Sanitize())
	var failure *pgconn.PgError
	if errors.As(err, &failure) && failure.Code == duplicateDatabase {
		return nil
	}
	if err != nil {
		return fmt.Errorf("create database %s: %w", name, err)
	}
	return nil
}

// Done is closed when the server has ended, by Stop or on its own.
func (c *Cluster) Done() <-chan struct{} { return c.server.done }

// Stop shuts down the cluster: it closes connections and writes everything to disk. It may be called twice.
func (c *Cluster) Stop() error {
	c.stop.Do(func() {
		c.stopErr = errors.Join(c.server.stop(), releaseLock(c.lock))
	})
	return c.stopErr
}

// start runs an installation after its lock was taken.
func start(ctx context.Context, place installation) (*Cluster, error) {
	place, err := place.prepare(ctx)
	if err != nil {
		return nil, err
	}
	if err := stopOrphan(ctx, place); err != nil {
		return nil, err
	}
	began := time.Now()
	var failure error
	for range startTries {
		port, err := freePort(ctx)
		if err != nil {
			return nil, err
		}
		server, err := place.serve(ctx, port)
		if err != nil {
			failure = err
			continue
		}
		place.log.InfoContext(ctx, "database started", "dir", place.dir, "port", port, "took", time.Since(began))
		return &Cluster{port: port, password: place.password, server: server}, nil
	}
	return nil, failure
}

// serve starts the server on a port and waits until it accepts connections.
func (p installation) serve(ctx context.Context, port int) (*server, error) {
	logFile, err := openLog(p.logPath())
	if err != nil {
		return nil, err
	}
	defer func() { _ = logFile.Close() }() // the server has its own descriptor
	logged, err := logFile.Seek(0, 2)
	if err != nil {
		return nil, fmt.Errorf("database log: %w", err)
	}
	command, release, err := p.command(ctx, "postgres", p.data(), p.settings(ctx, port)...)
	if err != nil {
		return nil, err
	}
	defer release()
	command.Stdout, command.Stderr = logFile, logFile
	server, err := launch(command)
	if err != nil {
		return nil, fmt.Errorf("start postgres: %w", err)
	}
	if err := p.await(ctx, server, port); err != nil {
		said := readFrom(p.logPath(), logged)
		return nil, errors.Join(fmt.Errorf("start postgres: %w; it said:\n%s", err, said), server.stop())
	}
	return server, nil
}

// await returns when the server reports in its own file that it is ready and accepts the owner's login.
func (p installation) await(ctx context.Context, server *server, port int) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !p.isReady(server.pid()) {
		select {
		case <-server.done:
			return fmt.Errorf("it ended at once: %w", server.failure())
		case <-ctx.Done():
			return fmt.Errorf("it is not ready: %w", ctx.Err())
		case <-tick.C:
		}
	}
	connection, err := pgx.Connect(ctx, dsn(port, p.password, "postgres"))
	if err != nil {
		return fmt.Errorf("first connection: %w", err)
	}
	return connection.Close(ctx)
}

// isReady reads postmaster.pid. Its first line is the server's process, its eighth the state.
func (p installation) isReady(pid int) bool {
	content, err := os.ReadFile(filepath.Join(p.data(), "postmaster.pid"))
	if err != nil {
		return false
	}
	lines := strings.Split(string(content), "\n")
	return len(lines) >= 8 && strings.TrimSpace(lines[0]) == strconv.Itoa(pid) && strings.TrimSpace(lines[7]) == "ready"
}

func dsn(port int, password, database string) string {
	address := url.URL{
		Scheme:   "postgres",
		User:     url.UserPassword(owner, password),
		Host:     net.JoinHostPort("127.0.0.1", strconv.Itoa(port)),
		Path:     database,
		RawQuery: "sslmode=disable",
	}
	return address.String()
}

func freePort(ctx context.Context) (int, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err = errors.Join(err, listener.Close()); err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	return strconv.Atoi(port)
}

// takeLock locks a file for the lifetime of this process.
func takeLock(path string) (*os.File, error) {
	lock, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600) //nolint:gosec // below the operator's own data directory
	if err != nil {
		return nil, fmt.Errorf("lock database directory: %w", err)
	}
	err = syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = ErrInUse
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), lock.Close())
	}
	return lock, nil
}

// releaseLock unlocks a file at once. Closing it alone would leave it locked while a child that is just being
// started still has its forked copy.
func releaseLock(lock *os.File) error {
	return errors.Join(syscall.Flock(int(lock.Fd()), syscall.LOCK_UN), lock.Close())
}

// openLog opens the server's log for appending. It first renames a large one.
func openLog(path string) (*os.File, error) {
	if info, err := os.Stat(path); err == nil && info.Size() > maxLog {
		if err := os.Rename(path, path+".old"); err != nil {
			return nil, fmt.Errorf("database log: %w", err)
		}
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600) //nolint:gosec // below the operator's own data directory
	if err != nil {
		return nil, fmt.Errorf("database log: %w", err)
	}
	return file, nil
}

// readFrom returns a file's content from an offset on, or "" if it cannot be read.
func readFrom(path string, offset int64) string {
	content, err := os.ReadFile(path) //nolint:gosec // below the operator's own data directory
	if err != nil || int64(len(content)) < offset {
		return ""
	}
	return strings.TrimSpace(string(content[offset:]))
}

func exists(path string) (bool, error) {
	_, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}
