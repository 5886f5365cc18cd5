package localdb

import (
	"context"
	"log/slog"
	"syscall"
)

// Abandon starts the server of a directory as Start does, but without the signal
// at this program's death, and leaves it. The channel is closed when it has ended.
func Abandon(ctx context.Context, dir string) (<-chan struct{}, error) {
	place := installation{dir: dir, log: slog.New(slog.DiscardHandler)}
	if err := place.prepare(ctx); err != nil {
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
