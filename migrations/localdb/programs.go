package localdb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
)

// ErrNotInstalled is the error on a machine without PostgreSQL programs.
var ErrNotInstalled = errors.New("PostgreSQL is not installed")

// oldest is the oldest supported version of PostgreSQL.
const oldest = 15

// programs is a directory with PostgreSQL programs and their major version.
type programs struct {
	dir     string
	version int
}

// choose returns the directory of the newest programs, or of those with the version of an existing cluster;
// found has the newest first.
func choose(found []programs, version string) (string, error) {
	if len(found) == 0 {
		return "", notInstalled(here())
	}
	newest := found[0]
	if version == "" && newest.version < oldest {
		return "", fmt.Errorf("version %d in %s is too old, %d is needed: %w", newest.version, newest.dir, oldest, notInstalled(here()))
	}
	if version == "" {
		return newest.dir, nil
	}
	for _, programs := range found {
		if strconv.Itoa(programs.version) == version {
			return programs.dir, nil
		}
	}
	return "", fmt.Errorf("it was made by PostgreSQL %s, but %s has version %d: install version %s beside it, or move the data with pg_upgrade",
		version, newest.dir, newest.version, version)
}

// Program returns the path of one of PostgreSQL's programs, such as pg_dump, for a server of a major version.
// It prefers the same version, otherwise the oldest newer one. path lists directories as Config.Path does.
func Program(ctx context.Context, path, name string, server int) (string, error) {
	best := programs{}
	for _, found := range installed(ctx, path, places()) {
		if found.version >= server && (best.dir == "" || found.version < best.version) {
			best = found
		}
	}
	if best.dir != "" {
		program := filepath.Join(best.dir, name)
		if _, err := os.Stat(program); err != nil {
			return "", fmt.Errorf("%s is missing beside the server's programs: %w", name, err)
		}
		return program, nil
	}
	// A machine without a server may still have the clients.
	program, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("%s of PostgreSQL %d or newer is not installed (Debian, Ubuntu: apt-get install postgresql-client): %w", name, server, err)
	}
	return program, nil
}

// places returns the directories of PostgreSQL packages outside the PATH.
func places() []string {
	return []string{
		"/usr/lib/postgresql/*/bin",
		"/usr/pgsql-*/bin",
		"/usr/libexec/postgresql*",
		"/opt/homebrew/opt/postgresql*/bin",
		"/usr/local/opt/postgresql*/bin",
		"/Applications/Postgres.app/Contents/Versions/*/bin",
	}
}

// installed returns the directories with both the server and initdb, newest version first.
func installed(ctx context.Context, path string, patterns []string) []programs {
	var found []programs
	look := func(dir string) {
		program, err := filepath.EvalSymlinks(filepath.Join(dir, "initdb"))
		if err != nil {
			return
		}
		dir = filepath.Dir(program)
		if version, err := versionOf(ctx, filepath.Join(dir, "postgres")); err == nil {
			found = append(found, programs{dir: dir, version: version})
		}
	}
	for _, dir := range filepath.SplitList(path) {
		look(dir)
	}
	for _, pattern := range patterns {
		dirs, _ := filepath.Glob(pattern) // fails for a malformed pattern only
		for _, dir := range dirs {
			look(dir)
		}
	}
	slices.SortStableFunc(found, func(a, b programs) int { return cmp.Compare(b.version, a.version) })
	return found
}

// versionOf returns a server's major version from its own output.
func versionOf(ctx context.Context, server string) (int, error) {
	said, err := exec.CommandContext(ctx, server, "--version").Output()
	if err != nil {
		return 0, fmt.Errorf("version of %s: %w", server, err)
	}
	version := regexp.MustCompile(`\) (\d+)`).FindSubmatch(said)
	if version == nil {
		return 0, fmt.Errorf("version of %s: it said %q", server, said)
	}
	return strconv.Atoi(string(version[1]))
}
