//go:build !windows

package terminal

import (
	"os/exec"
	"syscall"
)

// detach has a process go on when this one and its terminal end.
func detach(command *exec.Cmd) { command.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
