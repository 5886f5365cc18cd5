package apibench

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

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
