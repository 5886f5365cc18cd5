package localdb

import (
	"context"
	"log/slog"
	"os"
	"slices"
	"syscall"
)

// Abandon starts the server of a directory as Start does, but without the signal
// at this program's death, and leaves it. The channel is closed when it has ended.
func Abandon(ctx context.Context, dir string) (<-chan struct{}, error) {
	place, err := installation{dir: dir, path: os.Getenv("PATH"), log: slog.New(slog.DiscardHandler)}.prepare(ctx)
	if err != nil {
		return nil, err
	}
	if err := stopOrphan(ctx, place); err != nil {
		return nil, err
	}
	port, err := freePort(ctx)
	if err != nil {
		return nil, err
	}
	command, release, err := place.command(ctx, "postgres", place.data(), place.settings(ctx, port)...)
	if err != nil {
		return nil, err
	}
	defer release()
	command.SysProcAttr = &syscall.SysProcAttr{Credential: place.user.credential, Setpgid: true}
	server, err := launch(command)
	if err != nil {
		return nil, err
	}
	return server.done, place.await(ctx, server, port)
}

// Installed returns the directories of PostgreSQL programs that lie in a PATH or
// match one of the patterns, the newest version first.
func Installed(ctx context.Context, path string, patterns []string) []string {
	var dirs []string
	for _, programs := range installed(ctx, path, patterns) {
		dirs = append(dirs, programs.dir)
	}
	return dirs
}

// Choose returns the directory of the newest of some programs, or of those with a
// version.
func Choose(versions map[string]int, version string) (string, error) {
	var found []programs
	for dir, version := range versions {
		found = append(found, programs{dir: dir, version: version})
	}
	slices.SortFunc(found, func(a, b programs) int { return b.version - a.version })
	return choose(found, version)
}

// NotInstalled returns the error on a system with a command of PackageCommand.
func NotInstalled(command string) error { return notInstalled(command) }
