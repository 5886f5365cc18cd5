//go:build !windows

package terminal

import (
	"os"
	"os/exec"
	"syscall"
)

// detach lets a process continue after this one and its terminal end.
func detach(command *exec.Cmd) { command.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

// lockFile locks a file until it is closed, or fails if another process has locked it.
func lockFile(file *os.File) error {
	return syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}
