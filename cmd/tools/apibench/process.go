package apibench

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// postmaster returns the first process of the database server of a program with its data in a folder; see
// https://www.postgresql.org/docs/current/storage-file-layout.html.
func postmaster(data string) (pid int, err error) {
	text, err := os.ReadFile(filepath.Join(data, "postgres", "data", "postmaster.pid"))
	if err != nil {
		return 0, fmt.Errorf("process of the database: %w", err)
	}
	first, _, _ := strings.Cut(string(text), "\n")
	if pid, err = strconv.Atoi(first); err != nil {
		return 0, fmt.Errorf("process of the database: %w", err)
	}

	return pid, nil
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

// memoryWatch samples the memory of a process periodically.
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

// stop ends the watch and returns the peak.
func (w *memoryWatch) stop() int64 {
	close(w.done)
	w.wait.Wait()

	return max(w.peak, memory(w.pid))
}
