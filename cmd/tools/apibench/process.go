package apibench

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// tick is the unit of CPU time in /proc on Linux.
const tick = 10 * time.Millisecond

// The places of figures in /proc/PID/stat behind the name of the program; see proc_pid_stat(5).
const (
	statParent   = 1
	statUser     = 11 // of the process, in ticks
	statSystem   = 12
	statChildren = 13 // of its children that have ended: user, and system behind it
	statFields   = 15
)

// stat returns the figures of a process; nil if it is not there.
func stat(pid int) []int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil
	}
	// The name of the program comes second, in parentheses, and may hold spaces.
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	if len(fields) < statFields {
		return nil
	}
	figures := make([]int64, statFields)
	for i, field := range fields[:statFields] {
		figures[i], _ = strconv.ParseInt(field, 10, 64) // the first is a letter
	}

	return figures
}

// cpuTime returns the CPU time that a process has used; 0 for process 0.
func cpuTime(pid int) time.Duration {
	figures := stat(pid)
	if pid == 0 || figures == nil {
		return 0
	}

	return time.Duration(figures[statUser]+figures[statSystem]) * tick
}

// familyTime returns the CPU time that a process and its children have used, those that
// have ended too; 0 for process 0.
func familyTime(parent int) time.Duration {
	figures := stat(parent)
	if parent == 0 || figures == nil {
		return 0
	}
	sum := cpuTime(parent) + time.Duration(figures[statChildren]+figures[statChildren+1])*tick
	processes, _ := filepath.Glob("/proc/[0-9]*")
	for _, process := range processes {
		pid, err := strconv.Atoi(filepath.Base(process))
		if figures := stat(pid); err == nil && figures != nil && figures[statParent] == int64(parent) {
			sum += time.Duration(figures[statUser]+figures[statSystem]) * tick
		}
	}

	return sum
}

// postmaster returns the first process of the database server that keeps its data in a
// folder, at any depth; see https://www.postgresql.org/docs/current/storage-file-layout.html.
func postmaster(folder string) (pid int, err error) {
	found := fmt.Errorf("no database server in %s", folder)
	err = filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.Name() != "postmaster.pid" {
			return nil //nolint:nilerr // files come and go
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("process of the database: %w", err)
		}
		first, _, _ := strings.Cut(string(text), "\n")
		pid, found = strconv.Atoi(first)

		return fs.SkipAll
	})

	return pid, errors.Join(err, found)
}

// memory returns the resident bytes of a process; 0 for process 0.
func memory(pid int) int64 {
	if pid == 0 {
		return 0
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		value, found := strings.CutPrefix(line, "VmRSS:")
		if !found {
			continue
		}
		kilobytes, err := strconv.ParseInt(strings.Fields(value)[0], 10, 64)
		if err != nil {
			return 0
		}
		return kilobytes << 10
	}

	return 0
}

// memoryWatch looks at the memory of a process from time to time.
type memoryWatch struct {
	pid  int
	done chan struct{}
	wait sync.WaitGroup
	peak int64
}

func watchMemory(pid int) *memoryWatch {
	watch := &memoryWatch{pid: pid, done: make(chan struct{}), peak: memory(pid)}
	watch.wait.Go(func() {
		ticker := time.NewTicker(50 * time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				watch.peak = max(watch.peak, memory(pid))
			case <-watch.done:
				return
			}
		}
	})

	return watch
}

// stop ends the watch and returns the most that was seen.
func (w *memoryWatch) stop() int64 {
	close(w.done)
	w.wait.Wait()

	return max(w.peak, memory(w.pid))
}
