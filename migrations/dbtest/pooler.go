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

// PooledURL starts a pgbouncer in transaction mode before the database, with so many
// connections to it, and returns AppURL by way of it. It ends with the test. It fails the
// test where pgbouncer is not installed.
func (d *Database) PooledURL(t testing.TB, connections int) string {
	t.Helper()
	app, err := url.Parse(d.AppURL)
	if err != nil {
		t.Fatal(err)
	}
	dir, credential, err := poolerPlace()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	password, _ := app.User.Password()
	users := fmt.Sprintf("%q %q\n", app.User.Username(), password)
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
`, d.Name, app.Hostname(), app.Port(), port, filepath.Join(dir, "users.txt"), connections)
		if err := os.WriteFile(filepath.Join(dir, "pgbouncer.ini"), []byte(config), 0o644); err != nil { //nolint:gosec // the directory is closed to others
			t.Fatal(err)
		}
		var runs bool
		if said, runs = runPooler(t, filepath.Join(dir, "pgbouncer.ini"), credential); runs {
			app.Host = net.JoinHostPort("127.0.0.1", port)
			return app.String()
		}
	}
	t.Fatalf("pgbouncer does not start:\n%s", said)
	return ""
}

// poolerTries is how often a port is looked for: another program may take one that was
// free.
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

// poolerPlace returns a directory for a pgbouncer and whom it runs as: it refuses to be
// root.
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

// runPooler returns when a pgbouncer takes connections, or has ended, and what it said.
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
			go func() { // reads on, so that it never waits to be heard
				for lines.Scan() {
				}
			}()
			return said, true
		}
	}
	return said, false
}

// poolerProgram returns pgbouncer's name, with its directory where that is not in PATH.
func poolerProgram() string {
	if path, err := exec.LookPath("pgbouncer"); err == nil {
		return path
	}
	return "/usr/sbin/pgbouncer"
}
