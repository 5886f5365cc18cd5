//go:build unix

package localdb

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// stopOrphan stops the server that a killed program left behind and waits until no process works in the data
// directory. The caller holds the installation's lock, so no living program uses the server.
func stopOrphan(ctx context.Context, place installation) error {
	pidFile := filepath.Join(place.data(), "postmaster.pid")
	left, err := exists(pidFile)
	if err != nil || !left {
		return err
	}
	began := time.Now()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	told := make(map[syscall.Signal]bool)
	for {
		running, err := servers(place.data())
		if err != nil {
			return err
		}
		if len(running) == 0 {
			break
		}
		signal := syscall.SIGINT
		if time.Since(began) > stopTimeout {
			signal = syscall.SIGQUIT
		}
		if !told[signal] {
			told[signal] = true
			if err := tell(place, running, signal); err != nil {
				return err
			}
		}
		if time.Since(began) > 2*stopTimeout {
			return fmt.Errorf("a server of an earlier start works in %s and does not end (processes %v)", place.data(), running)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("stop the server of an earlier start: %w", ctx.Err())
		case <-tick.C:
		}
	}
	// The process in the file may be another program by now, and postgres would take it for a server.
	if err := os.Remove(pidFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove %s: %w", pidFile, err)
	}
	return nil
}

// tell signals the server if it is among the processes. Its children end with it, or on their own without it.
func tell(place installation, running []int, signal syscall.Signal) error {
	pid, err := serverOf(place.data())
	if err != nil {
		return err
	}
	if !slices.Contains(running, pid) {
		return nil
	}
	place.log.Warn("stopping the database server of an earlier start", "process", pid, "signal", signal.String())
	if err := syscall.Kill(pid, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("stop the server of an earlier start (process %d): %w", pid, err)
	}
	return nil
}

// serverOf returns the process in postmaster.pid; 0 if absent.
func serverOf(data string) (int, error) {
	content, err := os.ReadFile(filepath.Join(data, "postmaster.pid")) //nolint:gosec // below the operator's own data directory
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("server of an earlier start: %w", err)
	}
	line, _, _ := strings.Cut(string(content), "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		return 0, nil //nolint:nilerr // half written: the server died before it was one
	}
	return pid, nil
}
