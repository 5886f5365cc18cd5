package main

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"palimpsest/api/programtest"
	"palimpsest/api/upstream/providerdouble"
	"palimpsest/migrations"
	"palimpsest/pipeline/tokens"
	"palimpsest/tenants/vault"
)

// The sizes of the disks, in megabytes. A replica's disk has room for the data it keeps for the database;
// the database's has room for all records.
const (
	replicaDisk  = 64
	databaseDisk = 2048
)

// stack is an installation with all its parts.
type stack struct {
	wanted   options
	dir      string
	double   *providerdouble.Double
	database *database
	parts    map[string]part // all but replicas
	links    map[string]*link
	disks    map[string]disk
	replicas []*replica
	logins   map[string]string // settings of the logins, through pgbouncer
	secret   string            // the master key
	account  *programtest.Account
	closers  []func()
}

// newStack starts an installation with a number of replicas and a workspace whose sessions are compacted.
func newStack(ctx context.Context, wanted options, dir string, replicas int) (*stack, error) {
	s := &stack{wanted: wanted, dir: dir, parts: map[string]part{}, links: map[string]*link{}, disks: map[string]disk{}}
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // PostgreSQL's user passes through
		return s, err
	}
	for _, name := range []string{"database", "pgbouncer", "redis", "s3", "provider"} {
		link, err := newLink()
		if err != nil {
			return s, err
		}
		s.links[name] = link
		s.closers = append(s.closers, link.close)
	}
	for _, start := range []func(context.Context) error{s.startProvider, s.startDatabase, s.startPooler, s.startRedis, s.startS3} {
		if err := start(ctx); err != nil {
			return s, err
		}
	}
	for i := range replicas {
		if err := s.addReplica(ctx, i); err != nil {
			return s, err
		}
	}
	var err error
	s.account, err = programtest.SignUp(ctx, s.replicas[0].url(), programtest.Workspace{
		Name: "chaos", Provider: "http://" + s.links["provider"].address(), Window: wanted.window,
	})
	return s, err
}

func (s *stack) close() {
	for _, one := range s.replicas {
		one.signal(syscall.SIGCONT)
		one.signal(syscall.SIGKILL)
		one.wait()
	}
	for _, part := range s.parts {
		part.signal(syscall.SIGCONT)
		if _, is := part.(*database); !is {
			part.signal(syscall.SIGKILL)
			part.wait()
		}
	}
	if s.database != nil && s.database.cluster != nil {
		_ = s.database.cluster.Stop()
	}
	for _, closer := range s.closers {
		closer()
	}
	for _, disk := range s.disks {
		disk.close()
	}
}

func (s *stack) startProvider(context.Context) error {
	counter, err := tokens.NewCounter()
	if err != nil {
		return err
	}
	s.double = providerdouble.NewHandler(providerdouble.Config{Window: s.wanted.window, Count: counter.Count, KeepBodies: 1})
	address, stop, err := s.double.Listen("127.0.0.1:0")
	if err != nil {
		return err
	}
	s.links["provider"].target.Store(address[len("http://"):])
	s.closers = append(s.closers, stop)
	return nil
}

func (s *stack) startDatabase(ctx context.Context) error {
	folder := filepath.Join(s.dir, "postgres")
	disk, err := newDisk(folder, databaseDisk)
	if err != nil {
		return err
	}
	s.disks["database"] = disk
	s.database = &database{dir: filepath.Join(folder, "cluster"), link: s.links["database"]}
	s.parts["database"] = s.database
	if err := s.database.start(ctx); err != nil {
		return err
	}
	return s.database.cluster.CreateDatabase(ctx, "chaos")
}

// owner returns the URL of the database's owner through a link, or directly if the name is empty.
func (s *stack) owner(through string) (string, error) {
	owner, err := url.Parse(s.database.cluster.DSN("chaos"))
	if err == nil && through != "" {
		owner.Host = s.links[through].address()
	}
	return owner.String(), err
}

