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

// The places of figures in /proc/PID/stat behind the name of the program; see proc_pid_stat(5).
const (
	statParent   = 1
	statUser     = 11 // of the process, in ticks
	statSystem   = 12
	statChildren = 13 // of its children that have ended: user, and system behind it
	statFields   = 15
)

// stat returns the figures of a process; zeros if it is not there.
func stat(pid int) (figures [statFields]int64) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return figures
	}
	// The name of the program comes second, in parentheses, and may hold spaces.
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	for i := range min(len(fields), statFields) {
		figures[i], _ = strconv.ParseInt(fields[i], 10, 64) // the first is a letter
	}

	return figures
}

// Parent returns the process that started a process; 0 if it is not there.
func Parent(pid int) int { return int(stat(pid)[statParent]) }

// CPUTime returns the CPU time that a process has used; 0 if it is not there.
func CPUTime(pid int) time.Duration {
	figures := stat(pid)

	return time.Duration(figures[statUser]+figures[statSystem]) * tick
}

// FamilyCPUTime returns the CPU time that a process and its children have used, those that have
// ended too; 0 if it is not there.
func FamilyCPUTime(parent int) time.Duration {
	if parent == 0 {
		return 0 // of the system's first processes it is the parent
	}
	figures := stat(parent)
	sum := CPUTime(parent) + time.Duration(figures[statChildren]+figures[statChildren+1])*tick
	processes, _ := filepath.Glob("/proc/[0-9]*") // fails for a malformed pattern only
	for _, process := range processes {
		if pid, err := strconv.Atoi(filepath.Base(process)); err == nil && Parent(pid) == parent {
			sum += CPUTime(pid)
		}
	}

	return sum
}
