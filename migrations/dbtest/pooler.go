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
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	_, port, err := net.SplitHostPort(address)
	if err := errors.Join(err, listener.Close()); err != nil {
		t.Fatal(err)
	}
	dir, credential, err := poolerPlace()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	password, _ := app.User.Password()
	for name, content := range map[string]string{
		"users.txt": fmt.Sprintf("%q %q\n", app.User.Username(), password),
		"pgbouncer.ini": fmt.Sprintf(`[databases]
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
`, d.Name, app.Hostname(), app.Port(), port, filepath.Join(dir, "users.txt"), connections),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil { //nolint:gosec // the directory is closed to others
			t.Fatal(err)
		}
	}
	runPooler(t, filepath.Join(dir, "pgbouncer.ini"), credential)
	app.Host = address
	return app.String()
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

// runPooler returns when a pgbouncer takes connections.
func runPooler(t testing.TB, config string, credential *syscall.Credential) {
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
	var said []string
	for lines := bufio.NewScanner(output); lines.Scan(); {
		said = append(said, lines.Text())
		if strings.Contains(lines.Text(), "process up") {
			go func() { // reads on, so that it never waits to be heard
				for lines.Scan() {
				}
			}()
			return
		}
	}
	t.Fatalf("pgbouncer does not start:\n%s", strings.Join(said, "\n"))
}

// poolerProgram returns pgbouncer's name, with its directory where that is not in PATH.
func poolerProgram() string {
	if path, err := exec.LookPath("pgbouncer"); err == nil {
		return path
	}
	return "/usr/sbin/pgbouncer"
}
