package dbtest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// PooledURLs starts a pgbouncer in transaction mode in front of the database, with that many
// connections per login, and returns AppURL and WorkerURL through it. It ends with the test.
// It fails the test if pgbouncer is not installed.
func (d *Database) PooledURLs(t testing.TB, connections int) (app, worker string) {
	t.Helper()
	var users strings.Builder
	logins := []*url.URL{parsed(t, d.AppURL), parsed(t, d.WorkerURL)}
	for _, login := range logins {
		password, _ := login.User.Password()
		fmt.Fprintf(&users, "%q %q\n", login.User.Username(), password)
	}
	host := d.pooler(t, logins[0], users.String(), connections)
	for _, login := range logins {
		login.Host = host
	}
	return logins[0].String(), logins[1].String()
}

func parsed(t testing.TB, address string) *url.URL {
	t.Helper()
	parsed, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

// pooler starts a pgbouncer in front of a server and returns the address it listens on.
func (d *Database) pooler(t testing.TB, server *url.URL, users string, connections int) (host string) {
	t.Helper()
	dir, credential, err := poolerPlace()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.WriteFile(filepath.Join(dir, "users.txt"), []byte(users), 0o644); err != nil { //nolint:gosec // the directory is closed to others
		t.Fatal(err)
	}
	var said string
	for range poolerTries {
		port := freePort(t)
		config := fmt.Sprintf(`[databases]
%s = host=%s port=%s
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %s
unix_socket_dir =
auth_type = scram-sha-256
auth_file = %s
pool_mode = transaction
default_pool_size = %d
max_client_conn = 500
`, d.Name, server.Hostname(), server.Port(), port, filepath.Join(dir, "users.txt"), connections)
		if err := os.WriteFile(filepath.Join(dir, "pgbouncer.ini"), []byte(config), 0o644); err != nil { //nolint:gosec // the directory is closed to others
			t.Fatal(err)
		}
		var runs bool
		if said, runs = runPooler(t, filepath.Join(dir, "pgbouncer.ini"), credential); runs {
			return net.JoinHostPort("127.0.0.1", port)
		}
	}
	t.Fatalf("pgbouncer does not start:\n%s", said)
	return ""
}

// poolerTries limits the attempts to find a port, because another program may take a free one.
const poolerTries = 5

func freePort(t testing.TB) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err := errors.Join(err, listener.Close()); err != nil {
		t.Fatal(err)
	}
	return port
}

// poolerPlace returns a directory for a pgbouncer and the user that runs it, because pgbouncer refuses to run
// as root.
func poolerPlace() (dir string, credential *syscall.Credential, err error) {
	if dir, err = os.MkdirTemp("", "palimpsest-pgbouncer-"); err != nil || os.Geteuid() != 0 {
		return dir, nil, err
	}
	nobody, err := user.Lookup("nobody")
	if err != nil {
		return dir, nil, fmt.Errorf("whom pgbouncer runs as: %w", err)
	}
	id, idErr := strconv.ParseUint(nobody.Uid, 10, 32)
	group, groupErr := strconv.ParseUint(nobody.Gid, 10, 32)
	if err := errors.Join(idErr, groupErr); err != nil {
		return dir, nil, fmt.Errorf("whom pgbouncer runs as: %w", err)
	}
	return dir, &syscall.Credential{Uid: uint32(id), Gid: uint32(group)}, os.Chown(dir, int(id), int(group))
}

// runPooler waits until a pgbouncer accepts connections or has ended, and returns its output.
func runPooler(t testing.TB, config string, credential *syscall.Credential) (said string, runs bool) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	command := exec.CommandContext(ctx, poolerProgram(), config) //nolint:gosec // a program by its name, and a file of the test
	command.SysProcAttr = &syscall.SysProcAttr{Credential: credential}
	output, err := command.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatalf("start pgbouncer (install the package pgbouncer): %v", err)
	}
	t.Cleanup(func() { cancel(); _ = command.Wait() })
	for lines := bufio.NewScanner(output); lines.Scan(); {
		said += lines.Text() + "\n"
		if strings.Contains(lines.Text(), "process up") {
			go func() { // reads on, so that the program's writes never block
				for lines.Scan() {
				}
			}()
			return said, true
		}
	}
	return said, false
}

// poolerProgram returns pgbouncer's name, with its directory if it is not in PATH.
func poolerProgram() string {
	if path, err := exec.LookPath("pgbouncer"); err == nil {
		return path
	}
	return "/usr/sbin/pgbouncer"
}
