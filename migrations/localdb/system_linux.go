package localdb

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// attributes makes a process run as the user, without the terminal's signals, and shut down in order when
// this program dies.
func attributes(u user) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: u.credential, Setpgid: true, Pdeathsig: syscall.SIGINT}
}

// open returns a directory for a process that inherits its handle as the given descriptor. Another user may
// have no access to the directories above, such as a home directory, and does not need it through the handle.
func (u user) open(dir string, descriptor int) (folder, error) {
	if u.credential == nil {
		return folder{path: dir}, nil
	}
	handle, err := os.Open(dir) //nolint:gosec // below the operator's own data directory
	if err != nil {
		return folder{}, fmt.Errorf("open database directory: %w", err)
	}
	return folder{path: "/proc/self/fd/" + strconv.Itoa(descriptor), handle: handle}, nil
}

// servers returns the other processes that work in a data directory: a server and its children.
func servers(data string) ([]int, error) {
	wanted, err := os.Stat(data)
	if err != nil {
		return nil, fmt.Errorf("look for servers: %w", err)
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("look for servers: %w", err)
	}
	var found []int
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		// A directory that we may not see belongs to another user.
		works, err := os.Stat(filepath.Join("/proc", entry.Name(), "cwd"))
		if err != nil || !os.SameFile(works, wanted) {
			continue
		}
		// A shell may be in the directory too.
		if name, err := os.ReadFile(filepath.Join("/proc", entry.Name(), "comm")); err == nil && strings.TrimSpace(string(name)) == "postgres" {
			found = append(found, pid)
		}
	}
	return found, nil
}
