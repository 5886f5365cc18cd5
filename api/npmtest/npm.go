// Package npmtest installs npm packages for tests and for the table of clients, with Debian's node and npm:
// exactly those of a package-lock.json, or the newest.
package npmtest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"time"
)

// installTime bounds one installation. All clients have 3 GB, which took ten minutes on two busy cores.
const installTime = 30 * time.Minute

// npm's input files, and the folder that it makes.
const (
	manifestFile = "package.json"
	lockFile     = "package-lock.json"
	modules      = "node_modules"
)

// Missing is the error for a program that isn't installed.
type Missing struct{ Program string }

// Error names the program and how to install it.
func (m Missing) Error() string {
	return m.Program + " is not installed: install Node.js 18 or newer with npm (on Debian and Ubuntu: deploy/setup.sh nodejs npm, which runs apt-get install nodejs npm)"
}

// Ready returns a Missing if node or npm is not there.
func Ready() error {
	for _, program := range []string{"node", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			return Missing{Program: program}
		}
	}

	return nil
}

// Install installs the packages in the package-lock.json of source into a directory, and makes the directory
// if needed. It writes that file and package.json there.
func Install(ctx context.Context, source fs.FS, directory string) error {
	if err := provide(source, directory, manifestFile, lockFile); err != nil {
		return err
	}

	return npm(ctx, directory, "ci")
}

// InstallNewest installs into a directory, which it makes if needed, the newest version of each package that
// the package.json of source depends on. Optional ones, which are for a single system, keep their versions.
func InstallNewest(ctx context.Context, source fs.FS, directory string) error {
	versions, _, err := listed(source)
	if err != nil {
		return err
	}
	if err := provide(source, directory, manifestFile); err != nil {
		return err
	}
	arguments := []string{"install", "--save-exact"}
	for _, name := range slices.Sorted(maps.Keys(versions)) {
		arguments = append(arguments, name+"@latest")
	}

	return npm(ctx, directory, arguments...)
}

// Pinned returns the versions that the package.json of source depends on, by package.
func Pinned(source fs.FS) (map[string]string, error) {
	versions, optional, err := listed(source)
	if err != nil {
		return nil, err
	}
	maps.Copy(versions, optional)

	return versions, nil
}

// listed returns the versions in the package.json of source, by package.
func listed(source fs.FS) (required, optional map[string]string, err error) {
	text, err := fs.ReadFile(source, manifestFile)
	if err != nil {
		return nil, nil, fmt.Errorf("pinned npm packages: %w", err)
	}
	about := struct {
		Dependencies map[string]string `json:"dependencies"`
		Optional     map[string]string `json:"optionalDependencies"`
	}{Dependencies: map[string]string{}}
	if err := json.Unmarshal(text, &about); err != nil {
		return nil, nil, fmt.Errorf("pinned npm packages: %w", err)
	}

	return about.Dependencies, about.Optional, nil
}

// provide copies files of source to npm's working directory.
func provide(source fs.FS, directory string, names ...string) error {
	if err := Ready(); err != nil {
		return err
	}
	if err := os.MkdirAll(directory, 0o700); err != nil {
		return fmt.Errorf("install npm packages: %w", err)
	}
	for _, name := range names {
		text, err := fs.ReadFile(source, name)
		if err != nil {
			return fmt.Errorf("install npm packages: %w", err)
		}
		if err := os.WriteFile(filepath.Join(directory, name), text, 0o600); err != nil {
			return fmt.Errorf("install npm packages: %w", err)
		}
	}

	return nil
}

// npm runs npm in a directory.
func npm(ctx context.Context, directory string, arguments ...string) error {
	limited, cancel := context.WithTimeout(ctx, installTime)
	defer cancel()
	arguments = append(arguments, "--no-audit", "--no-fund", "--no-progress", "--loglevel=error")
	command := exec.CommandContext(limited, "npm", arguments...) //nolint:gosec // names of packages from our own list
	command.Dir = directory
	if os.Getenv("HOME") == "" { // npm would keep its cache below the root
		command.Env = append(os.Environ(), "HOME="+filepath.Dir(directory))
	}
	command.WaitDelay = time.Second
	var output bytes.Buffer
	command.Stdout, command.Stderr = &output, &output
	if err := command.Run(); err != nil {
		return fmt.Errorf("npm %s: %w\n%s", arguments[0], err, output.Bytes())
	}

	return nil
}

// Cached installs as Install does, once, into a directory of the user's cache, and returns it. Several
// processes may call it at the same time.
func Cached(ctx context.Context, source fs.FS) (string, error) {
	if err := Ready(); err != nil {
		return "", err
	}
	lock, err := fs.ReadFile(source, lockFile)
	if err != nil {
		return "", fmt.Errorf("install npm packages: %w", err)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = filepath.Join(os.TempDir(), "palimpsest-"+strconv.Itoa(os.Getuid()))
	}
	sum := sha256.Sum256(lock)
	directory := filepath.Join(cache, "palimpsest", "npm-"+hex.EncodeToString(sum[:8]))
	if installed(directory) {
		return directory, nil
	}

	if err := os.MkdirAll(filepath.Dir(directory), 0o700); err != nil {
		return "", fmt.Errorf("install npm packages: %w", err)
	}
	building, err := os.MkdirTemp(filepath.Dir(directory), "installing-")
	if err != nil {
		return "", fmt.Errorf("install npm packages: %w", err)
	}
	if err := Install(ctx, source, building); err != nil {
		return "", errors.Join(err, os.RemoveAll(building))
	}
	if err := os.Rename(building, directory); err != nil {
		// Another process was faster and has installed the same packages.
		removed := os.RemoveAll(building)
		if !installed(directory) {
			return "", errors.Join(fmt.Errorf("install npm packages: %w", err), removed)
		}
		return directory, removed
	}

	return directory, nil
}

func installed(directory string) bool {
	about, err := os.Stat(filepath.Join(directory, modules))

	return err == nil && about.IsDir()
}

// Version returns the version of a package installed in a directory.
func Version(directory, name string) (string, error) {
	text, err := os.ReadFile(filepath.Join(directory, modules, filepath.FromSlash(name), manifestFile)) //nolint:gosec // what Install wrote
	if err != nil {
		return "", fmt.Errorf("version of %s: %w", name, err)
	}
	var about struct {
		Version string `json:"version"`
	}
	if err := json.Unmarshal(text, &about); err != nil {
		return "", fmt.Errorf("version of %s: %w", name, err)
	}

	return about.Version, nil
}

// Programs returns the folder of the installed packages' programs.
func Programs(directory string) string { return filepath.Join(directory, modules, ".bin") }

// Program returns the path of an installed package's program.
func Program(directory, name string) string {
	return filepath.Join(Programs(directory), name)
}
