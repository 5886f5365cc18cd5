//go:build unix && !linux

package localdb

import (
	"context"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// attributes makes a process run as the user, without the terminal's signals.
func attributes(u user) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: u.credential, Setpgid: true}
}

// open returns a directory for a process of the user, who must have access to the directories above.
func (u user) open(dir string, _ int) (folder, error) { return folder{path: dir}, nil }

// servers returns a data directory's server, if it still runs.
func servers(data string) ([]int, error) {
	pid, err := serverOf(data)
	if err != nil || pid == 0 {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	said, err := exec.CommandContext(ctx, "ps", "-o", "command=", "-p", strconv.Itoa(pid)).Output()
	if err != nil {
		return nil, nil //nolint:nilerr // ps fails if there is no such process
	}
	command := string(said)
	if !strings.Contains(command, "postgres") || !strings.Contains(command, filepath.Clean(data)) {
		return nil, nil
	}
	return []int{pid}, nil
}
