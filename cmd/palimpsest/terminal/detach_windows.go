package terminal

import (
	"os/exec"
	"syscall"
)

const detachedProcess = 0x00000008

// detach lets a process continue after this one and its terminal end.
func detach(command *exec.Cmd) {
	command.SysProcAttr = &syscall.SysProcAttr{HideWindow: true, CreationFlags: detachedProcess | syscall.CREATE_NEW_PROCESS_GROUP}
}