// startPooler starts pgbouncer in transaction mode for the logins of requests and jobs, which it creates
// first.
func (s *stack) startPooler(ctx context.Context) error {
	secret := make([]byte, 32)
	_, _ = rand.Read(secret) // never fails
	owner, err := s.owner("database")
	if err != nil {
		return err
	}
	if _, err := migrations.Up(ctx, owner); err != nil {
		return err
	}
	folder := filepath.Join(s.dir, "pgbouncer")
	if err := os.MkdirAll(folder, 0o755); err != nil { //nolint:gosec // pgbouncer's user passes through
		return err
	}
	safe, err := vault.New([][]byte{secret})
	if err != nil {
		return err
	}
	derived, logins := safe.Derive("database login"), map[string]string{}
	var users strings.Builder
	for setting, login := range map[string]struct {
		ensure func(context.Context, string, []byte) error
		url    func(string, []byte) (string, error)
	}{
		"DATABASE_APP_URL":    {migrations.EnsureAppLogin, migrations.AppURL},
		"DATABASE_WORKER_URL": {migrations.EnsureWorkerLogin, migrations.WorkerURL},
	} {
		address, err := login.url(owner, derived)
		if err := errors.Join(err, login.ensure(ctx, owner, derived)); err != nil {
			return err
		}
		parsed, err := url.Parse(address)
		if err != nil {
			return err
		}
		password, _ := parsed.User.Password()
		fmt.Fprintf(&users, "%q %q\n", parsed.User.Username(), password)
		parsed.Host = s.links["pgbouncer"].address()
		logins[setting] = parsed.String()
	}
	s.logins = logins
	s.secret = base64.StdEncoding.EncodeToString(secret)
	return s.runPooler(ctx, folder, users.String())
}

func (s *stack) runPooler(ctx context.Context, folder, users string) error {
	nobody, err := user.Lookup("nobody")
	if err != nil {
		return err
	}
	uid, err := strconv.ParseUint(nobody.Uid, 10, 32)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(folder, "users.txt"), []byte(users), 0o644); err != nil { //nolint:gosec // the logins of this run alone
		return err
	}
	host, port, err := net.SplitHostPort(s.links["database"].address())
	if err != nil {
		return err
	}
	return s.run(ctx, "pgbouncer", func(address string) (*exec.Cmd, error) {
		_, listen, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		config := fmt.Sprintf(`[databases]
chaos = host=%s port=%s
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %s
unix_socket_dir =
auth_type = scram-sha-256
auth_file = %s
pool_mode = transaction
default_pool_size = 20
max_client_conn = 500
server_login_retry = 1
`, host, port, listen, filepath.Join(folder, "users.txt"))
		path := filepath.Join(folder, "pgbouncer.ini")
		if err := os.WriteFile(path, []byte(config), 0o644); err != nil { //nolint:gosec // no secret is in it
			return nil, err
		}
		command := exec.Command(program("pgbouncer", "/usr/sbin/pgbouncer"), path) //nolint:gosec,noctx // a program by its name
		command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}}
		return command, nil
	})
}

// program returns a program's name, or its path if it is not in PATH.
func program(name, path string) string {
	if found, err := exec.LookPath(name); err == nil {
		return found
	}
	return path
}

func (s *stack) startRedis(ctx context.Context) error {
	return s.run(ctx, "redis", func(address string) (*exec.Cmd, error) {
		_, port, err := net.SplitHostPort(address)
		return exec.Command("redis-server", "--bind", "127.0.0.1", "--port", port, "--save", "", "--appendonly", "no", "--dir", s.dir), err //nolint:gosec,noctx // a program by its name
	})
}

func (s *stack) startS3(ctx context.Context) error {
	root, about := filepath.Join(s.dir, "s3"), filepath.Join(s.dir, "about-s3")
	if err := errors.Join(os.MkdirAll(filepath.Join(root, "originals"), 0o700), os.MkdirAll(about, 0o700)); err != nil {
		return err
	}
	return s.run(ctx, "s3", func(address string) (*exec.Cmd, error) {
		return exec.Command(filepath.Join(s.wanted.programs, "versitygw"), "--port", address, "--access", "key", "--secret", "secret", //nolint:gosec,noctx // the caller's own program
			"posix", "--sidecar", about, root), nil
	})
}

// run starts a part with a single process, and remembers it.
func (s *stack) run(ctx context.Context, name string, command func(address string) (*exec.Cmd, error)) error {
	p := &process{name: name, log: filepath.Join(s.dir, name+".log"), link: s.links[name], command: func() (*exec.Cmd, string, error) {
		address, err := free()
		if err != nil {
			return nil, "", err
		}
		made, err := command(address)
		return made, address, err
	}}
	s.parts[name] = p
	return p.start(ctx)
}

// health asks a replica whether it is ready.
func health(ctx context.Context, client *http.Client, admin string) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+admin+"/readyz", http.NoBody)
	if err != nil {
		return false
	}
	response, err := client.Do(request)
	if err != nil {
		return false
	}
	_ = response.Body.Close()
	return response.StatusCode == http.StatusOK
}
