package terminal

import (
	"os/exec"
	"syscall"
)

const detachedProcess = 0x00000008

// detach has a process go on when this one and its terminal end.
func detach(command *exec.Cmd) {
	command.SysProcAttr = &syscall.SysProcAttr{HideWindow: true, CreationFlags: detachedProcess | syscall.CREATE_NEW_PROCESS_GROUP}
}
