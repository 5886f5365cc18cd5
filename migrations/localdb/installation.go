//go:build unix

package localdb

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
)

// installation is a cluster's directory and its configuration.
type installation struct {
	dir      string // absolute
	path     string // directories of programs
	volatile bool
	log      *slog.Logger

	programs string // directory of the PostgreSQL programs
	user     user   // the user that runs the programs
	password string // the owner's
}

// Every file in the directory has a fixed name. initdb's output gets its name only when it is complete.
func (p installation) data() string         { return filepath.Join(p.dir, "data") }
func (p installation) unfinished() string   { return filepath.Join(p.dir, "data.new") }
func (p installation) passwordPath() string { return filepath.Join(p.dir, "password") }
func (p installation) logPath() string      { return filepath.Join(p.dir, "postgres.log") }

// prepare finds the programs and their user, creates the cluster if it does not exist and returns the
// completed installation.
func (p installation) prepare(ctx context.Context) (installation, error) {
	made, err := exists(p.data())
	if err != nil {
		return p, fmt.Errorf("database directory: %w", err)
	}
	var version string
	if made {
		content, err := os.ReadFile(filepath.Join(p.data(), "PG_VERSION"))
		if err != nil {
			return p, fmt.Errorf("version of the database in %s: %w", p.data(), err)
		}
		version = strings.TrimSpace(string(content))
	}
	if p.programs, err = choose(installed(ctx, p.path, places()), version); err != nil {
		return p, fmt.Errorf("database in %s: %w", p.dir, err)
	}
	if p.user, err = serverUser(); err != nil {
		return p, err
	}
	if made {
		p.password, err = p.readPassword()
		return p, err
	}
	p.password = rand.Text()
	return p, p.initialize(ctx)
}

// initialize creates the cluster.
func (p installation) initialize(ctx context.Context) error {
	if err := os.RemoveAll(p.unfinished()); err != nil {
		return fmt.Errorf("clear an unfinished database: %w", err)
	}
	if err := os.Mkdir(p.unfinished(), 0o700); err != nil {
		return fmt.Errorf("create database: %w", err)
	}
	if err := replaceFile(p.passwordPath(), p.password+"\n"); err != nil {
		return fmt.Errorf("write the database's password: %w", err)
	}
	given := filepath.Join(p.unfinished()+".password", "owner")
	err := errors.Join(p.handOver(given), p.user.own(p.unfinished()))
	if err == nil {
		err = p.initdb(ctx, given)
	}
	if err := errors.Join(err, os.RemoveAll(filepath.Dir(given))); err != nil {
		return err
	}
	if err := os.Rename(p.unfinished(), p.data()); err != nil {
		return fmt.Errorf("create database: %w", err)
	}
	return nil
}

// handOver writes the password into a file that only the server's user can read.
func (p installation) handOver(path string) error {
	folder := filepath.Dir(path)
	if err := os.RemoveAll(folder); err != nil {
		return fmt.Errorf("hand over the database's password: %w", err)
	}
	if err := os.Mkdir(folder, 0o700); err != nil {
		return fmt.Errorf("hand over the database's password: %w", err)
	}
	if err := os.WriteFile(path, []byte(p.password+"\n"), 0o600); err != nil {
		return fmt.Errorf("hand over the database's password: %w", err)
	}
	return errors.Join(p.user.own(folder), p.user.own(path))
}

func (p installation) initdb(ctx context.Context, passwordFile string) error {
	folder, err := p.user.open(filepath.Dir(passwordFile), firstDescriptor+1)
	if err != nil {
		return err
	}
	defer folder.close()
	arguments := []string{
		"--username=" + owner, "--auth=scram-sha-256", "--pwfile=" + filepath.Join(folder.path, filepath.Base(passwordFile)),
		"--encoding=UTF8", "--locale=" + locale(), "--no-instructions",
	}
	if p.volatile {
		arguments = append(arguments, "--no-sync")
	}
	command, release, err := p.command(ctx, "initdb", p.unfinished(), arguments...)
	if err != nil {
		return err
	}
	defer release()
	command.ExtraFiles = append(command.ExtraFiles, folder.files()...)
	if said, err := run(command); err != nil {
		return fmt.Errorf("initdb as %s in %s: %w: %s", p.user.name, p.dir, err, said)
	}
	return nil
}

// command returns a PostgreSQL program for a data directory, run as the server's user. release must be called
// once the program has started.
func (p installation) command(ctx context.Context, program, data string, arguments ...string) (*exec.Cmd, func(), error) {
	folder, err := p.user.open(data, firstDescriptor)
	if err != nil {
		return nil, nil, err
	}
	// Without cancellation, because the server outlives the context of its start.
	//nolint:gosec // the path is one of the places that packages use
	command := exec.CommandContext(context.WithoutCancel(ctx), filepath.Join(p.programs, program),
		append([]string{"-D", folder.path}, arguments...)...)
	command.Dir = "/"
	command.Env = []string{"PATH=" + p.path, "LC_ALL=" + locale(), "TZ=UTC"}
	command.ExtraFiles = folder.files()
	command.SysProcAttr = attributes(p.user)
	return command, folder.close, nil
}

// settings returns the server's settings as arguments.
func (p installation) settings(ctx context.Context, port int) []string {
	settings := []string{
		"listen_addresses=127.0.0.1", "port=" + strconv.Itoa(port), "unix_socket_directories=",
		"max_connections=" + strconv.Itoa(maxConnections), "shared_buffers=128MB",
		"timezone=UTC", "log_timezone=UTC", "log_line_prefix=%m [%p] ",
		"jit=off", "random_page_cost=1.1", "checkpoint_timeout=15min",
		"ssl=off", "password_encryption=scram-sha-256",
	}
	if p.volatile {
		settings = append(settings, "fsync=off", "synchronous_commit=off", "full_page_writes=off", "max_wal_size=256MB")
	}
	if p.hasLZ4(ctx) {
		settings = append(settings, "wal_compression=lz4", "default_toast_compression=lz4")
	}
	arguments := make([]string, 0, 2*len(settings))
	for _, setting := range settings {
		arguments = append(arguments, "-c", setting)
	}
	return arguments
}

// hasLZ4 asks the server whether it was built with lz4.
func (p installation) hasLZ4(ctx context.Context) bool {
	command, release, err := p.command(ctx, "postgres", p.data(), "-c", "wal_compression=lz4", "-C", "wal_compression")
	if err != nil {
		return false
	}
	defer release()
	_, err = run(command)
	return err == nil
}

func (p installation) readPassword() (string, error) {
	content, err := os.ReadFile(p.passwordPath())
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("the password of the database in %s is missing: put the file back from a backup, or move the directory away to begin again", p.passwordPath())
	}
	if err != nil {
		return "", fmt.Errorf("read the database's password: %w", err)
	}
	return strings.TrimSpace(string(content)), nil
}

// replaceFile writes a file for its owner only, atomically.
func replaceFile(path, content string) error {
	temporary := path + ".new"
	if err := os.WriteFile(temporary, []byte(content), 0o600); err != nil {
		return err
	}
	return os.Rename(temporary, path)
}

// locale returns the locale of a cluster: UTF-8, and sorted by bytes if the system supports that.
func locale() string {
	if runtime.GOOS == "darwin" {
		return "en_US.UTF-8"
	}
	return "C.UTF-8"
}
