package reporttest

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of CPU time in /proc on Linux.
const tick = 10 * time.Millisecond

// The indices of figures in /proc/PID/stat after the program's name; see proc_pid_stat(5).
const (
	statParent   = 1
	statUser     = 11 // of the process, in ticks
	statSystem   = 12
	statChildren = 13 // of its ended children: user, followed by system
	statFields   = 15
)

// stat returns the figures of a process; zeros if it does not exist.
func stat(pid int) (figures [statFields]int64) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return figures
	}
	// The program's name comes second, in parentheses, and may contain spaces.
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	for i := range min(len(fields), statFields) {
		figures[i], _ = strconv.ParseInt(fields[i], 10, 64) // the first is a letter
	}

	return figures
}

// Parent returns the parent of a process; 0 if the process does not exist.
func Parent(pid int) int { return int(stat(pid)[statParent]) }

// CPUTime returns the CPU time of a process; 0 if it does not exist.
func CPUTime(pid int) time.Duration {
	figures := stat(pid)

	return time.Duration(figures[statUser]+figures[statSystem]) * tick
}

// FamilyCPUTime returns the CPU time of a process and its children, including ended ones; 0 if it does not
// exist.
func FamilyCPUTime(parent int) time.Duration {
	if parent == 0 {
		return 0 // 0 is the parent of the system's first processes
	}
	figures := stat(parent)
	sum := CPUTime(parent) + time.Duration(figures[statChildren]+figures[statChildren+1])*tick
	processes, _ := filepath.Glob("/proc/[0-9]*") // only fails for a malformed pattern
	for _, process := range processes {
		if pid, err := strconv.Atoi(filepath.Base(process)); err == nil && Parent(pid) == parent {
			sum += CPUTime(pid)
		}
	}

	return sum
}
