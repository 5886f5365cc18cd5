//go:build !windows

package terminal

import (
	"os/exec"
	"syscall"
)

// detach lets a process continue after this one and its terminal end.
func detach(command *exec.Cmd) { command.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
